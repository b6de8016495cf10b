"""Group commit: commits that arrive in one turn of the loop, or while a batch is being written, form the next batch.

One transaction, and so one wait for the disk, serves all callers that wait at the same time; no timer delays any.

**On the loop or off it.** A thread costs more than a quick disk does: two switches, and the interpreter's lock handed
to and fro at every step. So the loop itself waits for a disk that takes at most 2 ms, and a thread waits for a slower
one. The disk is timed when the store is opened, and at every batch that is written on the loop; times of a thread are
of no use, since they contain its waits for the lock. Off the loop, a batch is tried on the loop now and then, unless
the thread's time shows that this would hold up everything else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from cloudid_core.effects import ClockReading, Commit, Entry, Ready

from ..common.runtime import Runtime
from . import BlockingStore, Outcome
from .batches import Batches, Ticket

QUICK_SECONDS: Final = 0.002
"""A disk that usually takes no longer is waited for on the loop."""

BEARABLE_SECONDS: Final = 0.02
"""A thread that takes longer for a batch is not interrupted by a try on the loop."""

TRY_EVERY: Final = 64
"""So many batches of a thread are followed by one on the loop."""

TRIALS: Final = 3
RECENT: Final = 9
"""So many times of the disk count. Their median does: on a busy machine, single waits take long with any disk."""


class GroupCommit:
    """A `Store` made of a blocking one. Reads are made on the spot.

    A caller that is cancelled leaves its commit in the batch.
    """

    clock: ClockReading | None = None
    _runtime: Runtime
    _batches: Batches[Commit, int]

    def __init__(self, store: BlockingStore) -> None:
        self._store = store
        self._recent_seconds: deque[float] = deque(maxlen=RECENT)
        self._off_loop = 0

    async def open(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._batches = Batches(runtime, self._write)
        self._recent_seconds.append(min(self._wait_for_disk() for _ in range(TRIALS)))

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
        outcomes = await self._outcomes([ticket.request for ticket in batch])
        for ticket, outcome in zip(batch, outcomes, strict=False):  # `Batches` settles those that a store leaves out
            ticket.settle(outcome)
        return ()

    async def _outcomes(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
        is_try = self._off_loop >= TRY_EVERY
        if is_try or self._usual_seconds <= QUICK_SECONDS:
            outcomes = self._store.commit_all(commits)
            if is_try:
                self._recent_seconds.clear()
                self._off_loop = 0
            self._recent_seconds.append(self._store.waited)
            return outcomes
        outcomes = await self._runtime.in_thread(self._store.commit_all, commits)
        if self._store.waited < BEARABLE_SECONDS:
            self._off_loop += 1
        return outcomes

    @property
    def _usual_seconds(self) -> float:
        return sorted(self._recent_seconds)[len(self._recent_seconds) // 2]

    def _wait_for_disk(self) -> float:
        self._store.commit_all(())
        return self._store.waited
