"""Audit sockets that are closed while entries are sent, as by SIGHUP: the log stays genuine, no descriptor leaks."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from cloudid_core.audit.device import Device
from cloudid_servers.audit.devices import StreamDevice
from cloudid_servers.audit.files import Ticket
from cloudid_servers.audit.verify import verify
from cloudid_servers.host.host import Host
from cloudid_servers.machine import streams
from tests.hosts.opened import RUNTIMES, on
from tests.waiting import PATIENCE

AWAITS: Final = 5
"""How many two sends over UDP have: the look-up, the connect, the first checkpoint and two entries."""

every_await = pytest.mark.parametrize("place", range(2 * AWAITS))
on_all = pytest.mark.parametrize("kind", ["tcp", "udp", "unix"])
pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)


class Interrupting:
    """A host that does something right before or right after one of the awaits of its user."""

    def __init__(self, host: Host, place: int) -> None:
        self._host = host
        self._place = place
        self._steps = 0
        self.interrupt: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    async def in_thread(self, *arguments: Any) -> Any:
        return await self._around(self._host.in_thread(*arguments))

    async def wait_writable(self, *arguments: Any) -> Any:
        return await self._around(self._host.wait_writable(*arguments))

    async def _around(self, waiting: Awaitable[Any]) -> Any:
        self._step()
        outcome = await waiting
        self._step()
        return outcome

    def _step(self) -> None:
        self._steps += 1
        if self._steps == self._place + 1:
            self.interrupt()


class Received:
    """A socket in whose buffers all that is sent stays until it is read."""

    def __init__(self, kind: str, path: Path) -> None:
        self._socket = socket.socket(
            socket.AF_UNIX if kind == "unix" else socket.AF_INET,
            socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM,
        )
        self._socket.bind(str(path) if kind == "unix" else ("127.0.0.1", 0))
        if kind != "udp":
            self._socket.listen()
        self._kind = kind
        self.address = str(path) if kind == "unix" else f"127.0.0.1:{self._socket.getsockname()[1]}"

    def lines(self) -> list[bytes]:
        """All lines, connection after connection. Each must have been closed by its sender."""
        content = b""
        self._socket.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                if self._kind == "udp":
                    content += self._socket.recv(2**16)
                    continue
                connection, _ = self._socket.accept()
                with connection:
                    connection.settimeout(PATIENCE)
                    while data := connection.recv(2**16):
                        content += data
        return content.splitlines(keepends=True)

    def close(self) -> None:
        self._socket.close()


@contextmanager
def received(kind: str, folder: Path) -> Iterator[Received]:
    receiver = Received(kind, folder / "socket")
    try:
        yield receiver
    finally:
        receiver.close()


def sender(host: Any, kind: str, address: str) -> StreamDevice:
    device = Device(name="siem", type="socket", key="5a" * 32, options={"address": address, "socket_type": kind})
    return StreamDevice(device, "host:1", lambda checkpoints: None, host, lambda device, failure: None)


class Counting(Interrupting):
    """A host that counts the tasks of its user."""

    def __init__(self, host: Host) -> None:
        super().__init__(host, -1)
        self.tasks = 0

    def start(self, *arguments: Any) -> Any:
        self.tasks += 1
        return self._host.start(*arguments)


async def finished(ticket: Ticket | None) -> None:
    assert ticket is not None
    await ticket.done.wait()


@on_all
@every_await
def test_a_socket_that_is_closed_at_any_await_of_a_send_leaves_a_genuine_log(
    place: int, kind: str, runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "is_writable", lambda fd: False)

    async def scenario(host: Host) -> None:
        interrupting = Interrupting(host, place)
        device = sender(interrupting, kind, receiver.address)
        interrupting.interrupt = device.close
        for number in range(2):
            ticket = device.begin((b'{"type":"request","entry":%d}' % number,))
            assert ticket is not None
            await ticket.written()
        monkeypatch.undo()
        await host.next_turn()
        device.close()

    with received(kind, tmp_path) as receiver:
        on(runtime, scenario)
        lines = receiver.lines()
    assert [str(problem) for problem in verify([("socket", lines)]).problems] == []
    assert sum(b'"entry":' in line for line in lines) >= 2


@on_all
@every_await
def test_a_socket_that_is_removed_at_any_await_of_a_send_leaves_no_connection(
    place: int, kind: str, runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first place is before the send begins."""
    monkeypatch.setattr(streams, "is_writable", lambda fd: False)

    async def scenario(host: Host) -> None:
        interrupting = Interrupting(host, place - 1)
        device = sender(interrupting, kind, receiver.address)

        def remove() -> None:
            device.is_removed = True
            device.close()

        interrupting.interrupt = remove
        ticket = device.begin((b'{"type":"request"}',))
        if not place:
            remove()
        await finished(ticket)
        while device._is_sending:
            await host.next_turn()
        if not device.is_removed:
            remove()
        assert device._stream._fd == -1

    with received(kind, tmp_path) as receiver:
        on(runtime, scenario)
        receiver.lines()


@on_all
def test_a_socket_whose_lines_are_signed_starts_no_work(kind: str, runtime: str, tmp_path: Path) -> None:
    async def scenario(host: Host) -> None:
        counting = Counting(host)
        device = sender(counting, kind, receiver.address)
        device.sign()
        assert counting.tasks == 0
        ticket = device.begin((b'{"type":"request"}',))
        assert ticket is not None
        await ticket.written()
        await host.next_turn()
        device.sign()
        assert counting.tasks == 1
        device.close()

    with received(kind, tmp_path) as receiver:
        on(runtime, scenario)
