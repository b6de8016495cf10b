"""Connections: how many there may be, and which one makes room for a new one."""

from __future__ import annotations

import errno
import resource
import time
from collections.abc import Iterator, Mapping
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from structlog.typing import FilteringBoundLogger

from ..common.settings import ServerSettings
from .reader import ANSWER, BODY, HANDSHAKE, HEAD, IDLE, Stage

OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of `accept` that pass."""

IN_USE_SECONDS: Final = 5.0
"""A connection that was idle for less is in use."""

RESERVE: Final = 512
"""Descriptors that are kept for everything but connections of clients: the provider's, the store's, new ones that are
about to be refused."""


class Connection(Protocol):
    """What is to be known of a connection."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a request has come."""
        ...

    def end(self) -> None:
        """Close it soon, without a word."""
        ...


C = TypeVar("C", bound=Connection)


class Connections(Generic[C]):
    """The open connections of a server. At the limit, one of them makes room for a new one.

    First that which has waited longest for its first answer: it is idle, or slow. Then that which is idle for longest,
    unless it was in use a moment ago: newcomers push out no client that is being served.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: set[C] = set()
        self._unanswered: dict[C, None] = {}
        """Without a whole request so far, in the order in which they came."""

        self._idle: dict[C, float] = {}
        """Idle after an answer, and since when; the longest idle first."""

    def admit(self, connection: C) -> bool:
        """Count a new connection. False: there is no room for it."""
        if len(self._open) >= self._limit:
            given_up = self._expendable()
            if given_up is None:
                return False
            self.remove(given_up)
            given_up.end()
        self._open.add(connection)
        self._unanswered[connection] = None
        return True

    def _expendable(self) -> C | None:
        for connection in self._unanswered:
            return connection
        for connection, since in self._idle.items():
            return connection if time.monotonic() - since >= IN_USE_SECONDS else None
        return None

    def mark(self, connection: C, stage: Stage) -> None:
        """Note which stage a connection has come to."""
        if stage is not IDLE:
            self._idle.pop(connection, None)
        elif connection in self._open and connection not in self._unanswered:
            self._idle[connection] = time.monotonic()
        if stage is ANSWER:
            self._unanswered.pop(connection, None)

    def remove(self, connection: C) -> None:
        """It is closed, or soon will be. Does nothing if it was removed before."""
        self._open.discard(connection)
        self._unanswered.pop(connection, None)
        self._idle.pop(connection, None)

    def end_idle(self) -> None:
        """Close all that are idle."""
        for connection in self:
            if connection.is_idle:
                connection.end()

    def __iter__(self) -> Iterator[C]:
        """Those that are open at this moment."""
        return iter(tuple(self._open))

    def __len__(self) -> int:
        return len(self._open)


def timeouts(settings: ServerSettings) -> Mapping[Stage, float]:
    """How many seconds each stage of a connection may take."""
    return {
        HANDSHAKE: settings.head_timeout,
        IDLE: settings.idle_timeout,
        HEAD: settings.head_timeout,
        BODY: settings.body_timeout,
        ANSWER: inf,
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
