"""Connections: how many there may be, and which one makes room for a new one."""

from __future__ import annotations

import errno
import resource
import time
from collections.abc import Hashable, Iterator, Mapping
from enum import Enum, auto
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from attrs import frozen
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

RESERVE: Final = 512
"""Descriptors that are kept for everything but connections of clients: the provider's, the store's, new ones that are
about to be refused."""

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
        """Whether nothing of a request has come, not even bytes that nobody has read yet."""

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


@frozen
class _Offer(Generic[C]):
    """The connection that a source would give up."""

    connection: C
    order: int
    """Place in the order of preference; the lowest is given up first."""

    since: float
    is_between_requests: bool

    @property
    def rank(self) -> tuple[int, float]:
        """The lowest is given up first."""
        return self.order, self.since


class _Source(Generic[C]):
    """The connections of one source: how many, and what each of them waits for and since when, the longest first."""

    def __init__(self) -> None:
        self.count = 0
        self._lists: dict[C, dict[C, float]] = {}
        """In which of these lists each connection is."""

        self._unanswered: dict[C, float] = {}
        """Without a whole request so far."""

        self._answered: dict[C, float] = {}
        """Between two requests, or amid the next one."""

        self._lingering: dict[C, float] = {}
        self._sending: dict[C, float] = {}
        self._asking: dict[C, float] = {}
        """Their requests are worked on."""

    def add(self, connection: C) -> None:
        """Note a connection that was counted already."""
        self._unanswered[connection] = time.monotonic()
        self._lists[connection] = self._unanswered

    def move(self, connection: C, stage: Stage) -> None:
        """Note that a connection has come to a stage. A request that has begun gains no time."""
        current = self._lists[connection]
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
            self._lists[connection] = target

    def remove(self, connection: C) -> None:
        """Forget a connection."""
        self.count -= 1
        if (current := self._lists.pop(connection, None)) is not None:
            del current[connection]

    def offer(self, now: float, *, to_itself: bool) -> _Offer[C] | None:
        """The connection to give up, if there is one; `to_itself`: for a newcomer of this source.

        Work on a request is ended last, and only while its caller is not known by a verified token.
        """
        order = (
            (self._unanswered, IN_USE_SECONDS),
            (self._answered, IN_USE_SECONDS if to_itself else 0.0),
            (self._lingering, 0.0),
            (self._unanswered, 0.0),
            (self._sending, IN_USE_SECONDS if to_itself else 0.0),
            (self._asking, IN_USE_SECONDS if to_itself else 0.0),
        )
        for place, (waiting, spared) in enumerate(order):
            for connection, since in waiting.items():
                if now - since < spared:
                    break
                if waiting is not self._asking or not connection.is_exempt:
                    return _Offer(connection, place, since, waiting is self._answered)
        return None


class _Places(Generic[C]):
    """So many places for connections. A newcomer takes the place of one that its holder does not need, or may not keep.

    The source with most connections, the newcomer counted, gives up one, in the order of `_Source.offer`: one that was
    never answered, if it has had time to ask; one that has waited longest for its next request; then those whose
    clients do not close, ask or read; then requests whose callers are unknown. Nobody gives up a connection to a source
    that has more.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.open: dict[C, _Source[C]] = {}
        self._sources: dict[Hashable, _Source[C]] = {}

    def admit(self, connection: C) -> bool:
        source = self._sources.setdefault(connection.source, _Source())
        source.count += 1
        self.open[connection] = source
        if len(self.open) > self._limit and not self._make_room(source):
            self.remove(connection)
            return False
        source.add(connection)
        return True

    def _make_room(self, newcomer: _Source[C]) -> bool:
        most, offer, now = newcomer.count, None, time.monotonic()
        for source in self._sources.values():
            if source.count < most:
                continue
            other = source.offer(now, to_itself=source is newcomer)
            if other is not None and (offer is None or source.count > most or other.rank < offer.rank):
                most, offer = source.count, other
        if offer is None:
            return False
        given_up = offer.connection
        self.remove(given_up)
        if offer.is_between_requests and given_up.is_idle:
            given_up.end()
        else:
            given_up.give_up(no_room(Code.TOO_MANY_CONNECTIONS))
        return True

    def remove(self, connection: C) -> None:
        source = self.open.pop(connection, None)
        if source is None:
            return
        source.remove(connection)
        if not source.count:
            del self._sources[connection.source]


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
        source = self._served.open.get(connection) or self._surplus.open.get(connection)
        if source is not None:
            source.move(connection, stage)

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
