"""HTTP/1.1 on one connection: `Reader` reads, `wire` writes, and every wait has an end.

Each stage of a connection is due at some time. One task ends the connections that are late, all through `end_late`: to
move the deadline of a cancel scope twice in each request costs an eighth of a small request.
"""

from __future__ import annotations

import time
from math import inf

import trio

from cloudid_core.dispatch import Exchange
from cloudid_core.errors import Refused

from ..host import BaseConnection, Gone, Shared
from ..http1 import ANSWER, HANDSHAKE, LINGER, SEND, Head, wire
from ..machine import streams
from .streams import Stream


class Connection(BaseConnection):
    """One client's requests and answers, one after the other."""

    def __init__(self, stream: Stream, shared: Shared[Connection]) -> None:
        super().__init__(shared)
        self._stream = stream
        self._scope = trio.CancelScope()
        self._is_ended = False
        self._unanswered: Exchange | None = None
        """The request whose work was ended."""

    async def serve(self) -> None:
        """Until one side ends it."""
        try:
            self._peer, self._port = self._stream.peer, self._stream.port
            self._admit(self._peer)
            with self._scope:
                self._since = time.monotonic()
                await self._stream.do_handshake()
                while await self._exchange():
                    pass
            self._scope = trio.CancelScope()
            with self._scope:
                if self._unanswered is not None:
                    await self._answer_late(self._unanswered)
                elif self._refusal is not None and self._stage is not HANDSHAKE:
                    await self._refuse(self._refusal)
        except (Gone, OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass
        finally:
            self._shared.connections.remove(self)
            self._shared.bodies.remove(self)
            await self._stream.close()

    def _has_unread(self) -> bool:
        return self._reader.unread > 0 or streams.has_unread(self._stream.fileno())

    def end(self) -> None:
        """Close it without a word."""
        self._is_ended = True
        self._scope.cancel()

    def refuse(self, refusal: Refused) -> None:
        """Close it with this answer; without one if that would take a TLS handshake."""
        self._refusal = refusal
        self._reader.drop()
        self.end()

    def _end_answer(self) -> None:
        self._unanswered, self._asked = self._asked, None
        self.end()

    async def _exchange(self) -> bool:
        """One request and its answer; whether another may follow."""
        try:
            head, body = await self._next_request()
        except Refused as refusal:
            await self._refuse(refusal)
            return False
        app = self._shared.app
        exchange = self._asked = app.begin(head, body, self._peer, self._port)
        response = await app.answer(exchange)
        if not (response.holds or app.is_audited):
            await trio.lowlevel.cancel_shielded_checkpoint()  # see `App.answer`
        self._asked = self._unanswered = None  # not earlier: newcomers may need the place in this turn
        closes = head.closes or body is None or app.is_draining or self._reader.is_health_only
        data = wire.write(response, is_head=head.method == "HEAD", closes=closes)
        sent = 0
        if not response.holds:
            try:
                sent = self._stream.send_at_once(data)
            except OSError:
                app.give_back(response)
                raise
        if sent < len(data):
            with app.delivering(response):
                if response.holds and streams.has_hung_up(self._stream.fileno()):
                    raise Gone
                self._enter(SEND)
                await self._send(data[sent:])
        if closes:
            await self._linger()
        return not closes

    async def _next_request(self) -> tuple[Head, bytes | None]:
        """Raises `Refused`, or `Gone` when there is none."""
        reader = self._reader
        if reader.unread:
            self._enter(reader.stage)
            await trio.lowlevel.checkpoint()  # a client that sends many at once lets the others have their turn
        while (request := reader.next_request()) is None:
            self._enter(reader.stage)
            if reader.asks_limit is not None:
                self._since = inf  # the client waits for this server
                reader.allow(await self._shared.app.body_limit(reader.asks_limit, self._peer))
                self._since = time.monotonic()
                continue
            if reader.wants_continue:
                reader.wants_continue = False
                await self._stream.send(wire.CONTINUE)
                continue
            self._shared.bodies.hold(self, reader.held, is_whole=False)
            data = await self._stream.receive()
            if not data:
                raise Gone
            reader.feed(data)
        self._shared.bodies.hold(self, len(request[1] or b"") + reader.held, is_whole=True)
        if not self._shared.app.turns.take(self.source):
            await self._wait_for_turn()
        if self._is_ended:
            await trio.lowlevel.checkpoint()  # the scope is cancelled: what is not answered is not executed either
        self._enter(ANSWER)
        return request

    async def _refuse(self, refusal: Refused) -> None:
        response = self._shared.app.refuse(refusal, self._peer)
        await self._send_last(wire.write(response, is_head=self._reader.answers_head, closes=True))

    async def _answer_late(self, exchange: Exchange) -> None:
        response = await self._shared.app.answer_late(exchange)
        await self._send_last(wire.write(response, is_head=exchange.request.method == "HEAD", closes=True))

    async def _send_last(self, data: bytes) -> None:
        """Send an answer after which the connection ends, in a moment if it has no place any more."""
        self._enter(SEND)
        data = data[self._stream.send_at_once(data) :]
        if self._shared.connections.may_linger(self):
            if data:
                await self._send(data)
            await self._linger()

    async def _send(self, data: bytes) -> None:
        with trio.fail_after(self._write_seconds):
            await self._stream.send(data)

    async def _linger(self) -> None:
        """Swallow what the client still sends: a connection that is closed with unread bytes loses our last answer."""
        if not self._shared.connections.may_linger(self):
            return
        self._enter(LINGER)
        with trio.move_on_after(wire.LINGER_SECONDS):
            await self._stream.send_eof()
            while await self._stream.receive():
                pass
