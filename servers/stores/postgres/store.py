"""The `Store` on PostgreSQL: group commit, coalesced reads, and what a failure of the database means for a commit.

Commits that arrive while a batch is written form the next, which is one statement and one transaction. A commit that
touches what an earlier one of the batch writes waits for the batch after it. Those whose expectations do not hold are
named in the answer; nothing of the batch is written then, and the others are sent again. So is a batch that was
certainly not written because its connection was lost.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Final

from psycopg.pq.abc import PGresult as Result

from cloudid_core.backoff import Backoff
from cloudid_core.effects import ClockReading, Commit, Entry
from cloudid_core.errors import HostFailure, OutcomeUnknown, StoreFailed

from ...runtime import Runtime
from ..batches import Batches
from ..groups import CommitTicket, Mismatches, fail, independent, without_conflicts
from ..reads import Answer, KeyList, Question, Read
from . import schema, statements
from .address import Address
from .batch import LIMITS, parameters_of
from .connection import ConnectionLost, StatementFailed
from .connector import Connector
from .session import ANSWER_SECONDS, READ_ONLY, Session, prepare

COLLISIONS: Final = 20
"""How often a batch may meet other nodes' commits."""

LOSSES: Final = 3
"""How often a batch, or a read, may lose its connection."""

PAUSES: Final = Backoff(first=0.002, longest=0.2, spread=(0.0, 1.0))
READ_ONLY_SECONDS: Final = 1.0
"""How long commits are refused after the database said that it is read-only, before another connection is tried."""

MOST_READS: Final = 512

COLLIDED: Final = frozenset({"40001", "40P01", "23505"})
"""Another node's commit came in between: send it again."""

FORGOTTEN: Final = frozenset({"26000", "0A000"})
"""The connection's prepared statements are gone or outdated: use another."""

FAULTS_OF_ONE: Final = ("22", "23", "54")
"""Classes of failures that one commit brings upon its batch."""


