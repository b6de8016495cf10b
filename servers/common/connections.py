"""Connections: how many there may be, and which one makes room for a new one."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator, Mapping
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from structlog.typing import FilteringBoundLogger

from .reader import Stage
from .settings import ServerSettings

OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of `accept` that pass."""

RESERVE: Final = 512
"""Descriptors that are kept for everything but connections of clients: the provider's, the store's, new ones that are
about to be refused."""


class Idle(Protocol):
    """A connection on which no request is under way."""

    def end(self) -> None:
        """Close it soon. Called only while it is idle."""
        ...


C = TypeVar("C", bound=Idle)


class Connections(Generic[C]):
    """The open connections of a server. At the limit, the one that is idle for longest is closed for a new one."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: set[C] = set()
        self._idle: dict[C, None] = {}

    def admit(self, connection: C) -> bool:
        """Count a new connection, as an idle one. False: there is no room for it."""
        if len(self._open) >= self._limit:
            longest = next(iter(self._idle), None)
            if longest is None:
                return False
            self.remove(longest)
            longest.end()
        self._open.add(connection)
        self._idle[connection] = None
        return True

    def mark_idle(self, connection: C) -> None:
        """It waits for a request. Does nothing if it was removed."""
        if connection in self._open:
            self._idle[connection] = None

    def mark_busy(self, connection: C) -> None:
        """It has a request under way."""
        self._idle.pop(connection, None)

    def remove(self, connection: C) -> None:
        """It is closed, or soon will be. Does nothing if it was removed before."""
        self._open.discard(connection)
        self._idle.pop(connection, None)

    def end_idle(self) -> None:
        """Close all that are idle."""
        for connection in tuple(self._idle):
            connection.end()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[C]:
        return iter(tuple(self._open))


def timeouts(settings: ServerSettings) -> Mapping[Stage, float]:
    """How many seconds each stage of a connection may take."""
    return {
        Stage.HANDSHAKE: settings.head_timeout,
        Stage.IDLE: settings.idle_timeout,
        Stage.HEAD: settings.head_timeout,
        Stage.BODY: settings.body_timeout,
        Stage.ANSWER: inf,
    }


def affordable(limit: int, log: FilteringBoundLogger) -> int:
    """How many connections this process can hold: `limit`, or fewer if it may not open enough descriptors.

    Raises the process's own limit of descriptors where that is allowed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limit + RESERVE
    if soft != resource.RLIM_INFINITY and soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = raised
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return limit
    lowered = max(soft - RESERVE, soft // 4, 1)
    log.warning("connection limit lowered", wanted=limit, connection_limit=lowered, descriptors=soft)
    return lowered
