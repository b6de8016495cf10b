"""The `Store` on PostgreSQL: group commit, coalesced reads, and what a failure of the database means for a commit.

Commits that arrive while a batch is written form the next, which is one statement and one transaction. A commit that
touches what an earlier one of the batch writes waits for the batch after it. Those whose expectations do not hold are
named in the answer; nothing of the batch is written then, and the others are sent again. So is a batch that was
certainly not written because its connection was lost.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Final

from cloudid_core.backoff import Backoff
from cloudid_core.effects import ClockReading, Entry
from cloudid_core.errors import HostFailure, OutcomeUnknown, StoreFailed

from ...runtime import Runtime
from ..batched import LOSSES, BatchedStore, CommitTicket, KeyList, Limits, Mismatches, Read
from . import schema, statements
from .address import Address
from .connection import ConnectionLost, StatementFailed
from .connector import Connector
from .session import ANSWER_SECONDS, READ_ONLY, Session, prepare

COLLISIONS: Final = 20
"""How often a batch may meet other nodes' commits."""

PAUSES: Final = Backoff(first=0.002, longest=0.2, spread=(0.0, 1.0))
READ_ONLY_SECONDS: Final = 1.0
"""How long commits are refused after the database said that it is read-only, before another connection is tried."""

COLLIDED: Final = frozenset({"40001", "40P01", "23505"})
"""Another node's commit came in between: send it again."""

FORGOTTEN: Final = frozenset({"26000", "0A000"})
"""The connection's prepared statements are gone or outdated: use another."""

FAULTS_OF_ONE: Final = ("22", "23", "54")
"""Classes of failures that one commit brings upon its batch."""


