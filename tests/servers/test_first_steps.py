"""The commands that `cloudid dev` prints can be typed as they are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until

from .running import PATIENCE, Running

pytestmark = [
    pytest.mark.one_server,
    pytest.mark.skipif(not shutil.which("curl"), reason="the commands use curl"),
]


def guide_of(server: Running) -> list[str]:
    """The lines to type, from what a server prints."""
    log = wait_until(lambda: server.log() if "name is refused" in server.log() else "")
    return [line for line in log.splitlines() if line.startswith("  ")]


def typed(lines: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", "\n".join(lines)],
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("name", ["trio", "aiohttp"])
def test_they_lead_from_a_login_to_the_end_of_credentials(name: str, tmp_path: Path) -> None:
    """In a plain shell, in an empty folder; nothing that was lent to a command outlives it."""
    with Running("cloudid_servers.cli", "dev", "--server", name, "--listen", "127.0.0.1:0") as server:
        *lines, curl, root, why = guide_of(server)
        assert len(lines) in (5, 6)
        ran = typed(lines, tmp_path)
        assert ran.returncode == 0, ran.stderr
        shown = ran.stdout
        assert '"state": "healthy"' in shown
        assert '"role": "web"' in shown
        assert '"lease_duration": 60' in shown
        assert re.search(r"only for this command: [0-9a-f-]{36}", shown)
        assert (tmp_path / ".cloudid-token").stat().st_mode & 0o777 == 0o600

        def removed() -> list[Any]:
            ledger = json.loads(typed([curl], tmp_path).stdout)
            return [one for one in ledger if one["deleted_at"] is not None]

        wait_until(removed)
        refused = typed([*lines[:-4], root, why], tmp_path)
        assert refused.returncode == 1
        assert "cause: The machine is in another resource group." in refused.stdout


def test_without_a_cloud_of_its_own_nothing_is_prepared() -> None:
    with Running("cloudid_servers.cli", "dev", "--provider", "http://127.0.0.1:1", "--listen", "127.0.0.1:0") as server:
        wait_until(lambda: "cloudid status" in server.log())
        assert "auth/cloud/role" not in server.log()
