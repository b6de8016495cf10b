"""Session: two connections to one server, and the certainty that no older session still writes.

A connection that is lost leaves a commit that its backend may still finish. So each store has a row in `cloudid.writer`
with the name of its newest session, and each batch holds that row while it is written and leaves its number there. A
new session ends the old backend, takes over the row, and so learns whether the last batch was written: from then on
nothing of the old session can be written any more.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Final

import psycopg
from attrs import define, field, frozen
from psycopg.pq.abc import PGresult as Result

from cloudid_core.errors import StoreFailed

from ...runtime import Runtime
from ..store import FORMAT
from . import schema, statements
from .address import Address
from .connection import Connection, ConnectionLost, Statement, StatementFailed

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 15.0
"""Longer than the database's own limit for a statement, so that it is mostly the database that gives up."""

TRIALS: Final = 30
TRIAL_PAUSE: Final = 0.1
"""Seconds between two attempts to have a store of an older format alone."""

ROW_LOCKS_RETRY_SECONDS: Final = 60.0
"""How long after a failed attempt to add row locks the next one is made. Each may delay all commits for a second."""

READ_ONLY: Final = "25006"
LAST_TIMELINE: Final = 2 ** (63 - schema.TIMELINE_BIT) - 1


@frozen
class Backend:
    """The process at the server that serves a connection. Process numbers are used again, hence `started`."""

    pid: int
    started: bytes


@define(eq=False)
class Session:
    """Reads have a connection of their own, so that none waits for a write."""

    store: schema.Store
    timeline: int | None
    """How often the database has failed over; `None` on a standby, which takes no writes."""

    writer: Connection = field(repr=False)
    reader: Connection = field(repr=False)
    backend: Backend
    holds_lock: bool
    """Whether this session keeps commands out that need the store for themselves."""
    public_database: str
    """The database, if every role of its server may connect to it."""
    name: bytes = field(factory=lambda: os.urandom(12).hex().encode())
    is_registered: bool = False
    row_locks_retry_at: float | None = None
    """When to try again to add row locks to a store of an earlier release; `None` if there is nothing to add."""

    @property
    def statement(self) -> Statement:
        return statements.COMMIT[self.store.mode]

    async def end(self, backend: Backend) -> None:
        """End the backend of an older session, if it is there. Some engines cannot; `register` then waits for it."""
        with suppress(StatementFailed):
            await self.writer.ask(statements.TERMINATE, (statements.int4(backend.pid), backend.started), ANSWER_SECONDS)

    async def hold_lock(self) -> None:
        """Take the lock that a role without rights on the store kept from this session.

        Raises `StoreFailed` when a command has the store for itself meanwhile.
        """
        if not self.holds_lock:
            self.holds_lock = await _lock(self.writer, self.store.mode, is_exclusive=False)

    async def add_row_locks(self) -> None:
        """Add row locks if the tables were locked when this session began. Until then the former locks are used.

        Raises `ConnectionLost`.
        """
        if self.row_locks_retry_at is not None and time.monotonic() >= self.row_locks_retry_at:
            self.row_locks_retry_at = time.monotonic() + ROW_LOCKS_RETRY_SECONDS
            with suppress(StatementFailed):  # a commit needs none of it, and continues
                if not await schema.replace_advisory_locks(self.writer):
                    self.row_locks_retry_at = None

    async def register(self, writer: bytes) -> tuple[int, int]:
        """Become the only session that can write for this writer: its last batch that was written, and its version.

        Raises `ConnectionLost` or `StatementFailed`.
        """
        result = await self.writer.ask(statements.REGISTER, (writer, self.name), ANSWER_SECONDS)
        self.is_registered = True
        await self.writer.ask(statements.FORGET_WRITERS, (), ANSWER_SECONDS)
        return statements.number_of(result.get_value(0, 0)), statements.number_of(result.get_value(0, 1))

    def close(self) -> None:
        self.writer.close()
        self.reader.close()


async def prepare(runtime: Runtime, address: Address, mode: schema.Mode) -> None:
    """Make the store in this database, unless it is there. Raises `StoreFailed`."""
    try:
        connection = await _connect(runtime, await runtime.in_thread(Address.resolved, address))
        try:
            await schema.prepare(connection, mode)
        finally:
            connection.close()
    except (ConnectionLost, StatementFailed) as failure:
        raise StoreFailed(f"the database cannot be used: {failure}") from None


def public_database(address: Address) -> str:
    """The database, if every role of its server may connect to it. Blocks. Raises `StoreFailed`."""
    try:
        with psycopg.connect(address.resolved().conninfo().decode(), connect_timeout=int(CONNECT_SECONDS)) as asked:
            row = asked.execute(statements.PUBLIC_DATABASE.sql.encode()).fetchone()
    except psycopg.Error as failure:
        raise StoreFailed(f"the database cannot be used: {' '.join(str(failure).split())}") from None
    return row[0] if row else ""


