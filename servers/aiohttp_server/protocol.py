"""HTTP/1.1 on aiohttp's own server: `Reader` reads, `wire` writes, and every wait has an end.

aiohttp keeps what a server of its own is about: `web.ServerRunner` and its sites, the `web.Server` that counts
connections and requests, its graceful shutdown, the options of sockets, flow control. What is ours is the step between
bytes and answers, in a `RequestHandler` that overrides `data_received` and `start`:

- aiohttp's parser in C refuses the LIST verb. The one in Python knows it, but costs more than everything else that a
  small request needs, and both accept what the trio server refuses. `Reader` is the same for both servers.
- Its own `start` makes a task, a `BaseRequest`, a `StreamWriter` and a `StreamResponse` for each request. Here the
  task of the connection asks the service itself, and the bytes of the answer are final.

`_waiter`, `_task_handler` and `_close` are private to aiohttp; its shutdown works through them. The tests of draining,
of idle connections and of refusals would notice a release that changes them.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from math import inf
from typing import Final, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse

from cloudid_core.errors import Refused
from cloudid_core.messages import Response

from ..host import App, BaseConnection, Gone, Shared
from ..http1 import ANSWER, HANDSHAKE, LINGER, SEND, Head, wire
from ..machine import streams
from ..settings import ServerSettings

BACKLOG: Final = 65_536
"""How many bytes a client may send ahead of an answer before it is not read any more."""

PIECE: Final = 65_536
"""Most bytes that are written at once: TLS would take any number, and say that nothing is left to be sent."""


class Outbox:
    """Writes the answers that are ready in one turn of the loop right after each other in the next one.

    `App.answer` says why. One callback for all of them costs less than another turn of each connection's task.
    """

    def __init__(self, give_back: Callable[[Response], None]) -> None:
        """`give_back` is called with the answers that are not written, because their connections are closed."""
        self._give_back = give_back
        self._waiting: list[tuple[asyncio.Transport, bytes, Response]] = []

    def put(self, transport: asyncio.Transport, data: bytes, response: Response) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self.flush)
        self._waiting.append((transport, data, response))

    def flush(self) -> None:
        """Write what is waiting now."""
        waiting, self._waiting = self._waiting, []
        for transport, data, response in waiting:
            if transport.is_closing():
                self._give_back(response)
            else:
                transport.write(data)


class Server(web.Server):
    """Makes a protocol for each connection."""

    def __init__(
        self, app: App, settings: ServerSettings, connection_limit: int, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(_unused)
        self.shared: Shared[Protocol] = Shared(app, settings, connection_limit)
        self.tls = tls
        self.outbox = Outbox(app.give_back)

    def __call__(self) -> RequestHandler:
        return Protocol(self)


async def _unused(request: BaseRequest) -> StreamResponse:
    """aiohttp wants a handler, but `Protocol.start` asks the service itself."""
    raise NotImplementedError


class Protocol(RequestHandler, BaseConnection):
    """One connection: one client's requests and answers, one after the other."""

    def __init__(self, server: Server) -> None:
        RequestHandler.__init__(self, server, loop=asyncio.get_running_loop(), keepalive_timeout=0)
        BaseConnection.__init__(self, server.shared)
        self._logging_enabled = False
        self._server = server
        self._answered_size = 0
        """Bytes of the body that is being answered."""

        self._has_ended = False
        self._is_deaf = False
        self._is_paused = False
        self._is_late = False
        """Whether the work on the request that is being answered was ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A socket was accepted. With TLS, the handshake comes first."""
        socket = self.transport = cast(asyncio.Transport, transport)
        peer = _address_of(socket.get_extra_info("peername"))
        is_admitted = self._admit(peer)
        if self._server.tls is None:
            self._begin(socket)
        elif is_admitted:
            socket.set_write_buffer_limits(1)
            socket.pause_reading()
            self._task_handler = self._loop.create_task(self._begin_tls(socket, self._server.tls))

    def connection_lost(self, exc: BaseException | None) -> None:
        self._shared.connections.remove(self)
        self._shared.bodies.remove(self)
        self._has_ended = True
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        self._reader.feed(data)
        self._wake()
        is_asking = self._reader.asks_limit is not None
        if not (self._stage in (ANSWER, SEND) or is_asking) or self.transport is None:
            return
        held = self._reader.held if is_asking else self._answered_size + self._reader.held
        self._shared.bodies.hold(self, held, is_whole=not is_asking)
        if self._reader.unread > BACKLOG:
            self._is_paused = True
            self.transport.pause_reading()

    def eof_received(self) -> bool:  # type: ignore[override]  # aiohttp would close the connection
        """A client that sends nothing more may still wait for its answer. TLS cannot end one direction only."""
        self._has_ended = True
        self._wake()
        return self._server.tls is None

    def close(self) -> None:
        """The server drains: end the connection after the request that is under way, if there is one."""
        self._close = True
        if self.is_idle:
            self.end()

    def _has_unread(self) -> bool:
        return self._reader.unread > 0 or ((socket := self._file_number()) >= 0 and streams.has_unread(socket))

    def end(self) -> None:
        """Close it without a word. The answer to its last request may still be in the outbox."""
        self._server.outbox.flush()
        if self.transport is not None and self.writing_paused and not self._shared.connections.has_place(self):
            self.transport.abort()  # `close` would wait until the client reads
        self.force_close()

    def refuse(self, refusal: Refused) -> None:
        """Close it with this answer; without one if that would take a TLS handshake."""
        is_asking = self._reader.asks_limit is not None
        self._refusal = refusal
        self._is_deaf = True
        self._reader.drop()
        if is_asking and self._task_handler is not None:
            self._task_handler.cancel()
        elif self._stage is HANDSHAKE and self._server.tls is not None:
            self.end()
        else:
            self._wake()

    async def start(self) -> None:
        """Answer one request after the other, until one side ends it."""
        try:
            while await self._exchange():
                pass
        except (Gone, ConnectionError, TimeoutError):
            pass
        except Exception as bug:  # noqa: BLE001  # one connection must not end the others
            self.log_exception("connection failed", exc_info=bug)
        finally:
            self.end()

    def _begin(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(1)  # so that writing waits until everything is sent
        super().connection_made(transport)

    async def _begin_tls(self, socket: asyncio.Transport, tls: ssl.SSLContext) -> None:
        timeout = self._shared.timeouts[HANDSHAKE]
        try:
            secure = await self._loop.start_tls(socket, self, tls, server_side=True, ssl_handshake_timeout=timeout)
        except OSError:
            self._shared.connections.remove(self)
            socket.abort()
        else:
            if secure is not None and self._manager is not None:
                self._begin(secure)

    async def _exchange(self) -> bool:
        """One request and its answer; whether another may follow."""
        app = self._shared.app
        try:
            head, body = await self._next_request()
        except Refused as refusal:
            response = app.refuse(refusal, self._peer_address())
            await self._write_last(wire.write(response, is_head=self._reader.answers_head, closes=True))
            return False
        self._server.requests_count += 1
        exchange = self._asked = app.begin(head, body, self._peer_address(), _port_of(self.peername))
        try:
            response = await app.answer(exchange)
        except asyncio.CancelledError:
            if not self._is_late or self._task_handler is None:
                raise
            self._task_handler.uncancel()  # otherwise Python 3.11.2 takes the time-outs below for this cancellation
            response = await app.answer_late(exchange)
        self._asked = None
        closes = head.closes or body is None or app.is_draining or self._reader.is_health_only or self._is_late
        data = wire.write(response, is_head=head.method == "HEAD", closes=closes)
        if self._is_late:
            await self._write_last(data)
            return False
        is_brief = len(data) <= PIECE and not self.writing_paused
        if is_brief and not (response.holds or closes or self.transport is None):
            self._server.outbox.put(self.transport, data, response)
            return True
        with app.delivering(response):
            if response.holds and self._has_hung_up():
                raise Gone
            await self._write(data)
        if closes:
            await self._linger()
        return not closes

    async def _next_request(self) -> tuple[Head, bytes | None]:
        """Raises `Refused`, or `Gone` when there is none."""
        reader = self._reader
        if reader.unread:
            self._enter(reader.stage)
            await asyncio.sleep(0)  # a client that sends many at once lets the others have their turn
        while (request := reader.next_request()) is None:
            self._enter(reader.stage)
            if reader.asks_limit is not None:
                self._since = inf  # the client waits for this server
                reader.allow(await self._body_limit(reader.asks_limit))
                self._since = time.monotonic()
            elif reader.wants_continue:
                reader.wants_continue = False
                await self._write(wire.CONTINUE)
            elif self._refusal is not None:
                raise self._refusal
            else:
                self._shared.bodies.hold(self, reader.held, is_whole=False)
                if self._refusal is None:
                    await self._wait_for_more()
        if self.writing_paused:
            await self._until_sent()
        self._answered_size = len(request[1] or b"")
        self._shared.bodies.hold(self, self._answered_size + reader.held, is_whole=True)
        if not self._shared.app.turns.take(self.source):
            await self._wait_for_turn()
        if self._refusal is not None:
            raise self._refusal
        if self.transport is None:
            raise Gone  # what is not answered is not executed either
        self._enter(ANSWER)
        return request

    async def _body_limit(self, head: Head) -> int:
        """How long the body may be. Raises `Refused`."""
        try:
            return await self._shared.app.body_limit(head, self._peer_address())
        except asyncio.CancelledError:
            if self._refusal is None or self._task_handler is None:
                raise
            self._task_handler.uncancel()
            raise self._refusal from None

    async def _wait_for_more(self) -> None:
        """Until bytes have come, or their time is up. Raises `Gone` if none will come."""
        if self._has_ended:
            self._server.outbox.flush()
        if self.writing_paused:
            await self._until_sent()
        if self._has_ended or self.transport is None:
            raise Gone
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end_answer(self) -> None:
        self._asked, self._is_late = None, True
        if self._task_handler is not None:
            self._task_handler.cancel()

    async def _write(self, data: bytes) -> None:
        """Raises `Gone`, or `TimeoutError` if the client does not read."""
        if self.transport is None or self.transport.is_closing():
            raise Gone
        for start in range(0, len(data), PIECE):
            self.transport.write(data[start : start + PIECE])
            if self.writing_paused:
                await self._until_sent()

    async def _until_sent(self) -> None:
        """Raises `Gone`, or `TimeoutError` if the client does not read."""
        transport, stage = self.transport, self._stage
        self._enter(SEND)
        try:
            async with asyncio.timeout(self._write_seconds):
                await self._drain_helper()
        except TimeoutError:
            if transport is not None:
                transport.abort()  # `close` would wait until the client reads, and keep the connection meanwhile
            raise
        if self.transport is None:
            raise Gone
        self._enter(stage)

    def pause_writing(self) -> None:
        """A response could not be sent completely. The connection continues once it is, unless that takes too long."""
        super().pause_writing()
        self._wake()

    async def _write_last(self, data: bytes) -> None:
        """Write an answer after which the connection ends, in a moment if it has no place any more."""
        self._enter(SEND)
        if self._shared.connections.may_linger(self):
            await self._write(data)
            await self._linger()
        elif self.transport is not None:
            self.transport.write(data)

    async def _linger(self) -> None:
        """Swallow what the client still sends: a connection that is closed with unread bytes loses our last answer."""
        self._is_deaf = True
        if not self._shared.connections.may_linger(self):
            return
        self._enter(LINGER)
        if self.transport is not None and self.transport.can_write_eof():
            self.transport.write_eof()
        async with asyncio.timeout(wire.LINGER_SECONDS):
            await self._wait_for_more()

    def _peer_address(self) -> str:
        return _address_of(self.peername)

    def _has_hung_up(self) -> bool:
        return (socket := self._file_number()) < 0 or streams.has_hung_up(socket)

    def _file_number(self) -> int:
        """The socket's, or -1."""
        socket = self.transport.get_extra_info("socket") if self.transport is not None else None
        return -1 if socket is None else int(socket.fileno())


def _address_of(peername: object) -> str:
    return str(peername[0]) if isinstance(peername, tuple) else ""


def _port_of(peername: object) -> int:
    return int(peername[1]) if isinstance(peername, tuple) else 0
