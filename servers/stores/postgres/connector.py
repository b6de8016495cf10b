"""Connector: always one session, sooner or later; a lost one is replaced in the background, with growing pauses.

A connection that is lost in the middle of a batch leaves a question: its backend may still write the batch. While that
is open there is no session, and so neither a read nor a commit: nothing may depend on what may still change.
"""

from __future__ import annotations

import os
import random
import time
from typing import Final

from attrs import define

from cloudid_core.backoff import Backoff
from cloudid_core.errors import StoreFailed

from ...runtime import Event, Runtime
from .address import Address
from .connection import ConnectionLost, StatementFailed
from .session import Backend, Session, open_session

PATIENCE: Final = 5.0
"""Seconds after a loss in which requests wait for a new session, and that a commit waits for the end of a doubt."""

PAUSES: Final = Backoff(first=0.05, longest=2.0, spread=(0.5, 1.0))


@define(eq=False)
class Doubt:
    """A batch that is on its way. Once settled, `base` is its first version, or `None`: it was not written."""

    backend: Backend
    number: int
    settled: Event
    is_settled: bool = False
    base: int | None = None


class Connector:
    """The session of one store. `writer` names the store's row in `cloudid.writer`."""

    _runtime: Runtime
    _connected: Event

    def __init__(self, address: Address, *, is_exclusive: bool) -> None:
        self._address = address
        self._is_exclusive = is_exclusive
        self._session: Session | None = None
        self._doubt: Doubt | None = None
        self._identity = ""
        self._reason = ""
        self._retries = 0
        self._lost_at = 0.0
        self.writer: Final = os.urandom(12).hex().encode()
        self.timeline = 0
        """The database's timeline at the last connection: it grows with each fail-over. 0: unknown."""
        self.public_database = ""

    async def open(self, runtime: Runtime) -> None:
        """The first session; raises `StoreFailed` when there is none at once."""
        self._runtime = runtime
        self._connected = runtime.new_event()
        await self._connect()

    async def session(self) -> Session:
        """The session, when there is one soon after the last one was lost. Raises `StoreFailed`."""
        if self._session is None and (patience := self._lost_at + PATIENCE - time.monotonic()) > 0:
            await self._runtime.wait(self._connected, patience)
        if self._session is None:
            raise StoreFailed(self._reason)
        return self._session

    def drop(self, session: Session, reason: str) -> None:
        """Give up a session; the first who does so has another one made."""
        if self._session is session:
            self._session = None
            self._lost_at = time.monotonic()
            self._reason = f"the connection to the database was lost: {reason}"
            self._connected = self._runtime.new_event()
            self._runtime.start(self._reconnect)
            session.close()

    def begin(self, session: Session, number: int) -> Doubt:
        """Before a batch is sent: a reader may be the first to notice that the connection is lost."""
        self._doubt = Doubt(session.backend, number, self._runtime.new_event())
        return self._doubt

    def end(self) -> None:
        """The database has answered."""
        self._doubt = None
        self._retries = 0

    async def outcome(self, doubt: Doubt) -> bool:
        """Whether the next session has soon settled what became of a batch whose connection was lost."""
        await self._runtime.wait(doubt.settled, PATIENCE)
        return doubt.is_settled

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    async def _reconnect(self) -> None:
        while self._session is None:
            pause = PAUSES.pause(self._retries, random.random()) if self._retries else 0.0
            await self._runtime.wait(self._runtime.new_event(), pause)
            self._retries += 1
            try:
                await self._connect()
            except StoreFailed as failure:
                self._reason = str(failure)
            except Exception as bug:  # noqa: BLE001  # whatever it is, the next attempt may succeed
                self._reason = f"the database cannot be used: {type(bug).__name__}"

    async def _connect(self) -> None:
        """Make a session, and settle what an older one left. Raises `StoreFailed`."""
        session = await open_session(self._runtime, self._address, is_exclusive=self._is_exclusive)
        try:
            if self._identity and session.store.id != self._identity:
                raise StoreFailed("the database has a different store than before")
            # A server that is back from the past would undo what has been answered since.
            if session.timeline is not None and session.timeline < self.timeline:
                raise StoreFailed(f"the database is back on timeline {session.timeline}, after {self.timeline}")
            if self._doubt is not None:
                await self._settle(session, self._doubt)
        except BaseException:
            session.close()
            raise
        self._identity = session.store.id
        self.timeline = session.timeline or self.timeline
        self.public_database = session.public_database
        self._session = session
        self._connected.set()

    async def _settle(self, session: Session, doubt: Doubt) -> None:
        """Find out what became of a batch, once that can no longer change. Raises `StoreFailed`."""
        try:
            await session.end(doubt.backend)
            number, base = await session.register(self.writer)
        except (ConnectionLost, StatementFailed) as failure:
            raise StoreFailed(f"the outcome of a commit is not known yet: {failure}") from None
        doubt.base = base if number == doubt.number else None
        doubt.is_settled = True
        doubt.settled.set()
        self._doubt = None