class PostgresStore(BatchedStore):
    """Entries in the database at `address`. `makes` is for `init`: the mode of the store to make if there is none.

    `open` raises `StoreFailed` when there is no store, or one that is not ours, and when another one of its users is
    exclusive, or there is another user at all and this one is exclusive. Later losses of the connection are
    repaired in the background.
    """

    LIMITS = Limits(commits=schema.BATCH_VERSIONS, keys=512, bytes=4 * 2**20)
    """Each key takes a row lock."""
    FAILURES = (HostFailure, StatementFailed)

    def __init__(self, address: Address, makes: schema.Mode | None = None, *, is_exclusive: bool = False) -> None:
        self._address = address
        self._connector = Connector(address, is_exclusive=is_exclusive)
        self._makes = makes
        self._batch = 0
        self._read_only_until = 0.0

    async def open(self, runtime: Runtime) -> None:
        self._start(runtime)
        if self._makes is not None:
            await prepare(runtime, self._address, self._makes)
        await self._connector.open(runtime)

    @property
    def public_database(self) -> str:
        """The database, by the last connection, if every role of its server may connect to it."""
        return self._connector.public_database

    def close(self) -> None:
        self._connector.close()

    # Reading

    async def _read_together(self, tickets: Sequence[Read]) -> None:
        """Once more on a new session when one is lost: reads change nothing."""
        for _ in range(LOSSES):
            session = await self._connector.session()
            try:
                await self._read_entries(session, tickets)
                for ticket in tickets:
                    if not ticket.is_settled and isinstance(ticket.request, KeyList):
                        ticket.settle(await self._read_keys(session, ticket.request))
                return
            except ConnectionLost as loss:
                self._connector.drop(session, str(loss))
            except StatementFailed as failure:
                if failure.state in FORGOTTEN:
                    self._connector.drop(session, str(failure))
                elif failure.state not in COLLIDED:
                    raise
        raise StoreFailed("the connection is lost repeatedly")

    async def _read_entries(self, session: Session, tickets: Sequence[Read]) -> None:
        """The entries that all of them want, in one round trip."""
        wanted = [
            (ticket, ticket.request)
            for ticket in tickets
            if not ticket.is_settled and isinstance(ticket.request, tuple)
        ]
        if not wanted:
            return
        keys = {key.encode() for _, request in wanted for key in request}
        result = await session.reader.ask(statements.READ, (statements.texts(keys),), ANSWER_SECONDS)
        found = {
            (result.get_value(row, 0) or b"").decode(): Entry(
                result.get_value(row, 1) or b"", statements.number_of(result.get_value(row, 2))
            )
            for row in range(result.ntuples)
        }
        for ticket, request in wanted:
            ticket.settle({key: found[key] for key in request if key in found})

    async def _read_keys(self, session: Session, wanted: KeyList) -> tuple[str, ...]:
        prefix, after, limit = wanted.prefix.encode(), wanted.after.encode(), statements.int8(wanted.limit)
        end = statements.behind(wanted.prefix)
        if end is None:
            result = await session.reader.ask(statements.LIST_TO_END, (prefix, after, limit), ANSWER_SECONDS)
        else:
            result = await session.reader.ask(statements.LIST, (prefix, after, end.encode(), limit), ANSWER_SECONDS)
        return tuple((result.get_value(row, 0) or b"").decode() for row in range(result.ntuples))

    # Writing

    async def _write_together(self, tickets: Sequence[CommitTicket]) -> None:
        try:
            await super()._write_together(tickets)
        except StatementFailed as failure:
            left = [ticket for ticket in tickets if not ticket.is_settled]
            if not failure.state.startswith(FAULTS_OF_ONE) or len(left) == 1:
                raise StoreFailed(f"the database refused a commit: {failure}") from None
            for ticket in left:
                await self._write_batch([ticket])

    async def _send(self, tickets: Sequence[CommitTicket]) -> Sequence[int] | Mismatches | None:
        """Raises `StatementFailed` (not written) besides."""
        if time.monotonic() < self._read_only_until:
            raise StoreFailed("the database is read-only")
        for collision in range(1, COLLISIONS + 1):
            session = await self._connector.session()
            try:
                return await self._send_on(session, tickets)
            except StatementFailed as failure:
                if failure.state == READ_ONLY:
                    self._read_only_until = time.monotonic() + READ_ONLY_SECONDS
                    self._connector.drop(session, "it is read-only")  # a new one may find a server that takes writes
                    raise StoreFailed("the database is read-only") from None
                if failure.state in FORGOTTEN:
                    self._connector.drop(session, str(failure))
                    return None
                if failure.state not in COLLIDED:
                    raise
                await self._runtime.wait(self._runtime.new_event(), PAUSES.pause(collision, random.random()))
        raise StoreFailed("too many concurrent commits")

    async def _send_on(self, session: Session, tickets: Sequence[CommitTicket]) -> Sequence[int] | Mismatches | None:
        if session.timeline is None:
            raise StatementFailed(READ_ONLY, "the database is a standby")
        try:
            await session.hold_lock()
            await session.add_row_locks()
            if not session.is_registered:
                await session.register(self._connector.writer)
            session.writer.check()
        except ConnectionLost as loss:
            self._connector.drop(session, str(loss))
            return None
        self._batch += 1
        sender = (self._connector.writer, session.name)
        commits = [ticket.request for ticket in tickets]
        parameters = (*sender, *statements.batch(commits, self._batch, session.timeline))
        doubt = self._connector.begin(session, self._batch)
        started = time.time()
        try:
            result = await session.writer.ask(session.statement, parameters, ANSWER_SECONDS)
        except ConnectionLost as loss:
            self._connector.drop(session, str(loss))
            if not await self._connector.outcome(doubt):
                raise OutcomeUnknown("the connection to the database was lost in the middle of a commit") from None
            return None if doubt.base is None else range(doubt.base, doubt.base + len(tickets))
        except StatementFailed:
            self._connector.end()
            raise
        self._connector.end()
        if not result.ntuples:
            session.is_registered = False
            return None
        if result.get_value(0, 0) is None:
            ended = time.time()
            [clock] = statements.FLOAT8.unpack(result.get_value(0, 2) or b"")
            self.clock = ClockReading(clock - (started + ended) / 2, (ended - started) / 2)
            base = statements.number_of(result.get_value(0, 1))
            return range(base, base + len(tickets))
        return {
            (result.get_value(row, 0) or b"").decode(): statements.number_of(result.get_value(row, 1))
            for row in range(result.ntuples)
        }
