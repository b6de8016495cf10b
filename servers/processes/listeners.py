"""Listeners: the sockets that a server accepts connections from, the same for both servers and for workers."""

from __future__ import annotations

import errno
import socket
from typing import Final

from ..settings import SettingsError, parse_address

BACKLOG: Final = 1024
"""Connections that the kernel keeps until they are accepted."""

ACCEPTED_AT_ONCE: Final = 8
"""Most connections that are accepted in one turn of the event loop. With fewer, new clients wait many turns while the
server is busy; at the connection limit, many more would push out each other unread."""

NOT_HERE: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
"""Errors of an address that this machine does not have, as of `localhost` in IPv6 where that is off."""


class AddressTaken(SettingsError):
    """Another process listens there, or another server of the same settings."""


def bind(listen: str) -> list[socket.socket]:
    """Sockets that listen on every address of a host that this machine has; port 0: one that is free.

    An empty text: none. Raises `SettingsError`.
    """
    if not listen:
        return []
    host, port = parse_address(listen)
    bound: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            try:
                bound.append(_listener(family, kind, protocol, (address[0], port, *address[2:])))
            except OSError as error:
                if error.errno not in NOT_HERE:
                    raise
                missing = error
            else:
                port = bound[0].getsockname()[1]
        if missing is not None and not bound:
            raise missing
    except (OSError, UnicodeError) as error:
        for listener in bound:
            listener.close()
        reason = error.strerror if isinstance(error, OSError) else "it is not a host name"
        is_taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        text = f"cannot listen on {listen}: {reason}"
        if is_taken:
            raise AddressTaken(f"{text}: stop the process that listens there, or choose another address") from None
        raise SettingsError(text) from None
    return bound


def _listener(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
