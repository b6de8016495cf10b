"""A service manager as servers see it: a datagram socket that their environment names."""

from __future__ import annotations

import secrets
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import PATIENCE


class FakeManager:
    """Hears what one server tells. Its socket has a path in a folder, or without a folder an abstract address."""

    def __init__(self, folder: Path | None = None) -> None:
        self.address = str(folder / "notify") if folder else f"@cloudid-test-{secrets.token_hex(8)}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(PATIENCE)
        self.socket.bind(self.address.replace("@", "\0", 1))

    @property
    def environment(self) -> dict[str, str]:
        return {"NOTIFY_SOCKET": self.address}

    def hear(self) -> dict[str, str]:
        """What was told next."""
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def heard(self) -> Iterator[dict[str, str]]:
        """What was told until now."""
        while select.select([self.socket], [], [], 0)[0]:
            yield self.hear()


@contextmanager
def fake_manager(folder: Path | None = None) -> Iterator[FakeManager]:
    manager = FakeManager(folder)
    with manager.socket:
        yield manager
