"""What the connections of both servers have in common: their stages, and what ends one that takes too long."""

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
    """The client has left, or has nothing more to say."""


class Shared(Generic[C]):
    """What all connections of a server share."""

    def __init__(self, app: App, settings: ServerSettings, connection_limit: int) -> None:
        self.app = app
        self.timeouts = timeouts(settings)
        self.write_timeout = settings.write_timeout
        self.heads = Heads(settings.scheme)
        self.connections: Connections[C] = Connections(connection_limit)
        self.bodies: Bodies[C] = Bodies(settings.body_memory)

    async def end_late(self, sleep: Callable[[float], Awaitable[object]]) -> None:
        """Look at all connections again and again, and end those whose stage has taken too long."""
        pause = look_pause(self.timeouts)
        while True:
            await sleep(pause)
            self.connections.end_late(time.monotonic())


class BaseConnection(ABC):
    """One client's requests and answers, one after the other. Each server adds its own way to read and write.

    See the protocol of a connection in `http1` for what has no docstring here.
    """

    def __init__(self, shared: Shared[Any]) -> None:
        self.source: Hashable = ""
        self._shared = shared
        self._reader = Reader(shared.heads)
        self._stage = HANDSHAKE
        self._since = inf
        """When the stage began, by the monotonic clock; `inf`: it may last."""

        self._asked: Exchange | None = None
        """The request that the service works on."""

        self._awaits_turn = False
        """Whether its request waits for others of its source."""

        self._refusal: Refused | None = None
        """What is said at the end, if it is not the client's."""

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
        """Whether bytes of a request have come that were not read yet."""

    @abstractmethod
    def _end_answer(self) -> None:
        """End the work on a request, whose answer says why: its time is over, or it was given up."""

    def _admit(self, peer: str) -> bool:
        """Ask for a place, or refuse it; whether there is one."""
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
        """How long the client may take to read: not long once the connection has lost its place."""
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
        """Allow a stage its time, from its beginning. Raises `Gone` between two requests while the server drains."""
        if stage is self._stage:
            return
        self._stage, self._since = stage, time.monotonic()
        self._shared.connections.mark(self, stage)
        if stage is IDLE and self._shared.app.is_draining and not self._has_unread():
            raise Gone
