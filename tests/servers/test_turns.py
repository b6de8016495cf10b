"""Turns of the event loop: answers that are ready in one turn are written in the next one, right after each other."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import pytest
import structlog
import trio

from cloudid_core.effects import Instant, Now, Sleep
from cloudid_core.messages.response import Request, Response
from cloudid_servers.aiohttp_server import protocol
from cloudid_servers.host.app import App
from cloudid_servers.host.connection import Shared
from cloudid_servers.host.host import Host
from cloudid_servers.host.turns import SHARE, Turns
from cloudid_servers.processes.listeners import ACCEPTED_AT_ONCE
from cloudid_servers.settings.settings import ServerSettings
from cloudid_servers.trio_server import connection
from cloudid_servers.trio_server.serve import _Server
from cloudid_servers.trio_server.streams import Plain
from tests.hosts.opened import on

from .handling import Handling
from .running import PATIENCE, Client, Running, body

FAR: Final = 3600.0
REQUEST: Final = b"GET /v1/sys/health HTTP/1.1\r\nhost: test\r\n\r\n"
USUAL: Final = Response(200, b"{}\n")
HOLDING: Final = Response(200, b"{}\n", holds="a lease")
CASES: Final = [
    (USUAL, ["handled", "handled", "written", "written"]),
    (HOLDING, ["handled", "written", "handled", "written"]),
]


class Noting(Handling):
    """A service that always gives one answer, and notes when."""

    def __init__(self, response: Response) -> None:
        self.notes: list[str] = []
        self._response = response

    async def handle(self, request: Request) -> Response:
        self.notes.append("handled")
        return self._response

    async def limit_in_time(self, head: Request) -> int:
        return 4096

    async def undelivered(self, response: Response) -> None:
        """Nothing is lent."""

    async def tick(self) -> Instant:
        return await Now() + FAR

    upkeep = tick

    async def stop(self) -> None:
        """There is nothing to end."""


class Pondering(Noting):
    """Takes its time to tell how long a body may be."""

    async def limit_in_time(self, head: Request) -> int:
        self.notes.append("asked")
        await Sleep(FAR)
        return 0


class Transport(asyncio.Transport):
    """Notes what is done with it."""

    def __init__(self, notes: list[str], connection: socket.socket | None = None) -> None:
        super().__init__({"socket": connection})
        self.written: list[bytes] = []
        self.closed = asyncio.Event()
        self._notes = notes

    def write(self, data: Any) -> None:
        self._notes.append("written")
        self.written.append(bytes(data))

    def pause_reading(self) -> None:
        self._notes.append("paused")

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It has no buffer."""

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def close(self) -> None:
        if not self.closed.is_set():
            self._notes.append("closed")
        self.closed.set()

    abort = close


