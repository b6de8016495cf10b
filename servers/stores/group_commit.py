"""Group commit: commits that arrive while one batch is being written form the next.

One transaction, and so one wait for the disk, serves all callers that wait at the same time; no timer delays any.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

from attrs import define

from cloudid_core.effects import Commit, Entry
from cloudid_core.errors import OutcomeUnknown, StoreFailed

from ..common.runtime import Event, Runtime
from . import BlockingStore, Outcome


@define(eq=False)
class _Ticket:
    """One commit in the queue, and in the end its outcome."""

    commit: Commit
    done: Event
    outcome: Outcome | None = None

    def settle(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.done.set()


class GroupCommit:
    """A `Store` made of a blocking one. Reads are made on the spot, batches are written in a worker thread.

    A caller that is cancelled leaves its commit in the queue.
    """

    _runtime: Runtime

    def __init__(self, store: BlockingStore) -> None:
        self._store = store
        self._waiting: list[_Ticket] = []
        self._writing = False

    async def open(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def read(self, key: str) -> Entry | None:
        return self._store.read(key)

    async def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return self._store.list(prefix, after, limit)

    async def commit(self, commit: Commit) -> int:
        ticket = _Ticket(commit, self._runtime.new_event())
        self._waiting.append(ticket)
        if not self._writing:
            self._writing = True
            self._runtime.start(self._write)
        await ticket.done.wait()
        if isinstance(ticket.outcome, int):
            return ticket.outcome
        raise ticket.outcome or StoreFailed("the store gave no answer")

    def close(self) -> None:
        self._store.close()

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._write_batch(batch)
        finally:
            self._writing = False

    async def _write_batch(self, batch: Sequence[_Ticket]) -> None:
        outcomes: Sequence[Outcome] = ()
        try:
            outcomes = await self._runtime.in_thread(self._store.commit_all, [ticket.commit for ticket in batch])
        except Exception:  # noqa: BLE001  # a store raises nothing; one that does leaves its outcomes unknown
            pass
        finally:
            unknown = repeat(OutcomeUnknown("the store did not say"))
            for ticket, outcome in zip(batch, chain(outcomes, unknown), strict=False):
                ticket.settle(outcome)
