"""Streams: the bytes of one connection, plain or in TLS, with as little between the server and the socket as possible.

trio's `SocketStream` guards against misuse by several tasks at each call. Here one task reads and writes, so the
socket is used directly; nearly every answer leaves in one call that does not wait.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final, TypeAlias

import trio

CHUNK: Final = 65_536


def port_of(address: object) -> int:
    """The port in the address of a socket; 0 where it is none of IP."""
    return int(address[1]) if isinstance(address, tuple) else 0


class Plain:
    """A connection without TLS."""

    def __init__(self, stream: trio.SocketStream) -> None:
        """Takes the socket over: `stream` is of no more use."""
        self._socket = socket.socket(fileno=stream.socket.detach())

    async def do_handshake(self) -> None:
        """There is none."""

    @property
    def peer(self) -> str:
        """The client's address. Raises `OSError` if it has gone already."""
        address: str = self._socket.getpeername()[0]
        return address

    @property
    def port(self) -> int:
        """The client's port; 0 if it has none. Raises `OSError` if the client has gone already."""
        return port_of(self._socket.getpeername())

    def fileno(self) -> int:
        return self._socket.fileno()

    async def receive(self) -> bytes:
        """What has arrived, at least a byte; empty: the client sends nothing more."""
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(CHUNK)
            except BlockingIOError:  # woken for nothing
                continue

    def send_at_once(self, data: bytes) -> int:
        """Send as much as goes without waiting: how many bytes."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    async def send(self, data: bytes) -> None:
        while data := data[self.send_at_once(data) :]:
            await trio.lowlevel.wait_writable(self._socket)

    async def send_eof(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    async def close(self) -> None:
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()


class Secure:
    """A connection in TLS."""

    def __init__(self, stream: trio.SocketStream, tls: ssl.SSLContext) -> None:
        self._socket = stream.socket
        self._stream = trio.SSLStream(stream, tls, server_side=True, https_compatible=True)

    async def do_handshake(self) -> None:
        await self._stream.do_handshake()

    @property
    def peer(self) -> str:
        """The client's address. Raises `OSError` if it has gone already."""
        address: str = self._socket.getpeername()[0]
        return address

    @property
    def port(self) -> int:
        """The client's port; 0 if it has none. Raises `OSError` if the client has gone already."""
        return port_of(self._socket.getpeername())

    def fileno(self) -> int:
        return self._socket.fileno()

    async def receive(self) -> bytes:
        """What has arrived, at least a byte; empty: the client sends nothing more."""
        return bytes(await self._stream.receive_some(CHUNK))

    def send_at_once(self, data: bytes) -> int:
        """Send as much as goes without waiting: nothing, since TLS may have to read first."""
        return 0

    async def send(self, data: bytes) -> None:
        await self._stream.send_all(data)

    async def send_eof(self) -> None:
        """TLS cannot end one direction only."""

    async def close(self) -> None:
        await trio.aclose_forcefully(self._stream)


Stream: TypeAlias = Plain | Secure