async def open_session(runtime: Runtime, address: Address, *, is_exclusive: bool) -> Session:
    """Connect and look at what is there; refuse a store that others use in a way that excludes this one.

    Raises `StoreFailed`.
    """
    try:
        resolved = await runtime.in_thread(Address.resolved, address)
        writer = await _connect(runtime, resolved)
        try:
            return await _with_writer(runtime, resolved, writer, is_exclusive)
        except BaseException:
            writer.close()
            raise
    except (ConnectionLost, StatementFailed) as failure:
        raise StoreFailed(f"the database cannot be used: {failure}") from None


async def _with_writer(runtime: Runtime, address: Address, writer: Connection, is_exclusive: bool) -> Session:
    store = await _taken_over(runtime, writer)
    holds_lock = await _lock(writer, store.mode, is_exclusive=is_exclusive)
    public = await _asked(writer, store.mode, statements.PUBLIC_DATABASE)
    timeline = await _timeline(writer, store.mode)
    is_locked = False
    if store.mode is schema.Mode.KEYS and timeline is not None:
        is_locked = await schema.replace_advisory_locks(writer)
    settings = statements.settings_of(store.mode)
    await writer.run(settings, ANSWER_SECONDS)
    started = await _asked(writer, store.mode, statements.BACKEND_START)
    backend = Backend(writer.pid, (started.get_value(0, 0) if started and started.ntuples else None) or b"")
    reader = await _connect(runtime, address.only(*writer.server))
    try:
        await reader.run(settings, ANSWER_SECONDS)
    except BaseException:
        reader.close()
        raise
    return Session(
        store,
        timeline,
        writer,
        reader,
        backend,
        holds_lock=holds_lock,
        public_database=(public.get_value(0, 0) or b"").decode() if public is not None and public.ntuples else "",
        row_locks_retry_at=time.monotonic() + ROW_LOCKS_RETRY_SECONDS if is_locked else None,
    )


async def _taken_over(runtime: Runtime, connection: Connection) -> schema.Store:
    """The store in the format of this release. Raises `StoreFailed` while nodes of an older one use it.

    Other nodes of this release may be taking it over at the same time.
    """
    for _ in range(TRIALS):
        store = await schema.find(connection)
        if store.format >= FORMAT:
            return store
        if await _is_locked(connection, store.mode, statements.OWN):
            await schema.take_over(connection)
            await _is_locked(connection, store.mode, statements.DISOWN)
        else:
            await runtime.wait(runtime.new_event(), TRIAL_PAUSE)
    raise StoreFailed(
        f"nodes of an older release use the store, whose format is {store.format}, but this release needs "
        f"{FORMAT}: stop all of them, then start this one"
    )


async def _connect(runtime: Runtime, address: Address) -> Connection:
    return await Connection.open(runtime, address.conninfo(), CONNECT_SECONDS)


async def _lock(connection: Connection, mode: schema.Mode, *, is_exclusive: bool) -> bool:
    """Keep commands that need the store for themselves apart from all others. Some engines have no such locks.

    Return whether the lock is held. A role without rights on the store cannot keep a server out; to have the store for
    itself, a command needs the lock. Raises `StoreFailed`.
    """
    if await _is_locked(connection, mode, statements.OWN if is_exclusive else statements.SHARE):
        return True
    rivals = await _asked(
        connection, mode, statements.RIVALS, statements.int4(statements.USE), statements.boolean(is_exclusive)
    )
    has_rivals = rivals is None or statements.number_of(rivals.get_value(0, 0)) > 0
    if is_exclusive and has_rivals:
        raise StoreFailed("the store is in use: stop all servers and other commands that have it open")
    if is_exclusive:
        raise StoreFailed(
            "a database role without access to the store holds its lock: end its sessions, and revoke "
            "CONNECT on the database from PUBLIC"
        )
    if has_rivals:
        raise StoreFailed("the store is being copied: wait until the copy is complete")
    return False


async def _is_locked(connection: Connection, mode: schema.Mode, statement: Statement) -> bool:
    result = await _asked(connection, mode, statement, statements.int4(statements.USE))
    return result is None or result.get_value(0, 0) == b"\x01"


async def _timeline(connection: Connection, mode: schema.Mode) -> int | None:
    """Other engines have no timelines, and lose no commit in a fail-over."""
    result = await _asked(connection, mode, statements.TIMELINE)
    if result is None:
        return 0
    shown = result.get_value(0, 0)
    timeline = None if shown is None else int(shown, 16)
    if timeline is not None and timeline > LAST_TIMELINE:
        raise StoreFailed("the database has failed over too often")
    return timeline


async def _asked(connection: Connection, mode: schema.Mode, statement: Statement, *parameters: bytes) -> Result | None:
    """The answer; `None` of another engine that does not know what it is asked."""
    try:
        return await connection.ask(statement, parameters, ANSWER_SECONDS)
    except StatementFailed:
        if mode is schema.Mode.PORTABLE:
            return None
        raise
