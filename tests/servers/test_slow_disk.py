"""A disk that takes 5 ms for an fsync: who waits for it, waits alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .running import PATIENCE, Client, Running, status
from .slow_disk import HANGS

RUNTIMES: Final = ("trio", "aiohttp")
HEALTH: Final = b"GET /health HTTP/1.1\r\nhost: test\r\n\r\n"
WRITE: Final = b"GET /write?a HTTP/1.1\r\nhost: test\r\n\r\n"


@pytest.fixture(params=RUNTIMES)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    with Running("tests.servers.slow_disk", str(tmp_path), request.param) as running:
        yield running


def test_health_is_answered_while_commits_wait_for_the_disk(server: Running, tmp_path: Path) -> None:
    """A commit that takes for ever shows it without a clock. It is acknowledged once it is on the disk, not before."""
    with Client(server.port) as writer, Client(server.port) as watcher:
        assert status(writer.ask(WRITE)) == 200
        (tmp_path / HANGS).touch()
        writer.send(WRITE)
        for _ in range(20):
            assert status(watcher.ask(HEALTH)) == 473
        writer.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            writer.receive()
        writer.socket.settimeout(PATIENCE)
        (tmp_path / HANGS).unlink()
        assert status(writer.receive()) == 200
