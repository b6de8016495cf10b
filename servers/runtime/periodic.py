"""Periodic work: the service's background programs, each of which says when it is to run again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from cloudid_core.effects import Instant

from .runtime import Runtime

AFTER_FAILURE: Final = 1.0
"""Seconds between a failed round and the next one. For this long, health reports a recovered store as lost."""

LONGEST_SLEEP: Final = 60.0
"""Seconds. The wall clock can be set forward, so it is read again from time to time."""


class Periodic:
    """Runs `work` whenever it is due, until the runtime ends. A round that fails is reported and repeated."""

    def __init__(
        self, work: Callable[[], Awaitable[Instant]], runtime: Runtime, report: Callable[[Exception], object]
    ) -> None:
        self._work = work
        self._runtime = runtime
        self._report = report
        self._due: Instant = 0.0
        self._due_on_uptime = 0.0
        self._changed = runtime.new_event()
        runtime.start(self._run)

    def wake_by(self, instant: Instant) -> None:
        """Run no later than at this instant. A request made during a round is met by another round."""
        if instant < self._due:
            self._due = instant
            self._due_on_uptime = time.monotonic() + instant - time.time()
            self._changed.set()

    async def _run(self) -> None:
        while True:
            self._due = float("inf")
            try:
                due = await self._work()
            except Exception as error:  # noqa: BLE001  # background work continues
                self._report(error)
                due = time.time() + AFTER_FAILURE
            self.wake_by(due)
            while (left := self._seconds_left()) > 0:
                self._changed = self._runtime.new_event()
                await self._runtime.wait(self._changed, min(left, LONGEST_SLEEP))

    def _seconds_left(self) -> float:
        """Return the time until the next round by the clock that is ahead: one can be set back, the other can stop."""
        return min(self._due - time.time(), self._due_on_uptime - time.monotonic())
