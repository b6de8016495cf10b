"""Batched stores: what the stores in databases share. Their reads and commits go in batches, and so fail alike.

A group is what is written as one transaction, which judges all it expects first. Two commits of which one touches what
the other writes do not go together: both would be judged by what was there before either, both would hold, and one
would be lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from attrs import frozen

from cloudid_core.effects import ClockReading, Commit, Entry
from cloudid_core.errors import Conflict, HostFailure, OutcomeUnknown, StoreFailed

from ..runtime import Runtime
from .batches import Batches, Ticket

MOST_READS: Final = 512
LOSSES: Final = 3
"""How often a batch, or a read, may lose its connection."""

CommitTicket: TypeAlias = Ticket[Commit, int]
Mismatches: TypeAlias = Mapping[str, int]
"""The versions of keys that are not at the version that a commit expected."""


@frozen
class Limits:
    """The most that goes into one group of several commits. A single one may be larger."""

    commits: int
    keys: int
    """Expected ones, each once, and written ones."""
    bytes: int
    """Of values."""


def independent(batch: Sequence[CommitTicket], most: Limits) -> tuple[list[CommitTicket], list[CommitTicket]]:
    """Those that can be written together, and those that wait for the next batch.

    No commit overtakes one that waits and touches what it writes: commits that write the same key keep their order.
    """
    now: list[CommitTicket] = []
    later: list[CommitTicket] = []
    expected: set[tuple[str, int]] = set()
    written: set[str] = set()
    read_later: set[str] = set()
    written_later: set[str] = set()
    size = 0
    for place, ticket in enumerate(batch):
        commit = ticket.request
        touched, changed = (*commit.expects, *commit.puts, *commit.deletes), (*commit.puts, *commit.deletes)
        can_go = written.isdisjoint(touched) and written_later.isdisjoint(touched) and read_later.isdisjoint(changed)
        if not can_go:
            later.append(ticket)
            read_later.update(commit.expects)
            written_later.update(changed)
            continue
        expected.update(commit.expects.items())
        written.update(commit.puts, commit.deletes)
        size += sum(map(len, commit.puts.values()))
        if now and (len(now) == most.commits or len(expected) + len(written) > most.keys or size > most.bytes):
            later += batch[place:]
            break
        now.append(ticket)
    return now, later


def without_conflicts(tickets: Sequence[CommitTicket], found: Mismatches) -> list[CommitTicket]:
    """Settle those whose expectations do not hold; answers the others. `found`: versions that were not expected."""
    left: list[CommitTicket] = []
    for ticket in tickets:
        expects = ticket.request.expects
        wrong = next((key for key, version in expects.items() if found.get(key, version) != version), None)
        if wrong is None:
            left.append(ticket)
        else:
            ticket.settle(Conflict(wrong))
    return left


@frozen
class KeyList:
    """The first `limit` keys that start with `prefix` and sort after `after`."""

    prefix: str
    after: str
    limit: int


Question: TypeAlias = "tuple[str, ...] | KeyList"
"""Keys whose entries are wanted, or which keys to list."""
Answer: TypeAlias = "Mapping[str, Entry] | tuple[str, ...]"
Read: TypeAlias = Ticket[Question, Answer]


class BatchedStore:
    """A subclass reads and writes what is batched together. No key that is stored has a zero in it."""

    LIMITS: ClassVar[Limits]
    FAILURES: ClassVar[tuple[type[Exception], ...]] = (HostFailure,)
    """What `_read_together` raises."""

    clock: ClockReading | None = None
    """The database's clock, or its machines', beside this machine's; `None` before the first commit."""

    _address: Any
    """Its text shows no secret."""
    _runtime: Runtime
    _reads: Batches[Question, Answer]
    _commits: Batches[Commit, int]

    @property
    def public_database(self) -> str:
        return ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._address}>"

    def _start(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._reads = Batches(runtime, self._read_batch, StoreFailed)
        self._commits = Batches(runtime, self._write_batch, note=runtime.note_batch)

    async def read(self, key: str) -> Entry | None:
        return (await self.read_all((key,))).get(key)

    async def read_all(self, keys: Sequence[str]) -> Mapping[str, Entry]:
        wanted = tuple(key for key in keys if _can_be_stored(key))
        found = await self._reads.ask(wanted) if wanted else {}
        assert not isinstance(found, tuple)
        return found

    async def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        after = after.partition("\0")[0]  # no key has one, so none is between the two
        if limit < 1 or not _can_be_stored(prefix):
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

    async def _read_batch(self, batch: Sequence[Read]) -> Sequence[Read]:
        now, later = batch[:MOST_READS], batch[MOST_READS:]
        try:
            await self._read_together(now)
        except self.FAILURES as failure:
            for ticket in now:
                if not ticket.is_settled:
                    ticket.settle(StoreFailed(f"the store could not be read: {failure}"))
        return later

    async def _read_together(self, tickets: Sequence[Read]) -> None:
        """Settle each."""
        raise NotImplementedError

    async def _write_batch(self, batch: Sequence[CommitTicket]) -> Sequence[CommitTicket]:
        now, later = independent(batch, self.LIMITS)
        try:
            await self._write_together(now)
        except (StoreFailed, OutcomeUnknown) as failure:
            for ticket in now:
                if not ticket.is_settled:  # each caller gets a failure of its own: exceptions collect where they pass
                    ticket.settle(type(failure)(str(failure)))
        return later

    async def _write_together(self, tickets: Sequence[CommitTicket]) -> None:
        """Those whose expectations do not hold fail, and the others are sent again."""
        losses = 0
        while tickets and losses < LOSSES:
            answer = await self._send(tickets)
            if answer is None:
                losses += 1
            elif isinstance(answer, Mapping):
                tickets = without_conflicts(tickets, answer)
            else:
                for ticket, version in zip(tickets, answer, strict=True):
                    ticket.settle(version)
                return
        if tickets:
            raise StoreFailed("the connection is lost repeatedly")

    async def _send(self, tickets: Sequence[CommitTicket]) -> Sequence[int] | Mismatches | None:
        """The versions, or what does not hold; `None` when nothing was written and it can be sent again.

        Raises `StoreFailed` (not written) or `OutcomeUnknown`.
        """
        raise NotImplementedError


def _can_be_stored(key: str) -> bool:
    """PostgreSQL's texts are valid UTF-8 without a zero."""
    try:
        key.encode()
    except UnicodeError:
        return False
    return "\0" not in key
