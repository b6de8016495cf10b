"""The parts that the connections of both servers share: their stages, and how late connections are ended."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable
from math import inf
from typing import Any, Generic, TypeVar

from cloudid_core.dispatch import Exchange
from cloudid_core.errors import Code, Refused
from cloudid_core.service import GRACE

from ..http1 import (
    ANSWER,
    HANDSHAKE,
    IDLE,
    LINGER,
    SEND,
    Admission,
    Bodies,
    Connections,
    Heads,
    Reader,
    Stage,
    look_pause,
    no_room,
    source_of,
    timeouts,
    wire,
)
from ..settings import ServerSettings
from .app import App

C = TypeVar("C", bound="BaseConnection")


class Gone(Exception):
    """The client has left, or sends no more requests."""


class Shared(Generic[C]):
    """The objects that all connections of a server share."""

    def __init__(self, app: App, settings: ServerSettings, connection_limit: int) -> None:
        self.app = app
        self.timeouts = timeouts(settings)
        self.write_timeout = settings.write_timeout
        self.heads = Heads(settings.scheme)
        self.connections: Connections[C] = Connections(connection_limit)
        self.bodies: Bodies[C] = Bodies(settings.body_memory)

    async def end_late(self, sleep: Callable[[float], Awaitable[object]]) -> None:
        """Check all connections repeatedly, and end those whose stage has taken too long."""
        pause = look_pause(self.timeouts)
        while True:
            await sleep(pause)
            self.connections.end_late(time.monotonic())


class BaseConnection(ABC):
    """The requests and responses of one client, in order. Each server adds its own way to read and write.

    `http1` describes the protocol of a connection, including the methods that have no docstring here.
    """

    def __init__(self, shared: Shared[Any]) -> None:
        self.source: Hashable = ""
        self._shared = shared
        self._reader = Reader(shared.heads)
        self._stage = HANDSHAKE
        self._since = inf
        """When the stage began, by the monotonic clock. `inf` means that it has no time limit."""

        self._asked: Exchange | None = None
        """The request that the service is working on."""

        self._awaits_turn = False
        """Whether the request waits for others of its source."""

        self._refusal: Refused | None = None
        """The refusal to send at the end, if the server ends the connection."""

    @abstractmethod
    def end(self) -> None: ...

    @abstractmethod
    def refuse(self, refusal: Refused) -> None: ...

    def give_up(self, refusal: Refused) -> None:
        if self._stage in (SEND, LINGER):
            self.end()
        elif self._asked is not None:
            self._asked.given_up = refusal
            self._end_answer()
        else:
            self.refuse(refusal)

    @abstractmethod
    def _has_unread(self) -> bool:
        """Return whether bytes of a request have arrived that were not read yet."""

    @abstractmethod
    def _end_answer(self) -> None:
        """End the work on a request that exceeded its time or was cancelled. The response says which."""

    def _admit(self, peer: str) -> bool:
        """Request a place. Return whether there is one; otherwise refuse the request."""
        self.source = source_of(self, peer, self._shared.app.trusted_proxies)
        admission = self._shared.connections.admit(self)
        self._reader.is_health_only = admission is Admission.HEALTH_ONLY
        if admission is Admission.REFUSED:
            self.refuse(no_room(Code.TOO_MANY_CONNECTIONS))
        return admission is not Admission.REFUSED

    @property
    def due(self) -> float:
        if self._asked is not None:
            return self._since + self._asked.seconds + GRACE
        return self._since + self._shared.timeouts[self._stage]

    @property
    def is_exempt(self) -> bool:
        if self._stage is not ANSWER or self._awaits_turn:
            return False
        return self._asked is None or self._asked.is_of_known_caller

    @property
    def is_idle(self) -> bool:
        return self._stage in (HANDSHAKE, IDLE) and not self._has_unread()

    def end_late(self) -> None:
        if self._stage is ANSWER:
            self._end_answer()
        elif self.is_idle:
            self.end()
        elif self._stage not in (HANDSHAKE, IDLE):
            self.refuse(Refused(Code.CLIENT_TOO_SLOW))

    @property
    def _write_seconds(self) -> float:
        """Return how long the client may take to read. The time is short once the connection has lost its place."""
        has_place = self._shared.connections.has_place(self)
        return self._shared.write_timeout if has_place else min(self._shared.write_timeout, wire.LINGER_SECONDS)

    async def _wait_for_turn(self) -> None:
        """Wait for a turn of the loop in which the source may have another request answered."""
        self._enter(ANSWER)
        self._awaits_turn = True
        try:
            await self._shared.app.turns.wait(self.source)
        finally:
            self._awaits_turn = False

    def _enter(self, stage: Stage) -> None:
        """Begin a stage, with its time limit. Raises `Gone` between two requests while the server is stopping."""
        if stage is self._stage:
            return
        self._stage, self._since = stage, time.monotonic()
        self._shared.connections.mark(self, stage)
        if stage is IDLE and self._shared.app.is_draining and not self._has_unread():
            raise Gone
