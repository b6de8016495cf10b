"""Batches: requests that arrive while one batch is worked on form the next. No timer delays any.

A batch costs its round trip, and one of commits a wait for the disk, whatever its size. So a batch begins when a turn
of the loop brings no further request: those whose callers were ready to run take part in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Generic, TypeVar

from attrs import define

from cloudid_core.errors import HostFailure, OutcomeUnknown, StoreFailed

from ..runtime import Event, Runtime

Q = TypeVar("Q")
A = TypeVar("A")

ENOUGH: Final = 64
"""A batch of so many requests waits for no further ones."""


@define(eq=False)
class Ticket(Generic[Q, A]):
    """One request in the queue, and in the end its answer or failure."""

    request: Q
    batch_done: Event
    """The end of the batch that it takes part in."""
    is_settled: bool = False
    is_withdrawn: bool = False
    """Its caller was cancelled."""
    _outcome: A | HostFailure | None = None

    def settle(self, outcome: A | HostFailure) -> None:
        """Its caller continues when the batch is done."""
        self._outcome = outcome
        self.is_settled = True

    def answer(self) -> A:
        if isinstance(self._outcome, HostFailure):
            failure, self._outcome = self._outcome, None
            try:
                raise failure
            finally:
                del failure  # it refers to this frame, which must not refer back to it
        return self._outcome  # type: ignore[return-value]  # an answer may be None


class Batches(Generic[Q, A]):
    """Lets `work` settle the tickets of one batch after the other, in the background.

    `work` answers the tickets that it leaves for the next batch. Those that it neither settles nor leaves, because it
    fails or is cancelled, get `failure`. A caller that is cancelled withdraws its ticket: no batch that begins later
    has it, even if one that is under way leaves it for the next.
    """

    def __init__(
        self,
        runtime: Runtime,
        work: Callable[[Sequence[Ticket[Q, A]]], Coroutine[Any, Any, Sequence[Ticket[Q, A]]]],
        failure: type[OutcomeUnknown | StoreFailed] = OutcomeUnknown,
        note: Callable[[int, float], None] = lambda size, seconds: None,
    ) -> None:
        """`note` is called with the size of each batch, and how many seconds it took."""
        self._runtime = runtime
        self._work = work
        self._failure = failure
        self._note = note
        self._waiting: dict[Ticket[Q, A], None] = {}
        self._done = runtime.new_event()
        """The end of the next batch. All of its tickets share it, since an event for each is not free."""
        self._is_working = False

    async def ask(self, request: Q) -> A:
        ticket: Ticket[Q, A] = Ticket(request, self._done)
        self._waiting[ticket] = None
        if not self._is_working:
            self._is_working = True
            self._runtime.start(self._work_off)
        try:
            while not ticket.is_settled:
                await ticket.batch_done.wait()
        except BaseException:
            ticket.is_withdrawn = True
            self._waiting.pop(ticket, None)
            raise
        return ticket.answer()

    async def _work_off(self) -> None:
        try:
            while self._waiting:
                count = 0
                while count < len(self._waiting) < ENOUGH:  # until a turn of the loop brings no further request
                    count = len(self._waiting)
                    await self._runtime.next_turn()
                await self._work_on_next()
        finally:
            self._is_working = False

    async def _work_on_next(self) -> None:
        batch, self._waiting = list(self._waiting), {}
        done, self._done = self._done, self._runtime.new_event()
        left: Sequence[Ticket[Q, A]] = ()
        started = time.monotonic()
        try:
            left = await self._work(batch)
            self._note(len(batch) - len(left), time.monotonic() - started)
        except Exception:  # noqa: BLE001  # a bug here must leave no caller waiting
            pass
        finally:
            waiting = {ticket: None for ticket in left if not ticket.is_withdrawn}
            for ticket in batch:
                if ticket in waiting:
                    ticket.batch_done = self._done
                elif not ticket.is_settled:
                    ticket.settle(self._failure("the store did not respond"))
            self._waiting = waiting | self._waiting
            done.set()
