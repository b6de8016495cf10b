"""Connections: how many there may be, and which one makes room for a new one."""

from __future__ import annotations

import errno
import resource
import time
from collections.abc import Hashable, Iterator, Mapping
from enum import Enum, auto
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from structlog.typing import FilteringBoundLogger

from cloudid_core.errors import Code, Refused
from cloudid_core.metrics import Numbers, put
from cloudid_core.values import network

from ..settings import ServerSettings
from .reader import ANSWER, BODY, HANDSHAKE, HEAD, IDLE, LINGER, SEND, Stage, no_room

OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of `accept` that pass."""

SURPLUS: Final = 10
"""Connections above the limit that are read as far as the request line, for the sake of health checks."""

LINGERING: Final = 128
"""Most refused connections at a time that are waited for, so that their clients can read the answer; fewer where the
limit is lower, since the process may have few descriptors."""

IN_USE_SECONDS: Final = 2.0
"""A connection that was idle, written to or worked on for less does not make room for another one of its own source;
one that is open for less, and was never answered, not while another one is idle or has had its last answer."""

RESERVE: Final = 768
"""Descriptors that are kept for everything but connections of clients: 5 lanes of 128 calls to the provider, the
store's, new ones that are about to be refused."""

LONGEST_PAUSE: Final = 0.25
"""Seconds between two looks at all connections for those that are late."""

PAUSE_SHARE: Final = 1 / 8
"""The same as a share of the shortest timeout: no connection is ended later than that after its time."""


class Admission(Enum):
    """What becomes of a new connection."""

    SERVED = auto()
    HEALTH_ONLY = auto()
    """It is above the limit: only a health check is answered."""

    REFUSED = auto()
    """There is no room, whatever it wants."""


class Connection(Protocol):
    """What is to be known of a connection."""

    @property
    def source(self) -> Hashable:
        """Who opened it, see `source_of`."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a request has come, not even bytes that are not read yet."""

    @property
    def is_exempt(self) -> bool:
        """Whether it keeps its place: the service works on a request whose caller is known by a verified token."""

    @property
    def due(self) -> float:
        """When its stage has taken too long, by the monotonic clock."""

    def end_late(self) -> None:
        """Its time is over: close it, with a word if a part of a request has come.

        The bytes of a request that came in time and lie unread, because this server was busy, are read first.
        """

    def end(self) -> None:
        """Close it soon, without a word. A request that has not begun to be answered is not executed."""

    def refuse(self, refusal: Refused) -> None:
        """Close it soon, with this answer. A request that has not begun to be answered is not executed."""

    def give_up(self, refusal: Refused) -> None:
        """Close it soon, whatever its stage, and with this answer unless another one is under way or was the last."""


C = TypeVar("C", bound=Connection)


def source_of(connection: object, peer: str, trusted_proxies: tuple[str, ...]) -> Hashable:
    """Who opened a connection: the network of the peer's address.

    A trusted proxy is no source, since it speaks for many: each of its connections counts for itself.
    """
    return connection if trusted_proxies and network.contains(trusted_proxies, peer) else network.source(peer)


