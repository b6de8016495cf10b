"""A separate listener for metrics, which needs no token and serves nothing else.

It is for an address that only Prometheus can reach. It serves a few clients at a time, one request each, over plain
HTTP. Clients that are slow to send or to read make room for others.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from http import HTTPStatus
from typing import Final

import h11

from cloudid_core.errors import TimeIsUp
from cloudid_core.messages.response import Response
from cloudid_core.run import run
from cloudid_core.service import Service
from cloudid_core.system.metrics import JSON, PROMETHEUS
from cloudid_core.values import network

from .host import Host

PATHS: Final = (b"/metrics", b"/v1/sys/metrics")
SECONDS: Final = 10.0
"""Maximum seconds from a client's connection to the end of the response."""

MOST_CLIENTS: Final = 16
"""Maximum clients at a time. If there are more, the address with the most clients loses its oldest one."""

HEAD_LIMIT: Final = 8192
_PIECE: Final = 4096
_LONG: Final = 3600.0
_ACCEPT_PAUSE: Final = 0.1


class MetricsListener:
    """Serves metrics at these sockets while the host is open."""

    def __init__(self, host: Host, service: Service, listeners: Sequence[socket.socket]) -> None:
        self._host = host
        self._service = service
        self._clients: dict[socket.socket, str] = {}
        """The source of each client, oldest first."""

        self._asking: set[socket.socket] = set()
        """Clients that wait for this server, rather than the server for them. They keep their places."""

        for listener in listeners:
            host.start(partial(self._accept, listener))

    async def _accept(self, listener: socket.socket) -> None:
        with closing(listener):
            while True:
                await self._host.wait_readable(listener.fileno(), _LONG)
                try:
                    client, address = listener.accept()
                except BlockingIOError:  # another worker was faster
                    continue
                except OSError:  # the client has gone again, or no descriptor is left
                    await self._host.sleep(_ACCEPT_PAUSE)
                    continue
                source = network.source(address[0])
                if len(self._clients) < MOST_CLIENTS or self._make_room(source):
                    self._clients[client] = source
                    self._host.start(partial(self._serve, client))
                else:
                    client.close()

    def _make_room(self, newcomer: str) -> bool:
        """End one client of the source that has the most, including the new client, unless all others have fewer."""
        counts = Counter((*self._clients.values(), newcomer))
        waiting = [client for client in self._clients if client not in self._asking]
        most = max(waiting, key=lambda client: counts[self._clients[client]], default=None)
        if most is None or counts[self._clients[most]] < counts[newcomer]:
            return False
        del self._clients[most]
        with suppress(OSError):  # the client has closed it already
            most.shutdown(socket.SHUT_RDWR)  # ends what its task waits for
        return True

    async def _serve(self, client: socket.socket) -> None:
        try:
            with closing(client), suppress(OSError, TimeIsUp):
                client.setblocking(False)
                await self._host.in_time(SECONDS, partial(self._answer, client))
        finally:
            self._clients.pop(client, None)

    async def _answer(self, client: socket.socket) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        is_head = False
        try:
            request = await self._request(client, connection)
            self._asking.add(client)
            is_head, response = request.method == b"HEAD", await self._response(request)
        except h11.RemoteProtocolError as error:
            response = _empty(error.error_status_hint)
        finally:
            self._asking.discard(client)
        length = ("content-length", str(len(response.body)))
        headers = [*response.headers.items(), length, ("connection", "close")]
        head = h11.Response(status_code=response.status, headers=headers)
        content = connection.send(head) or b""
        if not is_head:
            content += connection.send(h11.Data(data=response.body)) or b""
        await self._write(client, content + (connection.send(h11.EndOfMessage()) or b""))

    async def _request(self, client: socket.socket, connection: h11.Connection) -> h11.Request:
        """Return the head of the request, which has no body."""
        while (event := connection.next_event()) is h11.NEED_DATA:
            await self._host.wait_readable(client.fileno(), SECONDS)
            connection.receive_data(client.recv(_PIECE))
        if not isinstance(event, h11.Request):
            raise ConnectionResetError("the client has disconnected")
        return event

    async def _response(self, request: h11.Request) -> Response:
        if not request.http_version.startswith(b"1."):
            return _empty(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        if request.target.partition(b"?")[0] not in PATHS:
            return _empty(HTTPStatus.NOT_FOUND)
        if request.method not in (b"GET", b"HEAD"):
            return _empty(HTTPStatus.METHOD_NOT_ALLOWED)
        accept = dict(request.headers.raw_items()).get(b"accept", b"")
        wants_json = b"application/json" in accept or b"format=json" in request.target
        return await run(self._service.metrics(JSON if wants_json else PROMETHEUS), self._host)

    async def _write(self, client: socket.socket, content: bytes) -> None:
        left = memoryview(content)
        while left:
            try:
                left = left[client.send(left) :]
            except BlockingIOError:
                await self._host.wait_writable(client.fileno(), SECONDS)


def _empty(status: int) -> Response:
    return Response(status, b"", {"allow": "GET, HEAD"} if status == HTTPStatus.METHOD_NOT_ALLOWED else {})
