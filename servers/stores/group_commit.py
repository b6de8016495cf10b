"""Group commit: commits that arrive in one turn of the loop, or while a batch is being written, form the next batch.

One transaction, and so one wait for the disk, serves all callers that wait at the same time; no timer delays any.

The loop itself waits for a quick disk, and a thread for a slow one; see `Disk`. It is timed when the store is opened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from cloudid_core.effects import ClockReading, Commit, Entry, Ready

from ..machine import Disk
from ..runtime import Runtime
from .batches import Batches, Ticket
from .store import BlockingStore, Outcome

TRIALS: Final = 3
"""Of so many waits at the start, the shortest shows how fast the disk is."""


class GroupCommit:
    """A `Store` made of a blocking one. Reads are made on the spot.

    A caller that is cancelled leaves its commit in a batch that has begun.
    """

    public_database = ""
    clock: ClockReading | None = None
    _disk: Disk
    _batches: Batches[Commit, int]

    def __init__(self, store: BlockingStore, missing: int = 0) -> None:
        self._store = store
        self.missing = missing
        """How many commits were acknowledged before it was opened, and are not there."""

    async def open(self, runtime: Runtime) -> None:
        self._batches = Batches(runtime, self._write, note=runtime.note_batch)
        self._disk = Disk(runtime, min(self._commit_all(())[1] for _ in range(TRIALS)))

    def read(self, key: str) -> Ready[Entry | None]:
        return Ready(self._store.read(key))

    def read_all(self, keys: Sequence[str]) -> Ready[Mapping[str, Entry]]:
        return Ready(self._store.read_all(keys))

    def list(self, prefix: str, after: str, limit: int) -> Ready[tuple[str, ...]]:
        return Ready(self._store.list(prefix, after, limit))

    def commit(self, commit: Commit) -> Awaitable[int]:
        return self._batches.ask(commit)

    def close(self) -> None:
        self._store.close()

    async def _write(self, batch: Sequence[Ticket[Commit, int]]) -> Sequence[Ticket[Commit, int]]:
        outcomes = await self._disk.wait(self._commit_all, [ticket.request for ticket in batch])
        for ticket, outcome in zip(batch, outcomes, strict=False):  # `Batches` settles those that a store leaves out
            ticket.settle(outcome)
        return ()

    def _commit_all(self, commits: Sequence[Commit]) -> tuple[Sequence[Outcome], float]:
        """Their outcomes, and how long the disk took."""
        return self._store.commit_all(commits), self._store.waited
