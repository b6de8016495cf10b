"""Temporary PostgreSQL servers: nothing is left of them, however the process ends that has started them."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from cloudid_servers.stores.postgres import temporary
from cloudid_servers.stores.postgres.temporary import NoPostgres, guarded_folder, temporary_server
from tests.servers.running import PATIENCE, ROOT, wait_until

from .cluster import require_installed

USER: Final = """
import signal, sys, time
from pathlib import Path
from cloudid_servers.stores.postgres.temporary import temporary_server
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background would ignore it
with temporary_server(Path(sys.argv[1])) as address:
    print(address, flush=True)
    time.sleep(3600)
"""


@pytest.fixture(autouse=True)
def installed() -> None:
    require_installed()


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_nothing_is_left_when_the_process_that_started_it_is_killed(number: signal.Signals) -> None:
    with (
        guarded_folder() as folder,
        subprocess.Popen(
            [sys.executable, "-c", USER, folder], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as user,
    ):
        assert user.stdout is not None
        port = int(user.stdout.readline().rpartition(":")[2].partition("/")[0])
        assert is_listening(port)
        user.send_signal(number)
        user.wait(PATIENCE)
        wait_until(lambda: not is_listening(port) and not any(folder.iterdir()))


def test_nothing_is_left_of_one_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "SETTINGS", "no_such_setting = 1\n")
    with pytest.raises(NoPostgres), temporary_server(tmp_path):
        """It does not come so far."""
    assert not any(tmp_path.iterdir())
