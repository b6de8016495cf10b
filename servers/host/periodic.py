"""Periodic work: the service's background programs, each of which says when it is to run again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

from cloudid_core.effects import Instant, Program
from cloudid_core.run import run

from ..logs import describe_error
from .host import Host

AFTER_FAILURE: Final = 1.0
"""Seconds between a round that failed and the next one: for so long, health tells of a store that is back as lost."""

LONGEST_SLEEP: Final = 60.0
"""Seconds. The wall clock can be set forward, so it is read again from time to time."""


class Periodic:
    """Runs `work` whenever it is due, for as long as the host is open. A round that fails is logged and repeated."""

    def __init__(self, name: str, work: Callable[[], Program[Instant]], host: Host, log: FilteringBoundLogger) -> None:
        self._name = name
        self._work = work
        self._host = host
        self._log = log
        self._due: Instant = 0.0
        self._due_on_uptime = 0.0
        self._changed = host.new_event()
        host.start(self._run)

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
                due = await run(self._work(), self._host)
            except Exception as error:  # noqa: BLE001  # background work goes on
                self._log.error("background work failed", work=self._name, **describe_error(error))
                due = time.time() + AFTER_FAILURE
            self.wake_by(due)
            while (left := self._seconds_left()) > 0:
                self._changed = self._host.new_event()
                await self._host.wait(self._changed, min(left, LONGEST_SLEEP))

    def _seconds_left(self) -> float:
        """Until the next round, by the clock that is further: the wall clock can be set back, and uptime can stop."""
        return min(self._due - time.time(), self._due_on_uptime - time.monotonic())