@contextmanager
def connected() -> Iterator[socket.socket]:
    """A socket whose client is there."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours


def app_of(service: Noting, host: Host) -> App:
    return App(service, host, structlog.get_logger(), ())


def opened_protocol(
    service: Noting, host: Host, connection: socket.socket, write_timeout: float = PATIENCE
) -> tuple[protocol.Protocol, Transport]:
    server = protocol.Server(app_of(service, host), ServerSettings(write_timeout=write_timeout), 10)
    return open_on(server, service, connection)


def open_on(server: protocol.Server, service: Noting, connection: socket.socket) -> tuple[protocol.Protocol, Transport]:
    made, transport = protocol.Protocol(server), Transport(service.notes, connection)
    made.connection_made(transport)
    return made, transport


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("response, notes", CASES)
def test_answers_of_one_turn_leave_together_on_asyncio(response: Response, notes: list[str]) -> None:
    service = Noting(response)

    async def scenario(host: Host) -> None:
        with connected() as socket:
            server = protocol.Server(app_of(service, host), ServerSettings(), 10)
            opened = [open_on(server, service, socket)[0] for _ in range(2)]
            await turns()
            for each in opened:
                each.data_received(REQUEST)
            await turns()
            assert service.notes == notes
            for each in opened:
                each.connection_lost(None)

    on("asyncio", scenario)


@pytest.mark.parametrize("response, notes", CASES)
def test_answers_of_one_turn_leave_together_on_trio(response: Response, notes: list[str]) -> None:
    service = Noting(response)

    class Stream(Plain):
        """Has a request, notes the answer, and is gone."""

        def __init__(self, connection: socket.socket) -> None:
            self._socket = connection
            self._requests = [b"", REQUEST]

        @property
        def peer(self) -> str:
            return "127.0.0.1"

        async def receive(self) -> bytes:
            return self._requests.pop()

        def send_at_once(self, data: bytes) -> int:
            service.notes.append("written")
            return len(data)

        async def close(self) -> None:
            """It is closed below."""

    async def scenario(host: Host) -> None:
        shared: Shared[connection.Connection] = Shared(app_of(service, host), ServerSettings(), 10)
        with connected() as socket:
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(connection.Connection(Stream(socket), shared).serve)

    on("trio", scenario)
    assert service.notes == notes


@pytest.mark.parametrize("end", ["end", "close", "client"])
def test_a_connection_that_ends_has_its_answer_first(end: str) -> None:
    """Whether it is the server that gives it up, or drains, or the client that has nothing more to say."""
    service = Noting(USUAL)

    async def scenario(host: Host) -> None:
        with connected() as socket:
            opened, transport = opened_protocol(service, host, socket)
            await turns()
            opened.data_received(REQUEST)
            while not service.notes:
                await turns(1)
            assert service.notes == ["handled"]
            {"end": opened.end, "close": opened.close, "client": opened.eof_received}[end]()
            await turns()
            assert service.notes == ["handled", "written", "closed"]
            assert transport.written[0].startswith(b"HTTP/1.1 200 ")
            opened.connection_lost(None)

    on("asyncio", scenario)


def test_a_client_is_not_read_on_while_the_limit_of_its_body_is_asked_for() -> None:
    service = Pondering(USUAL)

    async def scenario(host: Host) -> None:
        with connected() as socket:
            opened, _ = opened_protocol(service, host, socket)
            await turns()
            opened.data_received(b"POST /v1/a HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n")
            while not service.notes:
                await turns(1)
            assert service.notes == ["asked"]
            opened.data_received(bytes(protocol.BACKLOG + 1))
            assert service.notes == ["asked", "paused"]
            opened.connection_lost(None)

    on("asyncio", scenario)


def test_no_further_request_is_handled_until_an_answer_is_sent() -> None:
    """When only a part of it could be."""
    service = Noting(USUAL)

    async def scenario(host: Host) -> None:
        with connected() as socket:
            opened, _ = opened_protocol(service, host, socket)
            await turns()
            opened.data_received(REQUEST)
            await turns()
            opened.pause_writing()
            opened.data_received(REQUEST)
            await turns()
            assert service.notes == ["handled", "written"]
            opened.resume_writing()
            await turns()
            assert service.notes == ["handled", "written"] * 2
            opened.connection_lost(None)

    on("asyncio", scenario)


def test_a_connection_ends_when_sending_an_answer_takes_too_long() -> None:
    """Also where nothing more comes."""
    service = Noting(USUAL)

    async def scenario(host: Host) -> None:
        with connected() as socket:
            opened, transport = opened_protocol(service, host, socket, write_timeout=0.05)
            await turns()
            opened.data_received(REQUEST)
            await turns()
            opened.pause_writing()
            async with asyncio.timeout(PATIENCE):
                await transport.closed.wait()
            opened.connection_lost(None)

    on("asyncio", scenario)


def test_the_outbox_writes_in_order_and_gives_back_the_answers_of_closed_connections() -> None:
    async def scenario() -> None:
        notes: list[str] = []
        given_back: list[Response] = []
        answers = [Response(200, b"%d" % number) for number in range(8)]
        outbox, transports = protocol.Outbox(given_back.append), [Transport(notes) for _ in range(3)]
        for number in range(6):
            outbox.put(transports[number % 3], b"%d" % number, answers[number])
        transports[1].close()
        assert notes == ["closed"]
        await turns(1)
        assert given_back == [answers[1], answers[4]]
        assert [each.written for each in transports] == [[b"0", b"3"], [], [b"2", b"5"]]
        outbox.put(transports[0], b"6", answers[6])
        outbox.flush()
        outbox.put(transports[0], b"7", answers[7])
        await turns(1)
        assert transports[0].written == [b"0", b"3", b"6", b"7"]

    asyncio.run(scenario())


@pytest.mark.parametrize("runtime", ["trio", "aiohttp"])
def test_a_source_with_many_connections_has_no_more_requests_answered_in_a_turn_than_its_share(runtime: str) -> None:
    """All requests have come before the server runs on: another source's are answered in one turn after the other."""
    connections, each, asked = 300, 20, 10
    ask = b"GET /number HTTP/1.1\r\nhost: test\r\n\r\n"
    with Running("tests.servers.fake_server", runtime, "trusted_proxies=192.0.2.1/32") as server, ExitStack() as open_:
        crowd = [open_.enter_context(Client(server.port, ("127.0.0.2", 0))) for _ in range(connections)]
        other = open_.enter_context(Client(server.port))
        for client in (*crowd, other):
            first = numbered(client.ask(ask))
        server.process.send_signal(signal.SIGSTOP)
        for client in crowd:
            client.send(ask * each)
        other.send(ask * asked)
        server.process.send_signal(signal.SIGCONT)
        last = [numbered(other.receive()) for _ in range(asked)][-1]
        assert last - first <= asked * 4 * SHARE, "otherwise there are as many in each turn as there are connections"
        answers = [numbered(client.receive()) for client in crowd for _ in range(each)]
    assert len({*answers}) == connections * each


