"""Connections: too many of them, silent ones, and clients that do not read. Others go on being served."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import ssl
import time
from collections.abc import Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from math import inf
from pathlib import Path
from typing import Any, Final, cast

import pytest
import structlog
import trio
import trio.testing

from cloudid_core.dispatch import Exchange
from cloudid_core.errors import Refused
from cloudid_core.messages.response import Request, Response
from cloudid_servers.aiohttp_server.protocol import Server as AiohttpServer
from cloudid_servers.host.app import App
from cloudid_servers.host.connection import Shared
from cloudid_servers.http1.connections import (
    IN_USE_SECONDS,
    LINGERING,
    RESERVE,
    SURPLUS,
    Admission,
    Connections,
    affordable,
    source_of,
    timeouts,
)
from cloudid_servers.http1.heads import Head
from cloudid_servers.http1.reader import Stage
from cloudid_servers.runtime.seldom import PAUSE, Seldom
from cloudid_servers.settings.settings import ServerSettings
from cloudid_servers.trio_server.connection import Connection as TrioConnection
from cloudid_servers.trio_server.streams import Plain
from tests.properties.work import Counted
from tests.waiting import until

from .certificates import write_certificate
from .running import PATIENCE, Client, Gate, Running, body, status, wait_until

RUNTIMES: Final = ("trio", "aiohttp")
FAKE: Final = "tests.servers.fake_server"
LIBRARY_SECONDS: Final = 60.0
"""For so long asyncio waits for a handshake, unless it is told otherwise."""

REQUEST: Final = b"GET /echo HTTP/1.1\r\nhost: test\r\n\r\n"


class FakeConnection:
    def __init__(self, source: Hashable = "somebody") -> None:
        self.source = source
        self.is_idle = True
        self.is_exempt = False
        self.due = inf
        self.ending: str | None = None

    def end(self) -> None:
        self.ending = "in silence"

    def refuse(self, refusal: Refused) -> None:
        self.ending = refusal.code.wire

    give_up = refuse

    def end_late(self) -> None:
        self.ending = "late"


def answer(held: Connections[FakeConnection], *connections: FakeConnection) -> None:
    """Each has had an answer, and waits for its next request."""
    for connection in connections:
        held.mark(connection, Stage.ANSWER)
        held.mark(connection, Stage.IDLE)


def occupied(held: Connections[FakeConnection], *sources: Hashable) -> list[FakeConnection]:
    """Connections of these sources whose requests are being answered."""
    connections = [FakeConnection(source) for source in sources]
    for connection in connections:
        assert held.admit(connection) is Admission.SERVED
        held.mark(connection, Stage.ANSWER)
        connection.is_exempt = True
    return connections


def ended(connections: Iterable[FakeConnection]) -> list[bool]:
    return [connection.ending is not None for connection in connections]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test sets."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_of_one_source_a_connection_that_was_never_answered_makes_room_first() -> None:
    """The one that came first, whether it is silent or slow, and it is told so; then the longest idle one."""
    answered, silent, slow, newcomer, late = (FakeConnection() for _ in range(5))
    held: Connections[FakeConnection] = Connections(3)
    assert all(held.admit(connection) is Admission.SERVED for connection in (answered, silent, slow))
    answer(held, answered)
    held.mark(silent, Stage.IDLE)
    held.mark(slow, Stage.HEAD)
    assert held.admit(newcomer) is Admission.SERVED
    assert ended((answered, silent, slow)) == [False, True, False]
    assert held.admit(late) is Admission.SERVED
    assert ended((answered, slow, newcomer)) == [False, True, False]
    assert (silent.ending, len(held)) == ("too_many_connections", 3)


def test_a_connection_that_has_just_come_does_not_make_room_while_another_one_is_idle(clock: list[float]) -> None:
    """Many machines behind one address come at the same time: each has its moment to ask."""
    held: Connections[FakeConnection] = Connections(3)
    first, second, _busy = occupied(held, *["somebody"] * 3)
    answer(held, first, second)
    clock[0] = IN_USE_SECONDS
    fresh, newcomer, late = (FakeConnection() for _ in range(3))
    assert held.admit(fresh) is held.admit(newcomer) is Admission.SERVED
    assert (first.ending, second.ending, fresh.ending) == ("in silence", "in silence", None)
    assert held.admit(late) is Admission.SERVED  # nobody is idle any more
    assert ended((fresh, newcomer)) == [True, False]


def test_a_connection_that_makes_room_is_told_so_if_a_part_of_a_request_has_come(clock: list[float]) -> None:
    """Without a word, its client could not tell that the request was not executed."""
    idle, amid, *newcomers = (FakeConnection() for _ in range(4))
    held: Connections[FakeConnection] = Connections(2)
    assert all(held.admit(connection) is Admission.SERVED for connection in (idle, amid))
    answer(held, idle, amid)
    amid.is_idle = False
    clock[0] = IN_USE_SECONDS
    for newcomer in newcomers:
        assert held.admit(newcomer) is Admission.SERVED
        held.mark(newcomer, Stage.ANSWER)
    assert (idle.ending, amid.ending) == ("in silence", "too_many_connections")


def test_then_its_longest_waiting_connection_unless_that_was_in_use_a_moment_ago(clock: list[float]) -> None:
    held: Connections[FakeConnection] = Connections(3)
    first, second, _busy = occupied(held, *["somebody"] * 3)
    held.mark(second, Stage.IDLE)
    held.mark(first, Stage.IDLE)
    clock[0] = IN_USE_SECONDS / 2
    assert held.admit(FakeConnection()) is not Admission.SERVED
    answer(held, second)
    held.mark(first, Stage.HEAD)  # a request that has begun gains no time
    clock[0] = IN_USE_SECONDS
    assert held.admit(FakeConnection()) is Admission.SERVED
    assert (first.ending, second.ending) == ("in silence", None)
    held.mark(first, Stage.IDLE)  # it ends later than it was given up
    assert len(held) == 3 + 1  # one of them above the limit


def test_a_source_that_uses_all_its_connections_all_the_time_gives_some_up_to_others(clock: list[float]) -> None:
    """However short the time is that they are idle for; nobody else loses one."""
    held: Connections[FakeConnection] = Connections(8)
    greedy = occupied(held, *["greedy"] * 6)
    others = occupied(held, "a", "b")
    answer(held, *others)
    clock[0] = 100.0
    answer(held, *greedy)
    newcomers = [FakeConnection(name) for name in "cde"]
    for newcomer in newcomers:
        assert held.admit(newcomer) is Admission.SERVED
        held.mark(newcomer, Stage.ANSWER)
    assert ended(greedy) == [True] * 3 + [False] * 3
    assert ended((*others, *newcomers)) == [False] * 5


def test_nobody_gives_a_connection_up_to_a_source_that_has_more(clock: list[float]) -> None:
    held: Connections[FakeConnection] = Connections(4)
    occupied(held, *["greedy"] * 3)
    (other,) = occupied(held, "other")
    answer(held, other)
    clock[0] = 100.0
    assert held.admit(FakeConnection("greedy")) is not Admission.SERVED
    assert other.ending is None
    assert held.admit(FakeConnection("newcomer")) is Admission.SERVED
    assert other.ending == "in silence"


def test_every_stage_makes_room_and_work_for_an_unknown_caller_last(clock: list[float]) -> None:
    """In this order: idle, its last answer had, written to, worked on without a verified token."""
    held: Connections[FakeConnection] = Connections(5)
    known, unknown, reading, lingering, idle = occupied(held, *["greedy"] * 5)
    unknown.is_exempt = False
    answer(held, idle)
    held.mark(reading, Stage.SEND)
    held.mark(lingering, Stage.LINGER)
    clock[0] = 100.0
    newcomers = [FakeConnection(f"other {number}") for number in range(5)]
    for newcomer, given_up in zip(newcomers, (idle, lingering, reading, unknown), strict=False):
        assert held.admit(newcomer) is Admission.SERVED
        held.mark(newcomer, Stage.ANSWER)
        newcomer.is_exempt = True
        assert given_up.ending is not None
    assert held.admit(newcomers[-1]) is not Admission.SERVED
    assert known.ending is None


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.LINGER])
def test_a_source_has_a_moment_in_every_stage_before_it_gives_one_up_to_itself(
    stage: Stage, clock: list[float]
) -> None:
    held: Connections[FakeConnection] = Connections(2)
    _known, used = occupied(held, *["somebody"] * 2)
    used.is_exempt = False
    held.mark(used, stage)
    clock[0] = 100.0
    held.mark(used, Stage.ANSWER)
    held.mark(used, Stage.SEND)
    held.mark(used, stage)
    clock[0] += IN_USE_SECONDS / 2
    assert held.admit(FakeConnection()) is not Admission.SERVED
    clock[0] += IN_USE_SECONDS / 2
    assert held.admit(FakeConnection()) is Admission.SERVED
    assert used.ending is not None


def cost_of_a_newcomer(stage: Stage, sources: int, each: int) -> int:
    """Bytecodes, where each source has so many connections in a stage and none has a verified token."""
    held: Connections[FakeConnection] = Connections(sources * each)
    for number in range(sources * each):
        connection = FakeConnection(number % sources)
        assert held.admit(connection) is Admission.SERVED
        held.mark(connection, stage)
    with Counted() as counted:
        assert held.admit(FakeConnection("newcomer")) is Admission.SERVED
    return counted.bytecodes


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("stage", [Stage.IDLE, Stage.ANSWER, Stage.SEND, Stage.LINGER])
def test_a_newcomer_at_the_limit_costs_as_much_however_many_sources_there_are(
    stage: Stage, each: int, clock: list[float]
) -> None:
    """Each connection of a trusted proxy is a source, and so is each /64 of an IPv6 network that one stranger has."""
    assert cost_of_a_newcomer(stage, 128, each) == cost_of_a_newcomer(stage, 16, each)


def test_a_trusted_proxy_is_no_source() -> None:
    """Each of its connections counts for itself, and so does each IPv4 address and each /64 of IPv6."""
    first, second, trusted = FakeConnection(), FakeConnection(), ("192.0.2.0/24",)
    assert source_of(first, "192.0.2.1", trusted) != source_of(second, "192.0.2.1", trusted)
    assert source_of(first, "192.0.2.1", ()) == source_of(second, "192.0.2.1", ())
    assert source_of(first, "198.51.100.1", trusted) == source_of(second, "198.51.100.1", trusted)
    assert source_of(first, "2001:db8::1", trusted) == source_of(second, "2001:db8::2", trusted)


def test_some_more_are_let_in_for_health_checks_and_no_source_can_take_all_of_these_places() -> None:
    held: Connections[FakeConnection] = Connections(1)
    occupied(held, "greedy")
    surplus = [FakeConnection("greedy") for _ in range(SURPLUS)]
    assert {held.admit(connection) for connection in surplus} == {Admission.HEALTH_ONLY}
    check = FakeConnection("load balancer")
    assert held.admit(check) is Admission.HEALTH_ONLY
    assert ended(surplus) == [True] + [False] * (SURPLUS - 1)
    assert set(held) >= {check, *surplus[1:]}
    for connection in held:
        held.mark(connection, Stage.ANSWER)
        connection.is_exempt = True
    assert held.admit(FakeConnection("another")) is Admission.REFUSED


def test_refused_clients_are_waited_for_but_not_all_of_a_flood() -> None:
    held: Connections[FakeConnection] = Connections(2 * LINGERING)
    (served,) = occupied(held, "somebody")
    refused = [FakeConnection() for _ in range(LINGERING + 1)]
    assert [held.may_linger(connection) for connection in refused] == [True] * LINGERING + [False]
    assert held.may_linger(served)
    held.remove(refused[0])
    assert held.may_linger(refused[-1])


def test_a_connection_ends_when_its_stage_has_taken_its_time_and_not_before() -> None:
    held: Connections[FakeConnection] = Connections(3)
    late, due, early = (FakeConnection() for _ in range(3))
    for connection, due_at in ((late, 9.0), (due, 10.0), (early, 11.0)):
        connection.due = due_at
        held.admit(connection)
    held.end_late(10.0)
    assert ended((late, due, early)) == [True, True, False]


def test_every_stage_has_a_timeout_of_the_settings_or_none() -> None:
    """A request that is worked on has its own deadline; an answer that is sent or read, the transport's."""
    settings = ServerSettings(head_timeout=1.0, idle_timeout=2.0, body_timeout=3.0)
    assert timeouts(settings) == {
        Stage.HANDSHAKE: 1.0,
        Stage.HEAD: 1.0,
        Stage.IDLE: 2.0,
        Stage.BODY: 3.0,
        **dict.fromkeys((Stage.ANSWER, Stage.SEND, Stage.LINGER), inf),
    }


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
        (3, 3, 1, 3),
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
            wait_until(lambda: "connections cannot be accepted" in running.log())
            time.sleep(1.0)  # in which it is tried again
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        wait_until(lambda: is_served(running.port))
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


