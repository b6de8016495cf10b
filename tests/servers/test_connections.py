"""Connections: too many of them, silent ones, and clients that do not read. Others go on being served."""

from __future__ import annotations

import json
import os
import resource
import socket
import ssl
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import structlog

from servers.common.seldom import PAUSE, Seldom
from servers.http1.connections import IN_USE_SECONDS, RESERVE, Connections, affordable
from servers.http1.reader import Stage

from .certificates import write_certificate
from .running import PATIENCE, Client, Running, body, status, wait_until

RUNTIMES: Final = ("trio", "aiohttp")
FAKE: Final = "tests.servers.fake_server"
REQUEST: Final = b"GET /echo HTTP/1.1\r\nhost: test\r\n\r\n"


class FakeConnection:
    is_idle = True
    has_ended = False

    def end(self) -> None:
        self.has_ended = True


def ended(*connections: FakeConnection) -> list[bool]:
    return [connection.has_ended for connection in connections]


def test_a_connection_that_was_never_answered_makes_room_first() -> None:
    """The one that came first, whether it is silent or slow."""
    answered, silent, slow, newcomer, late = (FakeConnection() for _ in range(5))
    held: Connections[FakeConnection] = Connections(3)
    assert all(held.admit(connection) for connection in (answered, silent, slow))
    held.mark(answered, Stage.ANSWER)
    held.mark(answered, Stage.IDLE)
    held.mark(silent, Stage.IDLE)
    held.mark(slow, Stage.HEAD)
    assert held.admit(newcomer)
    assert ended(answered, silent, slow) == [False, True, False]
    assert held.admit(late)
    assert ended(answered, slow, newcomer) == [False, True, False]
    assert len(held) == 3


def test_then_the_longest_idle_connection_that_is_not_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    first, second, busy, newcomer = (FakeConnection() for _ in range(4))
    held: Connections[FakeConnection] = Connections(3)
    for connection in (first, second, busy):
        assert held.admit(connection)
        held.mark(connection, Stage.ANSWER)
    held.mark(second, Stage.IDLE)
    held.mark(first, Stage.IDLE)
    now = IN_USE_SECONDS / 2
    assert not held.admit(newcomer)
    held.mark(second, Stage.HEAD)
    held.mark(second, Stage.ANSWER)
    held.mark(second, Stage.IDLE)
    now = IN_USE_SECONDS
    assert held.admit(newcomer)
    assert ended(first, second, busy) == [True, False, False]
    held.mark(first, Stage.IDLE)  # it ends later than it was given up
    held.mark(newcomer, Stage.ANSWER)
    assert not held.admit(FakeConnection())


