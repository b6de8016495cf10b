"""HTTP/1.1 on one connection: h11 reads, `wire` writes, and every wait has an end.

A fresh h11 connection reads each request, so that its sending half is never needed.
"""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import Final, TypeAlias

import h11
import trio

from cloudid_core.api.request import TARGET_LIMIT
from cloudid_core.api.response import Response
from cloudid_core.errors import Code, Refused

from ..common import wire
from ..common.app import Front
from ..common.settings import ServerSettings
from ..common.wire import Head

CHUNK: Final = 65_536
SLACK: Final = 4096
"""How much longer than allowed a head may grow before h11 gives up: the exact bound is `wire.read_head`'s."""

Stream: TypeAlias = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class _Gone(Exception):
    """The client has left, or has nothing more to say."""


class Connection:
    """One client's requests and answers, one after the other."""

    def __init__(self, stream: Stream, front: Front, limits: ServerSettings, idle: set[trio.CancelScope]) -> None:
        self._stream = stream
        self._front = front
        self._limits = limits
        self._idle = idle
        self._socket = _socket_of(stream)
        self._unread = b""

    async def serve(self) -> None:
        """Until one side ends it."""
        try:
            self._peer: str = self._socket.getpeername()[0]
            if isinstance(self._stream, trio.SSLStream):
                with trio.fail_after(self._limits.head_timeout):
                    await self._stream.do_handshake()
            while await self._exchange():
                pass
        except (_Gone, OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass
        finally:
            await trio.aclose_forcefully(self._stream)

    async def refuse(self, response: Response) -> None:
        """Answer with this whatever the client wants, and end the connection."""
        try:
            with suppress(trio.BrokenResourceError, trio.TooSlowError):
                await self._send(wire.write(response, is_head=False, closes=True))
        finally:
            await trio.aclose_forcefully(self._stream)

    async def _exchange(self) -> bool:
        """One request and its answer; whether another may follow."""
        await self._await_request()
        try:
            head, body = await self._read_request()
        except Refused as refusal:
            await self._send(wire.write(self._front.refuse(refusal), is_head=False, closes=True))
            await self._linger()
            return False
        response = await self._front.answer(head, body, self._peer)
        closes = head.closes or self._front.is_draining
        with self._front.delivering(response):
            if response.holds and wire.has_hung_up(self._socket.fileno()):
                raise _Gone
            await self._send(wire.write(response, is_head=head.method == "HEAD", closes=closes))
        return not closes

    async def _await_request(self) -> None:
        """Wait for the first bytes. There are none when the server drains, or when the client is idle too long."""
        if self._unread:
            return
        if self._front.is_draining:
            raise _Gone
        with trio.move_on_after(self._limits.idle_timeout) as scope:
            self._idle.add(scope)
            try:
                self._unread = bytes(await self._stream.receive_some(CHUNK))
            finally:
                self._idle.discard(scope)
        if not self._unread:
            raise _Gone

    async def _read_request(self) -> tuple[Head, bytes]:
        parser = h11.Connection(h11.SERVER, wire.HEAD_LIMIT + SLACK)
        try:
            with trio.fail_after(self._limits.head_timeout):
                request = await self._next_event(parser)
            assert isinstance(request, h11.Request)
            head = wire.read_head(request.method, request.target, request.http_version, request.headers)
            with trio.fail_after(self._limits.body_timeout):
                body = await self._read_body(parser, head)
        except trio.TooSlowError:
            raise Refused(Code.CLIENT_TOO_SLOW) from None
        except h11.RemoteProtocolError as error:
            raise Refused(_code_of(error, parser)) from None
        self._unread = parser.trailing_data[0]
        return head, body

    async def _read_body(self, parser: h11.Connection, head: Head) -> bytes:
        wire.check_length(head, self._front.body_limit)
        if head.expects_continue:
            await self._stream.send_all(wire.CONTINUE)
        body = b""
        while isinstance(event := await self._next_event(parser), h11.Data):
            body += event.data
            if len(body) > self._front.body_limit:
                raise Refused(Code.BODY_TOO_LARGE)
        return body

    async def _next_event(self, parser: h11.Connection) -> object:
        while (event := parser.next_event()) is h11.NEED_DATA:
            data, self._unread = self._unread or bytes(await self._stream.receive_some(CHUNK)), b""
            if not data:
                raise _Gone
            parser.receive_data(data)
        return event

    async def _send(self, data: bytes) -> None:
        with trio.fail_after(self._limits.write_timeout):
            await self._stream.send_all(data)

    async def _linger(self) -> None:
        """Swallow what the client still sends: a connection that is closed upon unread bytes loses our last words."""
        with trio.move_on_after(wire.LINGER_SECONDS):
            if isinstance(self._stream, trio.SocketStream):
                await self._stream.send_eof()
            while await self._stream.receive_some(CHUNK):
                pass


def _socket_of(stream: Stream) -> trio.socket.SocketType:
    return stream.socket if isinstance(stream, trio.SocketStream) else stream.transport_stream.socket


def _code_of(error: h11.RemoteProtocolError, parser: h11.Connection) -> Code:
    if error.error_status_hint != HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
        return Code.MALFORMED_REQUEST
    request_line = parser.trailing_data[0].partition(b"\n")[0]
    return Code.TARGET_TOO_LONG if len(request_line) > TARGET_LIMIT else Code.HEAD_TOO_LARGE