def in_tls(port: int, connection: socket.socket | None = None) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connection or socket.create_connection(("127.0.0.1", port), PATIENCE))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_handshake_that_does_not_come_is_not_waited_for(runtime: str, certificate: tuple[str, str]) -> None:
    with Running(FAKE, runtime, *certificate, "head_timeout=300ms") as running, Client(running.port) as silent:
        started = time.monotonic()
        assert silent.is_closed()
        assert time.monotonic() - started < LIBRARY_SECONDS


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_connections_in_their_handshake_count(runtime: str, certificate: tuple[str, str]) -> None:
    """They are idle, too, and make room for who comes later."""
    with (
        Running(FAKE, runtime, *certificate, "connection_limit=1", "head_timeout=1h") as running,
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
            wait_until(lambda: count(watcher))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_client_that_reads_none_of_many_small_answers_is_not_waited_for(runtime: str) -> None:
    """Its connection ends, though each of these answers alone would fit into a buffer."""
    with Running(FAKE, runtime, "write_timeout=300ms") as running, Client(running.port).socket as lazy:
        with suppress(ConnectionError):
            while True:
                lazy.sendall(REQUEST * 1000)
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


ATTACKER: Final = ("127.0.0.2", 0)
HEALTH: Final = REQUEST.replace(b"/echo", b"/v1/sys/health?standbyok=true")
LIMIT: Final = 8
NEWCOMERS: Final = 3 * SURPLUS
OF_KNOWN_CALLER: Final = b"host: test\r\nx-vault-token: a"
WORK_OF_KNOWN_CALLER: Final = REQUEST.replace(b"/echo", b"/sleep?600").replace(b"host: test", OF_KNOWN_CALLER)


@pytest.fixture(scope="module", params=RUNTIMES)
def crowded(request: pytest.FixtureRequest) -> Iterator[Running]:
    """A server with few connections."""
    with Running(FAKE, request.param, f"connection_limit={LIMIT}", "trusted_proxies=") as running:
        yield running


@contextmanager
def connections(running: Running, request: bytes, number: int = LIMIT) -> Iterator[list[Client]]:
    """Connections of the attacker on which this request has been sent."""
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(running.port, ATTACKER)) for _ in range(number)]
        for client in clients:
            client.send(request)
        yield clients


