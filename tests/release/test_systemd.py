"""The unit for systemd: what it hands to the server, and how little it lets the server do."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from cloudid_servers.http1.connections import RESERVE
from cloudid_servers.settings.master_key import CREDENTIAL
from cloudid_servers.settings.settings import ServerSettings
from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).parent.parent.parent
UNIT: Final = ROOT / "deploy" / "systemd" / "cloudid.service"
MOST_EXPOSED: Final = 2.0


def setting(name: str) -> str:
    """The value of a setting that the unit has once."""
    [value] = re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)
    return str(value)


def test_the_unit_fits_the_settings_of_the_server() -> None:
    usual = ServerSettings()
    assert setting("Type") == "notify"
    assert setting("LoadCredential").split(":") == [CREDENTIAL, f"/etc/cloudid/{CREDENTIAL}"]
    assert int(setting("TimeoutStopSec")) > usual.drain
    assert int(setting("LimitNOFILE")) >= usual.connection_limit + RESERVE


def test_the_page_runs_commands_as_the_unit_does() -> None:
    """With the same user, folder and key, and of the same installation."""
    page = (ROOT / "docs" / "how-to" / "install.md").read_text()
    given = dict(re.findall(r"-p (\w+)=(\S+)", page))
    assert given == {name: setting(name) for name in given}
    assert {"DynamicUser", "User", "StateDirectory", "LoadCredential"} < set(given)
    assert f'{setting("ExecStart").split()[0]} "$@"' in page


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is missing: install systemd")
def test_the_unit_leaves_little_to_attack() -> None:
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(UNIT)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout
    [exposure] = re.findall(r"Overall exposure level for cloudid.service: ([0-9.]+)", judged)
    assert float(exposure) <= MOST_EXPOSED, judged


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is missing: install systemd")
def test_systemd_understands_the_unit() -> None:
    """All of it: unknown settings and values are lines on stderr. The command is not installed here."""
    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(UNIT)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    ).stderr
    assert [line for line in told.splitlines() if "/opt/cloudid/bin/cloudid is not executable" not in line] == []
