"""Two paths from an empty folder that has nothing but a wheel, with the pages alone: their commands, as they stand."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.stores.postgres.temporary import free_port
from tests.pages.runner import (
    PROGRAMS,
    Command,
    Place,
    check,
    facts_of,
    is_shown,
    missing_programs,
    outputs,
    steps_of,
)
from tests.servers.running import Running

from .building import ROOT
from .installed import python_for_all

INSTALL: Final = (ROOT / "docs/how-to/install.md").read_text()
NEWCOMER: Final = (ROOT / "docs/start/ten-minutes.md").read_text()
OPERATOR: Final = "\n".join(
    (ROOT / f"docs/how-to/{page}.md").read_text() for page in ("install", "connect-a-tenant", "policies", "upgrade")
)
PORTS: Final = ("8200", "8201")
SEARCHED: Final = os.pathsep.join((str(PROGRAMS), python_for_all(), "/usr/local/bin"))
_NEEDS_A_WHEEL: Final = re.compile(r"^<!-- needs a wheel: .* -->\n", re.MULTILINE)


@frozen
class Installed(Place):
    """A server of an installation in a folder, whose commands the page's shell finds, and none of this checkout."""

    folder: Path = Path()

    @property
    def environment(self) -> dict[str, str]:
        given = {name: value for name, value in super().environment.items() if name != "PYTHONPATH"}
        return {**given, "PATH": os.pathsep.join((str(self.folder / "venv" / "bin"), SEARCHED))}


def walk(text: str, wheel: Path, folder: Path, **environment: str) -> None:
    """Run the commands of pages in one shell, one after the other. Each has to print what its page shows."""
    shutil.copy(wheel, folder)
    steps = steps_of(on_free_ports(_NEEDS_A_WHEEL.sub("", text)))
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    pinned = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    came = iter(outputs(steps, folder, {**pip, **pinned, "PATH": SEARCHED, **environment}))
    for command in (step for step in steps if isinstance(step, Command)):
        output, status = next(came)
        is_right = bool(status) == command.fails and is_shown(command.shown, output)
        assert is_right, f"$ {command.text}\n{output}[{status}]"


def on_free_ports(text: str) -> str:
    free = [str(free_port()) for _ in PORTS]
    return re.sub(rf":({'|'.join(PORTS)})\b", lambda found: f":{free[PORTS.index(found[1])]}", text)


def require_programs(text: str) -> None:
    if missing := missing_programs(text, "bash", "curl", "jq", "openssl"):
        pytest.skip(f"needs {', '.join(missing)}")


def test_a_newcomer_gets_from_a_wheel_to_a_lent_credential(wheel: Path, tmp_path: Path) -> None:
    """The first block of the page about installation, then `cloudid dev` and the ten minutes with it."""
    require_programs(NEWCOMER)
    walk("```".join(INSTALL.split("```")[:2]) + "```\n", wheel, tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    with Running("cloudid_servers.cli", "dev", "--listen", "127.0.0.1:0", python=python, folder=tmp_path) as running:
        check(NEWCOMER, Installed(*facts_of(running), is_started_by_page=True, folder=tmp_path), tmp_path)


def test_an_operator_gets_from_a_wheel_to_a_copy_that_was_tried(wheel: Path, tmp_path: Path) -> None:
    """TLS, `init`, a tenant (simulated), policies, an upgrade that was tried on a copy, the way back, and audit."""
    require_programs(OPERATOR)
    with start(Simulator()) as cloud:
        walk(OPERATOR, wheel, tmp_path, SIMULATOR=cloud.url)
