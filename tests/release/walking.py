"""Runs pages in a folder that has nothing but an installed wheel."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest

from cloudid_servers.stores.postgres.temporary import free_port
from tests.pages.runner import PROGRAMS, Command, is_shown, missing_programs, outputs, steps_of

from .building import ROOT
from .installed import python_for_all


def page(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text()


_PARTS: Final = page("how-to/install").split("```")
INSTALL: Final = "```".join(_PARTS[:2]) + "```\n"
"""From a wheel to a command, on the page about installation."""
INSTALLED: Final = "```".join(_PARTS[2:]).removeprefix("```\n")
"""The rest of that page."""

SEARCHED: Final = os.pathsep.join((str(PROGRAMS), python_for_all(), "/usr/local/bin"))
MEASURING: Final = "cloudid bench"
"""It prints figures of the machine."""

_PORT: Final = re.compile(r"(?:(?<=:)|(?<=port ))(8000|820[01])\b")
_HELD_BACK: Final = re.compile(r"^<!-- needs (?:a wheel|an existing service|PostgreSQL): .* -->\n", re.MULTILINE)


def walk(text: str, folder: Path, **environment: str) -> None:
    """Run the commands of pages in one shell, one after the other. Each has to print what its page shows."""
    if missing := missing_programs(text, "bash", "curl", "jq", "openssl"):
        pytest.skip(f"needs {', '.join(missing)}")
    steps = steps_of(on_free_ports(_HELD_BACK.sub("", text)))
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    pinned = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_NO_COMPILE": "yes"}  # but what is used, then
    path = os.pathsep.join((str(folder / "venv" / "bin"), SEARCHED))
    came = iter(outputs(steps, folder, {**pip, **pinned, "PATH": path, **environment}))
    for command in (step for step in steps if isinstance(step, Command)):
        output, status = next(came)
        is_as_shown = command.text.startswith(MEASURING) or is_shown(command.shown, output)
        is_right = bool(status) == command.fails and is_as_shown
        assert is_right, f"$ {command.text}\n{output}[{status}]"


def on_free_ports(text: str) -> str:
    """The text with ports that nobody listens at."""
    free = {port: str(free_port()) for port in sorted(set(_PORT.findall(text)))}
    return _PORT.sub(lambda found: free[found[1]], text)