class _Places(Generic[C]):
    """So many places for connections. A newcomer takes the place of one that its holder does not need, or may not keep.

    The source with most connections, the newcomer counted, gives up one, in the order of `_offer`: one that was never
    answered, if it has had time to ask; one that has waited longest for its next request; then those whose clients do
    not close, ask or read; then requests whose callers are unknown. No source gives up a connection to a source that
    has more.

    The lists are shared by all sources. Strangers can be as many sources as there are places, so a newcomer must not
    cost a look at each source: each connection has one list, and the longest waiting is first in it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.open: dict[C, dict[C, float]] = {}
        """In which of the lists each connection is."""

        self._counts: dict[Hashable, int] = {}
        """How many connections each source has."""

        self._sources: dict[int, int] = {}
        """How many sources have so many connections."""

        self._unanswered: dict[C, float] = {}
        """Without a whole request so far."""

        self._answered: dict[C, float] = {}
        """Between two requests, or amid the next one."""

        self._lingering: dict[C, float] = {}
        self._sending: dict[C, float] = {}
        self._asking: dict[C, float] = {}
        """Their requests are worked on."""

    def admit(self, connection: C) -> bool:
        self._count(connection.source, 1)
        if len(self.open) >= self._limit and not self._make_room(connection.source):
            self._count(connection.source, -1)
            return False
        self._unanswered[connection] = time.monotonic()
        self.open[connection] = self._unanswered
        return True

    def move(self, connection: C, stage: Stage) -> None:
        """Note that a connection has come to a stage. A request that has begun gains no time."""
        current = self.open[connection]
        if stage is ANSWER:
            target = self._asking
        elif stage is SEND:
            target = self._sending
        elif stage is LINGER:
            target = self._lingering
        else:
            target = current if current is self._unanswered else self._answered
        if target is not current:
            del current[connection]
            target[connection] = time.monotonic()
            self.open[connection] = target

    def remove(self, connection: C) -> None:
        current = self.open.pop(connection, None)
        if current is not None:
            del current[connection]
            self._count(connection.source, -1)

    def _count(self, source: Hashable, change: int) -> None:
        before = self._counts.pop(source, 0)
        after = before + change
        if before:
            self._sources[before] -= 1
            if not self._sources[before]:
                del self._sources[before]
        if after:
            self._counts[source] = after
            self._sources[after] = self._sources.get(after, 0) + 1

    def _make_room(self, newcomer: Hashable) -> bool:
        given_up = self._offer(newcomer)
        if given_up is None:
            return False
        is_between_requests = self.open[given_up] is self._answered
        self.remove(given_up)
        if is_between_requests and given_up.is_idle:
            given_up.end()
        else:
            given_up.give_up(no_room(Code.TOO_MANY_CONNECTIONS))
        return True

    def _offer(self, newcomer: Hashable) -> C | None:
        """Return the connection that makes room for one of this source, whose count includes it already.

        Work on a request is ended last, and only while its caller is not known by a verified token.
        """
        order = (  # with the seconds that a connection is spared, and those for a newcomer of its own source
            (self._unanswered, IN_USE_SECONDS, IN_USE_SECONDS),
            (self._answered, 0.0, IN_USE_SECONDS),
            (self._lingering, 0.0, 0.0),
            (self._unanswered, 0.0, 0.0),
            (self._sending, 0.0, IN_USE_SECONDS),
            (self._asking, 0.0, IN_USE_SECONDS),
        )
        now, most = time.monotonic(), max(self._sources)
        found, least = None, self._counts[newcomer]
        for waiting, spared, spared_itself in order:
            for connection, since in waiting.items():
                if now - since < spared:
                    break
                source = connection.source
                if self._counts[source] < least or (source == newcomer and now - since < spared_itself):
                    continue
                if waiting is self._asking and connection.is_exempt:
                    continue
                found, least = connection, self._counts[source] + 1
                if least > most:
                    return found
        return found


class Connections(Generic[C]):
    """The open connections of a server. At the limit, one of them makes room for a new one.

    Where none can, `SURPLUS` more are let in for health checks, by the same rule among themselves.
    """

    def __init__(self, limit: int) -> None:
        self._served: _Places[C] = _Places(limit)
        self._surplus: _Places[C] = _Places(SURPLUS)
        self._lingering: set[C] = set()
        self._lingering_limit = min(LINGERING, limit)
        self._limit = limit

    def put_gauges(self, numbers: Numbers) -> None:
        """How many there are, and how many there may be."""
        put(numbers, "cloudid_connections", len(self))
        put(numbers, "cloudid_connection_limit", self._limit)

    def admit(self, connection: C) -> Admission:
        """Count a new connection."""
        if self._served.admit(connection):
            return Admission.SERVED
        if self._surplus.admit(connection):
            return Admission.HEALTH_ONLY
        return Admission.REFUSED

    def mark(self, connection: C, stage: Stage) -> None:
        """Note which stage a connection has come to."""
        if connection in self._served.open:
            self._served.move(connection, stage)
        elif connection in self._surplus.open:
            self._surplus.move(connection, stage)

    def has_place(self, connection: C) -> bool:
        """Whether a connection counts, and was not given up."""
        return connection in self._served.open or connection in self._surplus.open

    def may_linger(self, connection: C) -> bool:
        """Whether a client may be waited for until it has read its last answer.

        A connection above the limit leaves its place at once. Some that have no place are waited for, but not all of a
        flood.
        """
        if connection in self._served.open or connection in self._lingering:
            return True
        self._surplus.remove(connection)
        if len(self._lingering) >= self._lingering_limit:
            return False
        self._lingering.add(connection)
        return True

    def remove(self, connection: C) -> None:
        """It is closed, or soon will be. Does nothing if it was removed before."""
        self._served.remove(connection)
        self._surplus.remove(connection)
        self._lingering.discard(connection)

    def end_late(self, now: float) -> None:
        """End those whose stage has taken too long by now, on the monotonic clock."""
        for connection in self:
            if connection.due <= now:
                connection.end_late()

    def end_idle(self) -> None:
        """Close all that are idle."""
        for connection in self:
            if connection.is_idle:
                connection.end()

    def __iter__(self) -> Iterator[C]:
        """Those that are open at this moment."""
        return iter((*self._served.open, *self._surplus.open))

    def __len__(self) -> int:
        return len(self._served.open) + len(self._surplus.open)


def timeouts(settings: ServerSettings) -> Mapping[Stage, float]:
    """How many seconds each stage of a connection may take."""
    return {
        HANDSHAKE: settings.head_timeout,
        IDLE: settings.idle_timeout,
        HEAD: settings.head_timeout,
        BODY: settings.body_timeout,
        ANSWER: inf,
        SEND: inf,
        LINGER: inf,
    }


def look_pause(timeouts: Mapping[Stage, float]) -> float:
    """Seconds between two looks at all connections for those that are late."""
    return min(LONGEST_PAUSE, min(timeouts.values()) * PAUSE_SHARE)


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