class PostgresStore:
    """Entries in the database at `address`. `makes` is for `init`: the mode of the store to make if there is none.

    `open` raises `StoreFailed` when there is no store, or one that is not ours, and when another one of its users is
    exclusive, or there is another user at all and this one is exclusive. Later losses of the connection are
    repaired in the background.
    """

    _runtime: Runtime
    _reads: Batches[Question, Answer]
    _commits: Batches[Commit, int]

    def __init__(self, address: Address, makes: schema.Mode | None = None, *, is_exclusive: bool = False) -> None:
        self._address = address
        self._connector = Connector(address, is_exclusive=is_exclusive)
        self._makes = makes
        self._batch = 0
        self._read_only_until = 0.0
        self.clock: ClockReading | None = None
        """The database's clock, beside this machine's; `None` before the first commit."""

    def __repr__(self) -> str:
        return f"<PostgresStore {self._address}>"

    @property
    def timeline(self) -> int:
        """The database's timeline at the last connection: it grows with each fail-over. 0: unknown."""
        return self._connector.timeline

    async def open(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._reads = Batches(runtime, self._read_batch, StoreFailed)
        self._commits = Batches(runtime, self._write_batch, note=runtime.note_batch)
        if self._makes is not None:
            await prepare(runtime, self._address, self._makes)
        await self._connector.open(runtime)

    async def read(self, key: str) -> Entry | None:
        return (await self.read_all((key,))).get(key)

    async def read_all(self, keys: Sequence[str]) -> Mapping[str, Entry]:
        wanted = tuple(key for key in keys if _can_be_stored(key))
        if not wanted:
            return {}
        found = await self._reads.ask(wanted)
        assert not isinstance(found, tuple)
        return found

    async def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        after = after.partition("\0")[0]  # no stored key has one, so none is between the two
        if not _can_be_stored(prefix):
            return ()
        if not _can_be_stored(after):
            raise StoreFailed("the database cannot compare such a key")
        found = await self._reads.ask(KeyList(prefix, after, limit))
        assert isinstance(found, tuple)
        return found

    async def commit(self, commit: Commit) -> int:
        if not _can_be_stored("".join((*commit.expects, *commit.puts, *commit.deletes))):
            raise StoreFailed("the database cannot hold such a key")
        return await self._commits.ask(commit)

    def close(self) -> None:
        self._connector.close()

    # Reading

    async def _read_batch(self, batch: Sequence[Read]) -> Sequence[Read]:
        now, later = batch[:MOST_READS], batch[MOST_READS:]
        try:
            await self._read_together(now)
        except (HostFailure, StatementFailed) as failure:
            for ticket in now:
                if not ticket.is_settled:
                    ticket.settle(StoreFailed(f"the store could not be read: {failure}"))
        return later

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
        raise StoreFailed("the connection is lost again and again")

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

    async def _write_batch(self, batch: Sequence[CommitTicket]) -> Sequence[CommitTicket]:
        now, later = independent(batch, LIMITS)
        await self._write_together(now)
        return later

    async def _write_together(self, tickets: Sequence[CommitTicket]) -> None:
        """In one statement; those whose expectations do not hold fail, and the others are sent again."""
        collisions = losses = 0
        while tickets and collisions < COLLISIONS and losses < LOSSES:
            try:
                answer = await self._send(tickets)
            except StatementFailed as failure:
                if failure.state in COLLIDED:
                    collisions += 1
                    pause = PAUSES.pause(collisions, random.random())
                    await self._runtime.wait(self._runtime.new_event(), pause)
                    continue
                if failure.state.startswith(FAULTS_OF_ONE) and len(tickets) > 1:
                    for ticket in tickets:
                        await self._write_together([ticket])
                else:
                    fail(tickets, StoreFailed(f"the database refused a commit: {failure}"))
                return
            except (StoreFailed, OutcomeUnknown) as failure:
                fail(tickets, failure)
                return
            if isinstance(answer, int):
                for place, ticket in enumerate(tickets):
                    ticket.settle(answer + place)
                return
            if answer is None:
                losses += 1
            else:
                tickets = without_conflicts(tickets, answer)
        fail(tickets, StoreFailed("other commits, or losses of the connection, kept coming"))

    async def _send(self, tickets: Sequence[CommitTicket]) -> int | Mismatches | None:
        """The first version, or what does not hold; `None` when nothing was written and it can be sent again.

        Raises `StatementFailed` and `StoreFailed` (not written), or `OutcomeUnknown`.
        """
        if time.monotonic() < self._read_only_until:
            raise StoreFailed("the database is read-only")
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
            raise

    async def _send_on(self, session: Session, tickets: Sequence[CommitTicket]) -> int | Mismatches | None:
        if session.timeline is None:
            raise StatementFailed(READ_ONLY, "the database is a standby")
        try:
            if not session.is_registered:
                await session.register(self._connector.writer)
            session.writer.check()
        except ConnectionLost as loss:
            self._connector.drop(session, str(loss))
            return None
        self._batch += 1
        parameters = parameters_of(tickets, self._connector.writer, session.name, self._batch, session.timeline)
        doubt = self._connector.begin(session, self._batch)
        started = time.time()
        try:
            result = await session.writer.ask(session.statement, parameters, ANSWER_SECONDS)
        except ConnectionLost as loss:
            self._connector.drop(session, str(loss))
            if not await self._connector.outcome(doubt):
                raise OutcomeUnknown("the connection to the database was lost in the middle of a commit") from None
            return doubt.base
        except StatementFailed:
            self._connector.end()
            raise
        self._connector.end()
        return self._read_answer(session, result, started)

    def _read_answer(self, session: Session, result: Result, started: float) -> int | Mismatches | None:
        if not result.ntuples:
            session.is_registered = False
            return None
        if result.get_value(0, 0) is None:
            ended = time.time()
            clock = statements.float_of(result.get_value(0, 2))
            self.clock = ClockReading(clock - (started + ended) / 2, (ended - started) / 2)
            return statements.number_of(result.get_value(0, 1))
        return {
            (result.get_value(row, 0) or b"").decode(): statements.number_of(result.get_value(row, 1))
            for row in range(result.ntuples)
        }


def _can_be_stored(key: str) -> bool:
    """PostgreSQL's texts are valid UTF-8 without a zero."""
    try:
        key.encode()
    except UnicodeError:
        return False
    return "\0" not in key
