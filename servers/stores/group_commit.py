"""Group commit: commits that arrive while one batch is being written form the next.

One transaction, and so one wait for the disk, serves all who ask at the same time; nobody waits for a timer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

from attrs import define

from cloudid_core.effects import Commit
from cloudid_core.errors import OutcomeUnknown, StoreFailed

from ..common.runtime import Event, Runtime
from . import Outcome, Store


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
    """The queue in front of a store. An asker that is cancelled leaves its commit in the queue."""

    def __init__(self, store: Store, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime
        self._waiting: list[_Ticket] = []
        self._writing = False

    async def commit(self, commit: Commit) -> int:
        """The version of the commit. Raises what the store answered instead."""
        outcome: Outcome | None
        if self._store.waits:
            ticket = _Ticket(commit, self._runtime.new_event())
            self._waiting.append(ticket)
            if not self._writing:
                self._writing = True
                self._runtime.start(self._write)
            await ticket.done.wait()
            outcome = ticket.outcome
        else:
            [outcome] = self._store.commit_all((commit,))
        if isinstance(outcome, int):
            return outcome
        raise outcome or StoreFailed("the store gave no answer")

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._write_batch(batch)
        finally:
            self._writing = False

    async def _write_batch(self, batch: list[_Ticket]) -> None:
        outcomes: Sequence[Outcome] = ()
        try:
            outcomes = await self._runtime.in_thread(self._store.commit_all, [ticket.commit for ticket in batch])
        except Exception:  # noqa: BLE001  # a store raises nothing, and if it does, nobody knows what it did
            pass
        finally:
            unknown = repeat(OutcomeUnknown("the store did not say"))
            for ticket, outcome in zip(batch, chain(outcomes, unknown), strict=False):
                ticket.settle(outcome)
