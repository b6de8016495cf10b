"""HTTP/1.1 with aiohttp's low-level server: its parser reads, `wire` writes.

The parser is the one in Python. The faster one in C refuses the LIST verb, and an embedding that needs no environment
variable set before anything is imported (`AIOHTTP_NO_EXTENSIONS`, which would slow down the client as well) has to swap
it: one assignment in `Protocol`. It costs about 15 µs a request, next to nothing beside what a login costs.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, HttpProcessingError, LineTooLong
from aiohttp.http_parser import HttpRequestParserPy, RawRequestMessage
from aiohttp.web_protocol import RequestHandler, RequestPayloadError
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse

from cloudid_core.api.response import Response
from cloudid_core.errors import Code, Refused

from ..common import wire
from ..common.app import Front
from ..common.settings import ServerSettings
from ..common.wire import Head

MOST_FIELDS: Final = wire.HEAD_LIMIT
"""No bound of its own: the head as a whole is bounded."""


class Unreadable(BadHttpMessage):
    """What the parser cannot or will not read, as our refusal."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.text)
        self.refusal = Refused(code)


class Parser(HttpRequestParserPy):
    """aiohttp's parser, with our bounds and our words for what is wrong."""

    is_late = False

    @property
    def is_in_head(self) -> bool:
        """Whether a head has begun and not ended."""
        return bool(self._lines or self._tail)

    def parse_message(self, lines: list[bytes]) -> RawRequestMessage:
        """Keeps the method as it was written; aiohttp would change its case."""
        return super().parse_message(lines)._replace(method=lines[0].partition(b" ")[0].decode("ascii"))

    def feed_data(self, data: bytes, *arguments: Any, **options: Any) -> Any:
        if self.is_late:
            raise Unreadable(Code.CLIENT_TOO_SLOW)
        try:
            fed = super().feed_data(data, *arguments, **options)
        except LineTooLong:
            raise Unreadable(Code.HEAD_TOO_LARGE if self._lines else Code.TARGET_TOO_LONG) from None
        except (HttpProcessingError, ValueError):
            raise Unreadable(Code.MALFORMED_REQUEST) from None
        if sum(map(len, self._lines)) > wire.HEAD_LIMIT:
            raise Unreadable(Code.HEAD_TOO_LARGE)
        return fed


class Protocol(RequestHandler):
    """One connection."""

    __slots__ = ("_head_timer", "_lost", "front", "limits")

    def __init__(self, server: web.Server, front: Front, limits: ServerSettings) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, keepalive_timeout=limits.idle_timeout, lingering_time=0)
        self.access_logger = None
        self._logging_enabled = False
        self.front = front
        self.limits = limits
        self._lost = asyncio.Event()
        self._head_timer: asyncio.TimerHandle | None = None
        self._parser: Any = Parser(
            self,
            loop,
            max_line_size=wire.HEAD_LIMIT,
            max_field_size=wire.HEAD_LIMIT,
            max_headers=MOST_FIELDS,
            payload_exception=RequestPayloadError,
            auto_decompress=False,
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        server = self._manager
        if server is None or len(server.connections) < self.limits.connection_limit:
            super().connection_made(transport)
        elif isinstance(transport, asyncio.WriteTransport):
            transport.write(wire.write(wire.TOO_MANY_CONNECTIONS, is_head=False, closes=True))
            transport.close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._watch_head(False)
        self._lost.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head(self._parser is not None and self._parser.is_in_head)

    def _watch_head(self, is_in_head: bool) -> None:
        """A head that has begun must end in time."""
        if is_in_head and self._head_timer is None:
            self._head_timer = self._loop.call_later(self.limits.head_timeout, self._end_head)
        elif not is_in_head and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_head(self) -> None:
        self._parser.is_late = True
        super().data_received(b"")

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        """aiohttp asks for this answer where our handler was not asked, or failed."""
        refusal = exc.refusal if isinstance(exc, Unreadable) else Refused(Code.INTERNAL_ERROR)
        return Answer(self, self.front.refuse(refusal), is_refusal=True)

    async def linger(self) -> None:
        """Swallow what the client still sends: a connection that is closed upon unread bytes loses our last words."""
        self.close()
        with suppress(OSError, TimeoutError):
            if self.transport is not None and self.transport.can_write_eof():
                self.transport.write_eof()
            async with asyncio.timeout(wire.LINGER_SECONDS):
                await self._lost.wait()


class Answer(StreamResponse):
    """An answer whose bytes are final."""

    def __init__(
        self,
        protocol: Protocol,
        response: Response,
        *,
        is_head: bool = False,
        closes: bool = False,
        is_refusal: bool = False,
    ) -> None:
        super().__init__(status=response.status)
        self._protocol = protocol
        self._response = response
        self._bytes = wire.write(response, is_head=is_head, closes=closes or is_refusal)
        self._closes = closes
        self._is_refusal = is_refusal

    @property
    def keep_alive(self) -> bool:
        return not (self._closes or self._is_refusal)

    async def prepare(self, request: BaseRequest) -> None:
        """Everything leaves here. Raises `ConnectionError` when the client is not there any more."""
        with self._protocol.front.delivering(self._response):
            if self._response.holds and _has_hung_up(request):
                raise ConnectionResetError
            try:
                async with asyncio.timeout(self._protocol.limits.write_timeout):
                    await request.writer.write(self._bytes)
                    await request.writer.drain()
            except TimeoutError:
                raise ConnectionResetError from None
        if self._is_refusal:
            await self._protocol.linger()

    async def write_eof(self, data: bytes = b"") -> None:
        """There is nothing more."""


class Server(web.Server):
    """Makes a protocol for each connection, and answers its requests."""

    def __init__(self, front: Front, limits: ServerSettings) -> None:
        super().__init__(self._answer)
        self._front = front
        self._limits = limits

    def __call__(self) -> RequestHandler:
        return Protocol(self, self._front, self._limits)

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        protocol = request.protocol
        assert isinstance(protocol, Protocol)
        try:
            head = _read_head(request)
            body = await self._read_body(request, head)
        except Refused as refusal:
            return Answer(protocol, self._front.refuse(refusal), is_refusal=True)
        response = await self._front.answer(head, body, request.remote or "")
        closes = head.closes or self._front.is_draining
        return Answer(protocol, response, is_head=head.method == "HEAD", closes=closes)

    async def _read_body(self, request: BaseRequest, head: Head) -> bytes:
        wire.check_length(head, self._front.body_limit)
        body = b""
        try:
            if head.expects_continue:
                await request.writer.write(wire.CONTINUE)
            async with asyncio.timeout(self._limits.body_timeout):
                async for chunk in request.content.iter_any():
                    body += chunk
                    if len(body) > self._front.body_limit:
                        raise Refused(Code.BODY_TOO_LARGE)
        except TimeoutError:
            raise Refused(Code.CLIENT_TOO_SLOW) from None
        except (RequestPayloadError, ConnectionError):
            raise Refused(Code.MALFORMED_REQUEST) from None
        return body


def _read_head(request: BaseRequest) -> Head:
    target = request.raw_path.encode("utf-8", "surrogateescape")
    version = f"{request.version.major}.{request.version.minor}".encode()
    return wire.read_head(request.method.encode(), target, version, request.raw_headers)


def _has_hung_up(request: BaseRequest) -> bool:
    socket = request.get_extra_info("socket")
    return socket is None or wire.has_hung_up(socket.fileno())
