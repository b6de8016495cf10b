"""The commands that a server in development prints can be copied as they are."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cloudid_core import Secret
from cloudid_servers.command import next_commands
from cloudid_servers.provider_simulator import Simulator, start

from .running import PATIENCE, Running


@pytest.mark.skipif(not shutil.which("curl"), reason="the commands use curl")
@pytest.mark.parametrize("name", ["trio_server", "aiohttp_server"])
def test_they_end_with_a_login(name: str, tmp_path: Path) -> None:
    """In a plain shell, in an empty folder: the last answer has a token."""
    with start(Simulator()) as cloud:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root", "--provider", cloud.url)
        with Running(f"cloudid_servers.{name}", *arguments) as server:
            script = next_commands.text(server.url, Secret("root"), cloud.url).partition(":\n")[2]
            ran = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.stderr == ""
    assert json.loads(ran.stdout.splitlines()[-1])["auth"]["token_policies"] == ["default"]