def test_one_source_takes_the_server_from_nobody(crowded: Running) -> None:
    """It has as many connections as there may be, and uses each of them all the time."""
    with connections(crowded, REQUEST) as greedy:
        assert {status(client.receive()) for client in greedy} == {200}
        with ExitStack() as others:
            for number in range(1, LIMIT // 2):
                client = others.enter_context(Client(crowded.port))
                assert status(client.ask(REQUEST)) == 200
                greedy = [used for used in greedy if is_answered(used)]
                assert len(greedy) == LIMIT - number


def test_work_for_unknown_callers_makes_room_for_others_and_they_read_why(crowded: Running, tmp_path: Path) -> None:
    """The oldest first; the request of a verified token stays."""
    gate = Gate(tmp_path)
    work = REQUEST.replace(b"/echo", f"/waits?{gate.folder}".encode())
    of_known_caller = work.replace(b"host: test", OF_KNOWN_CALLER)
    with ExitStack() as stack:
        clients = []
        for number in range(LIMIT):
            clients += stack.enter_context(connections(crowded, of_known_caller if number == 0 else work, 1))
            gate.wait_for(number + 1)
        known, *unknown = clients
        for given_up in unknown[: LIMIT // 2 - 1]:
            newcomer = stack.enter_context(Client(crowded.port))
            assert status(newcomer.ask(REQUEST)) == 200
            answer = given_up.receive()
            assert refusal(answer) == (503, "too_many_connections")
            assert b"\r\nretry-after: 1\r\n" in answer
            assert given_up.is_closed()
        gate.open()
        assert status(known.receive()) == 200


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_client_that_does_not_read_makes_room_and_what_its_answer_holds_is_given_back(
    runtime: str, tls: bool, certificate: tuple[str, str]
) -> None:
    settings = ("connection_limit=1", "write_timeout=600s", "trusted_proxies=", *(certificate if tls else ()))
    with Running(FAKE, runtime, *settings) as running, ExitStack() as stack:
        lazy = stack.enter_context(Client(running.port, ATTACKER).socket)
        if tls:
            lazy = stack.enter_context(in_tls(running.port, lazy))
        lazy.sendall(REQUEST.replace(b"/echo", b"/large?50000000"))
        assert lazy.recv(1)

        def is_given_back() -> bool:
            with in_tls(running.port) if tls else Client(running.port).socket as watcher:
                return count(watcher) == 1

        wait_until(is_given_back)


def is_answered(client: Client) -> bool:
    """Whether a connection has not been given up."""
    try:
        return client.ask(REQUEST) != b""
    except OSError:
        return False


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_health_is_told_above_the_limit_and_everybody_else_reads_why_not(runtime: str) -> None:
    """All requests have a verified token: none makes room. Nobody is cut off before the answer is read."""
    with (
        Running(FAKE, runtime, f"connection_limit={2 * NEWCOMERS}", "trusted_proxies=") as crowded,
        ExitStack() as stack,
    ):
        while not is_refused(crowded):
            stack.enter_context(connections(crowded, WORK_OF_KNOWN_CALLER, 1))
        clients = []
        for _ in range(NEWCOMERS):
            clients.append(stack.enter_context(Client(crowded.port)))
            for piece in (REQUEST[:20], REQUEST[20:]):  # as many clients send them
                clients[-1].send(piece)
        assert {refusal(client.receive()) for client in clients} == {(503, "too_many_connections")}
        with Client(crowded.port) as check:
            told = check.ask(HEALTH)
            assert (status(told), b"connection: close" in told) == (200, True)
            assert check.is_closed()


def refusal(answer: bytes) -> tuple[int, str]:
    return status(answer), json.loads(body(answer))["codes"][0]


def is_refused(running: Running) -> bool:
    with Client(running.port) as client:
        return status(client.ask(REQUEST)) == 503


class NoLimit:
    """Turns in which every request may be answered."""

    def take(self, source: Hashable) -> bool:
        return True


class FakeApp:
    """Counts the requests that it is asked to answer."""

    turns = NoLimit()
    body_limit = 1000
    trusted_proxies = ()
    is_draining = is_audited = False
    asked = 0

    def begin(self, head: Head, body: bytes, peer: str, port: int = 0) -> Exchange:
        return Exchange(request=Request(head.method, head.target), request_id="", seconds=60.0)

    async def answer(self, exchange: Exchange) -> Response:
        self.asked += 1
        return Response(204)

    def delivering(self, response: Response) -> AbstractContextManager[None]:
        return nullcontext()

    def give_back(self, response: Response) -> None:
        """It gives nothing."""


class GivenUpAtOnce:
    """A trio stream of a connection that is given up at the moment at which a request has come."""

    peer, port = "127.0.0.1", 40123
    connection: TrioConnection

    async def do_handshake(self) -> None: ...

    async def close(self) -> None: ...

    async def receive(self) -> bytes:
        self.connection.end()
        return REQUEST


def test_a_request_on_a_connection_that_was_given_up_is_not_executed_by_the_trio_server() -> None:
    app, stream = FakeApp(), GivenUpAtOnce()
    stream.connection = TrioConnection(cast(Any, stream), Shared(cast(App, app), ServerSettings(), connection_limit=1))
    trio.run(stream.connection.serve)
    assert app.asked == 0


def test_a_request_on_a_connection_that_was_given_up_is_not_executed_by_the_aiohttp_server() -> None:
    app = FakeApp()

    async def main() -> None:
        server = AiohttpServer(cast(App, app), ServerSettings(), connection_limit=1)
        listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\n")
        (connection,) = server.shared.connections
        connection.data_received(REQUEST)
        connection.end()
        assert await reader.read() == b""
        writer.close()
        listener.close()

    asyncio.run(main())
    assert app.asked == 1


def test_a_request_that_lies_unread_when_the_drain_begins_is_answered_by_the_trio_server() -> None:
    app = FakeApp()

    async def main() -> None:
        shared: Shared[TrioConnection] = Shared(cast(App, app), ServerSettings(), connection_limit=2)
        async with trio.open_nursery() as nursery:
            clients = []
            with socket.create_server(("127.0.0.1", 0)) as listener:
                pairs = [(socket.create_connection(listener.getsockname()), listener.accept()[0]) for _ in range(2)]
            for theirs, ours in pairs:
                clients.append(trio.SocketStream(trio.socket.from_stdlib_socket(theirs)))
                stream = Plain(trio.SocketStream(trio.socket.from_stdlib_socket(ours)))
                nursery.start_soon(TrioConnection(stream, shared).serve)
            idle = clients[0]
            await idle.send_all(REQUEST)
            await idle.receive_some()
            await trio.testing.wait_all_tasks_blocked()
            for client in clients:
                with socket.socket(fileno=os.dup(client.socket.fileno())) as twin:
                    twin.sendall(REQUEST)  # without a turn of the loop
            app.is_draining = True
            shared.connections.end_idle()
            for client in clients:
                assert b"204" in await client.receive_some()
                assert await client.receive_some() == b""
                await client.aclose()

    trio.run(main)
    assert app.asked == 3


def test_a_request_that_lies_unread_when_the_drain_begins_is_answered_by_the_aiohttp_server() -> None:
    app = FakeApp()

    async def main() -> None:
        server = AiohttpServer(cast(App, app), ServerSettings(), connection_limit=2)
        listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
        streams = [await asyncio.open_connection(*listener.sockets[0].getsockname()) for _ in range(2)]
        (reader, writer), _ = streams
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\n")
        await until(asyncio.sleep, lambda: len(server.shared.connections) == 2)
        for _, writer in streams:  # their bytes leave at once
            writer.write(REQUEST)
        app.is_draining = True
        server.shared.connections.end_idle()
        for reader, writer in streams:
            assert b"204" in await reader.read()
            writer.close()
        listener.close()

    asyncio.run(main())
    assert app.asked == 3


def count(connection: socket.socket) -> int:
    connection.sendall(REQUEST.replace(b"/echo", b"/count?undelivered-much"))
    number: int = json.loads(body(connection.recv(65536)))["count"]
    return number