@pytest.mark.parametrize("runtime", ["trio", "asyncio"])
def test_requests_of_a_source_wait_in_their_order_and_others_do_not(runtime: str) -> None:
    async def scenario(host: Host) -> None:
        turns, turn = Turns(host), 0
        begun: list[tuple[int, int]] = []

        async def request(number: int) -> None:
            if not turns.take("crowd"):
                await turns.wait("crowd")
            begun.append((turn, number))

        for number in range(10 * SHARE):
            host.start(partial(request, number))
        while len(begun) < 10 * SHARE:
            assert turns.take("another")
            await host.next_turn()
            turn += 1
        waited = [number for at, number in begun if at > 1]
        assert len(waited) >= 7 * SHARE
        in_a_turn = Counter(at for at, _ in begun)
        assert max(in_a_turn.values()) <= 2 * SHARE
        if runtime == "asyncio":  # trio starts and wakes tasks of one turn in any order
            assert [number for _, number in begun] == [*range(10 * SHARE)]

    on(runtime, scenario)


@pytest.mark.parametrize("runtime", ["trio", "asyncio"])
def test_a_source_that_asks_rarely_never_waits(runtime: str) -> None:
    async def scenario(host: Host) -> None:
        turns = Turns(host)
        for _ in range(100):
            assert all(turns.take("one") for _ in range(SHARE // 2))
            await host.next_turn()
            await host.next_turn()
        assert turns.take("one")

    on(runtime, scenario)


@pytest.mark.parametrize("runtime", ["trio", "aiohttp"])
def test_connections_that_wait_for_their_turn_make_room_for_others(runtime: str) -> None:
    """Otherwise one source could keep all places with requests that are not worked on."""
    limit, ask = 200, b"GET /number HTTP/1.1\r\nhost: test\r\n\r\n"
    settings = ("trusted_proxies=192.0.2.1/32", f"connection_limit={limit}")
    with Running("tests.servers.fake_server", runtime, *settings) as server, ExitStack() as open_:
        crowd = [open_.enter_context(Client(server.port, ("127.0.0.2", 0))) for _ in range(limit)]
        for client in crowd:
            numbered(client.ask(ask))
        server.process.send_signal(signal.SIGSTOP)
        for client in crowd:
            client.send(ask * 5)
        others = [open_.enter_context(Client(server.port)) for _ in range(limit // 2)]
        for client in others:
            client.send(ask)
        server.process.send_signal(signal.SIGCONT)
        assert all(numbered(client.receive()) for client in others)


def numbered(answer: bytes) -> int:
    """The number of the request, in the order of their answers."""
    return int(json.loads(body(answer))["number"])


class Accepting(_Server):
    """The part of a trio server that accepts connections; it notes in which turn each began to be served."""

    def __init__(self) -> None:
        self.turn = 0
        self.turns: list[int] = []

    async def count_turns(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.turn += 1

    async def _serve_connection(self, stream: trio.SocketStream) -> None:
        self.turns.append(self.turn)
        await stream.aclose()


def test_the_trio_server_accepts_many_connections_in_one_turn() -> None:
    """Else new clients would wait as many turns as there are others before them."""
    count = 3 * ACCEPTED_AT_ONCE
    server = Accepting()

    async def main(listener: socket.socket) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.count_turns)
            nursery.start_soon(server._accept, listener, nursery)
            with trio.move_on_after(PATIENCE):
                while len(server.turns) < count:
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as clients:
        listener.listen(count)
        listener.setblocking(False)
        for _ in range(count):
            clients.enter_context(socket.create_connection(listener.getsockname(), PATIENCE))
        trio.run(main, listener)
    assert len(server.turns) == count
    assert len({*server.turns}) < count / ACCEPTED_AT_ONCE * 3
