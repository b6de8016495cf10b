"""Turns: tasks that run one at a time, in an order that follows from a seed, on a clock that jumps.

The clock stands still while any task can continue; then it jumps to the next one that sleeps.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from heapq import heappop, heappush
from math import inf
from typing import Any, Final, Generic, TypeVar

from ..effects import Host, Instant
from .faults import Crashed

T = TypeVar("T")

LONGEST_STORY: Final = 1_000_000
"""Turns after which a world gives up: its programs wait for something that never comes."""


class _Pause:
    """Hands control back to the world."""

    def __await__(self) -> Generator[None, None, None]:
        yield


_PAUSE: Final = _Pause()


class Task(Generic[T]):
    """A program under way in a world."""

    def __init__(self, turns: Turns, name: str, running: Coroutine[None, None, T], host: Host) -> None:
        self.name = name
        self.host = host
        self.is_done = False
        self._turns = turns
        self._running = running
        self._answer: T
        self.error: Exception | None = None
        self.waiters: list[Task[Any]] = []

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def result(self) -> T:
        """What the program returned; raises what it raised, or `RuntimeError` when it has not come to an end."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                del self  # the error refers to this frame, which must not refer back to it
        if not hasattr(self, "_answer"):
            raise RuntimeError(f"{self.name} " + ("was closed" if self.is_done else "is not done"))
        return self._answer

    def close(self) -> None:
        """Cancel the program: it ends on the spot, as in a crash."""
        if not self.is_done:
            self.is_done = True
            self._turns.forget(self)
            self._running.close()

    def advance(self) -> None:
        """Run until the next pause or the end."""
        try:
            self._running.send(None)
        except StopIteration as finished:
            self._answer = finished.value
        except Exception as error:  # noqa: BLE001  # it belongs to the program that asks for the result
            self.error = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)
        else:
            return
        self.is_done = True
        self._turns.forget(self)
        for task in self.waiters:
            self._turns.wake(task)


class Turns:
    """Runs tasks to their ends."""

    def __init__(self, seed: int, start: Instant) -> None:
        self.seed = seed
        self.clock = start
        self._chance = seed
        self._current: Task[Any] | None = None
        self._tasks: dict[Task[Any], None] = {}
        self._ready: list[Task[Any]] = []
        self._parked: dict[Task[Any], int] = {}
        """Tasks that wait, and the ticket under which each does."""
        self._alarms: list[tuple[Instant, int, Task[Any]]] = []
        self._tickets = 0

    def settle(self) -> None:
        """Let all programs run until none can, however long they sleep."""
        self._go_on(inf)

    def advance(self, seconds: float) -> None:
        """Let all programs run for this long."""
        until = self.clock + seconds
        self._go_on(until)
        self.clock = until

    def crash(self) -> None:
        """Kill the host: close all programs on the spot."""
        for task in list(self._tasks):
            task.close()
        self._ready.clear()
        self._alarms.clear()

    def _running_task(self) -> Task[Any]:
        if self._current is None:
            raise RuntimeError("a world runs its programs itself: use `perform` or `spawn`")
        return self._current

    def _start(
        self, name: str, running: Coroutine[None, None, T], host: Host, waiting: Task[Any] | None = None
    ) -> Task[T]:
        """Start a task on a host, up to its first pause; `waiting` is woken at its end."""
        task = Task(self, name, running, host)
        if waiting is not None:
            task.waiters.append(waiting)
        self._tasks[task] = None
        self._step(task)
        return task

    def _step(self, task: Task[Any]) -> None:
        before, self._current = self._current, task
        try:
            task.advance()
        finally:
            self._current = before

    def _go_on(self, until: Instant, awaited: Task[Any] | None = None) -> None:
        """Give turns until the awaited task is done, or no task can continue before that time."""
        try:
            for _ in range(LONGEST_STORY):
                if awaited is not None and awaited.is_done:
                    return
                if self._ready:
                    task = self._choose()
                    if not task.is_done:
                        self._step(task)
                elif not self._jump(until):
                    return
        except Crashed:
            self.crash()
            raise
        raise RuntimeError(f"{self} has no end: {[task.name for task in self._tasks]} are still under way")

    def _choose(self) -> Task[Any]:
        """Choose a task that can continue, by the seed."""
        choices = len(self._ready)
        if choices == 1:
            return self._ready.pop()
        self._chance = (self._chance * 6364136223846793005 + 1442695040888963407) % 2**64  # Knuth's MMIX generator
        return self._ready.pop((self._chance >> 33) % choices)

    async def _next_turn(self, me: Task[Any]) -> None:
        """Pause until the seed chooses this task."""
        self._ready.append(me)
        await _PAUSE

    async def _park(self, me: Task[Any], until: Instant = inf) -> None:
        """Pause until another task wakes this one, or the clock shows that time."""
        self._tickets += 1
        self._parked[me] = self._tickets
        if until < inf:
            heappush(self._alarms, (until, self._tickets, me))
        await _PAUSE

    async def _wait_until(self, until: Instant) -> None:
        while self.clock < until:
            await self._park(self._running_task(), until)

    def wake(self, task: Task[Any]) -> None:
        if self._parked.pop(task, None) is not None:
            self._ready.append(task)

    def _jump(self, until: Instant) -> bool:
        """Set the clock to the next alarm, unless that is later than `until`; whether anybody woke up."""
        woken = False
        while self._alarms:
            at, ticket, task = self._alarms[0]
            if self._parked.get(task) == ticket:
                if at > (self.clock if woken else until):
                    break
                self.clock = max(self.clock, at)
                self.wake(task)
                woken = True
            heappop(self._alarms)
        return woken

    def forget(self, task: Task[Any]) -> None:
        del self._tasks[task]
        self._parked.pop(task, None)