@pytest.mark.parametrize(
    "soft, hard, expected, raised",
    [
        (100_000, 100_000, 1000, None),
        (1024, 100_000, 1000, 1000 + RESERVE),
        (1024, -1, 1000, 1000 + RESERVE),
        (-1, -1, 1000, None),
        (1024, 1024, 1024 - RESERVE, 1024),
        (1024, 1200, 1200 - RESERVE, 1200),
        (64, 64, 16, 64),
    ],
)
def test_the_limit_is_held_against_the_descriptors(
    soft: int, hard: int, expected: int, raised: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised where that is allowed; otherwise there are fewer connections, and a line says so."""
    assert resource.RLIM_INFINITY == -1
    seen: list[int] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: seen.append(limits[0]))
    with structlog.testing.capture_logs() as lines:
        assert affordable(1000, structlog.get_logger()) == expected
    assert seen == ([] if raised is None else [raised])
    assert [line["event"] for line in lines] == ["connection limit lowered"] * (expected < 1000)


def test_a_warning_that_comes_again_and_again_is_logged_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with structlog.testing.capture_logs() as lines:
        seldom = Seldom(structlog.get_logger().warning)
        for moment in (1.0, 2.0, PAUSE, 1.0 + PAUSE):
            now = moment
            seldom("again")
    assert [line["left_out"] for line in lines] == [0, 2]


def events_of(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines()]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_well_behaved_client_is_served_beside_a_flood_of_idle_connections(runtime: str) -> None:
    """The limit of descriptors is far below the number of connections that are asked for."""
    with Running("tests.servers.few_descriptors", "560", runtime) as running, ExitStack() as flood:
        for number in range(400):
            flood.enter_context(closing(socket.create_connection(("127.0.0.1", running.port), PATIENCE)))
            if number % 50 == 0:
                with Client(running.port) as client:
                    assert status(client.ask(REQUEST)) == 200
        code, log = running.stop()
    assert code == 0
    names = [line["event"] for line in events_of(log)]
    assert names.count("connection limit lowered") == 1
    assert "connections cannot be accepted" not in names


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_without_a_descriptor_to_accept_with_the_log_stays_short(runtime: str) -> None:
    """And once there are some again, all is as before."""
    with Running(FAKE, runtime) as running:
        pid = running.process.pid
        assert is_served(running.port)
        taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(set(range(len(taken) + 1)) - taken), hard))
        with Client(running.port):
            time.sleep(2.5)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        deadline = time.monotonic() + PATIENCE
        while not is_served(running.port):
            assert time.monotonic() < deadline
        code, log = running.stop()
    assert code == 0
    names = [line["event"] for line in events_of(log)]
    assert names.count("connections cannot be accepted") == 1
    assert names.count("event loop failed") <= 1


def is_served(port: int) -> bool:
    with Client(port) as client:
        try:
            return status(client.ask(REQUEST)) == 200
        except (OSError, IndexError):
            return False


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Settings for TLS."""
    folder: Path = tmp_path_factory.mktemp("tls")
    write_certificate(folder, "localhost")
    return f"tls_certificate={folder / 'cert.pem'}", f"tls_key={folder / 'key.pem'}"


def in_tls(port: int) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), PATIENCE))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_handshake_that_does_not_come_is_not_waited_for(runtime: str, certificate: tuple[str, str]) -> None:
    with Running(FAKE, runtime, *certificate, "head_timeout=300ms") as running, Client(running.port) as silent:
        started = time.monotonic()
        assert silent.is_closed()
        assert time.monotonic() - started < PATIENCE / 2


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_connections_in_their_handshake_count(runtime: str, certificate: tuple[str, str]) -> None:
    """They are idle, too, and make room for who comes later."""
    with (
        Running(FAKE, runtime, *certificate, "connection_limit=1", "head_timeout=60s") as running,
        Client(running.port) as silent,
        in_tls(running.port) as secure,
    ):
        secure.sendall(REQUEST)
        assert status(secure.recv(65536)) == 200
        assert silent.is_closed()


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_client_that_does_not_read_is_not_waited_for(runtime: str, tls: bool, certificate: tuple[str, str]) -> None:
    """Its connection ends amid the answer, and what the answer holds is given back."""
    with Running(FAKE, runtime, *(certificate if tls else ()), "write_timeout=300ms") as running:

        def connect() -> socket.socket:
            return in_tls(running.port) if tls else Client(running.port).socket

        with connect() as lazy, connect() as watcher:
            lazy.sendall(REQUEST.replace(b"/echo", b"/large?50000000"))
            deadline = time.monotonic() + PATIENCE
            while count(watcher) < 1:
                assert time.monotonic() < deadline
                time.sleep(0.05)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_client_that_reads_none_of_many_small_answers_is_not_waited_for(runtime: str) -> None:
    """Its connection ends, though each of these answers alone would fit into a buffer."""
    with Running(FAKE, runtime, "write_timeout=300ms") as running, Client(running.port).socket as lazy:
        lazy.settimeout(2.0)
        with suppress(TimeoutError, ConnectionError):
            while True:
                lazy.sendall(REQUEST * 1000)
        lazy.settimeout(PATIENCE)
        with suppress(ConnectionError):
            while lazy.recv(2**20):
                pass


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_client_that_never_reads_leaves_its_place_to_others(runtime: str) -> None:
    """Its connection is gone once the time for writing is over, though a part of the answer is not sent."""
    with (
        Running(FAKE, runtime, "write_timeout=300ms", "connection_limit=1") as running,
        Client(running.port).socket as lazy,
    ):
        lazy.sendall(REQUEST.replace(b"/echo", b"/large?50000000"))
        assert lazy.recv(1)  # from now on, this client has its place, and others are refused
        wait_until(lambda: is_served(running.port))


def count(connection: socket.socket) -> int:
    connection.sendall(REQUEST.replace(b"/echo", b"/count?undelivered-much"))
    number: int = json.loads(body(connection.recv(65536)))["count"]
    return number
