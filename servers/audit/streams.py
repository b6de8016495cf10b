"""Stream devices: a socket, or a standard output that is a pipe. Sending never exceeds the device's time limit."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from contextlib import suppress
from functools import partial
from typing import Any, Final

from cloudid_core.audit.device import SOCKET, Device

from ..machine import streams
from ..runtime import Runtime
from ..settings import SettingsError, parse_address

CHUNK: Final = select.PIPE_BUF
"""Bytes that a writable pipe accepts without waiting (POSIX)."""

CONNECTING: Final = (0, errno.EINPROGRESS)
"""Results of a non-blocking connect: connected, or in progress."""

DATAGRAM: Final = 65_507
"""Maximum bytes of a UDP datagram over IPv4."""

SHORT_DATAGRAM: Final = 1200
"""Bytes of a datagram that every network accepts."""


class Closed(OSError):
    """The connection was closed while a send waited for it. Earlier bytes may have arrived in part."""


class TooLong(OSError):
    """A datagram is longer than this machine or its network accepts. The connection can still be used."""


class Stream:
    """A connection, opened when it is needed. Raises only `OSError`, and within the device's time limit."""

    def __init__(self, device: Device, runtime: Runtime) -> None:
        self._is_socket = device.type == SOCKET
        self._address = device.options.get("address", "")
        self._kind = device.options.get("socket_type", "tcp")
        self._seconds = float(device.options.get("write_timeout", "2").removesuffix("s"))
        self._runtime = runtime
        self._socket: socket.socket | None = None
        self._fd = -1
        self._is_sending = False
        self._ends = False
        """Whether the connection was closed during a send."""

    @property
    def sends_datagrams(self) -> bool:
        """Return whether each line is a separate message of limited length."""
        return self._is_socket and self._kind == "udp"

    async def send(self, content: bytes) -> None:
        """Send all bytes. If this fails, the connection is closed."""
        until = time.monotonic() + self._seconds
        self._is_sending = True
        try:
            if self._fd >= 0 and streams.has_hung_up(self._fd):  # what is sent now would be lost
                raise OSError("the reader has closed the connection")
            if self._fd < 0:
                await self._open(until)
            if self.sends_datagrams:
                for line in content.splitlines(keepends=True):
                    await self._send(line, until)
            else:
                await self._send(content, until)
        except TooLong:
            raise
        except BaseException:
            self._close()
            raise
        finally:
            self._is_sending = self._ends = False

    def send_now(self, content: bytes) -> None:
        """Send what can be sent without waiting. For the end of a process."""
        if self._fd >= 0 and streams.is_writable(self._fd):
            with suppress(OSError):
                self._write(content[:CHUNK])

    def close(self) -> None:
        """Close the connection. The next send opens it again.

        During a send, the send itself closes the connection and fails with `Closed`. Otherwise an event loop that still
        watches the descriptor could confuse it with the next connection of the same number.
        """
        if self._is_sending:
            self._ends = True
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
            return
        self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        elif self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    async def _open(self, until: float) -> None:
        if not self._is_socket:
            self._fd = os.dup(1)
            return
        family, kind, address = await self._where()
        self._check_end()
        self._socket = socket.socket(family, kind)
        self._socket.setblocking(False)
        self._fd = self._socket.fileno()
        code = self._socket.connect_ex(address)
        if code not in CONNECTING:
            raise OSError(code, os.strerror(code))
        await self._until_writable(until)
        if code := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(code, os.strerror(code))

    async def _where(self) -> tuple[socket.AddressFamily, socket.SocketKind, Any]:
        if self._kind == "unix":
            return socket.AF_UNIX, socket.SOCK_STREAM, self._address
        try:
            host, port = parse_address(self._address)
        except SettingsError as error:
            raise OSError(str(error)) from None
        kind = socket.SOCK_DGRAM if self._kind == "udp" else socket.SOCK_STREAM
        found = await self._runtime.in_thread(partial(socket.getaddrinfo, host, type=kind), port)
        return found[0][0], kind, found[0][4]

    async def _send(self, content: bytes, until: float) -> None:
        left = memoryview(content)
        while left:
            if not streams.is_writable(self._fd):
                await self._until_writable(until)
            left = left[self._write(left if self._is_socket else left[:CHUNK]) :]

    def _write(self, content: bytes | memoryview) -> int:
        try:
            return self._socket.send(content) if self._socket is not None else os.write(self._fd, content)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno == errno.EMSGSIZE and self.sends_datagrams:
                raise TooLong(*error.args) from None
            raise

    async def _until_writable(self, until: float) -> None:
        is_writable = await self._runtime.wait_writable(self._fd, max(0.0, until - time.monotonic()))
        self._check_end()
        if not is_writable:
            raise OSError("the device did not accept its entries in time")

    def _check_end(self) -> None:
        """Raise `Closed` if the connection was closed meanwhile. Call this after each wait of a send."""
        if self._ends:
            raise Closed("the device was closed")
