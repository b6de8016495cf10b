"""Rounds: background work that says itself when it wants to be done again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

from cloudid_core.effects import Instant, Program
from cloudid_core.run import run

from .host import Host
from .logs import describe_error

AFTER_FAILURE: Final = 5.0
LONGEST_SLEEP: Final = 60.0
"""The wall clock may be set: look at it now and then."""


class Periodic:
    """Runs `work` whenever it is due, for as long as the host is open."""

    def __init__(self, name: str, work: Callable[[], Program[Instant]], host: Host, log: FilteringBoundLogger) -> None:
        self._name = name
        self._work = work
        self._host = host
        self._log = log
        self._due: Instant = 0.0
        self._changed = host.new_event()
        host.start(self._go_round)

    def wake_by(self, instant: Instant) -> None:
        """Ask for an earlier round."""
        if instant < self._due:
            self._due = instant
            self._changed.set()

    async def _go_round(self) -> None:
        while True:
            self._due = float("inf")
            self._due = min(self._due, await self._work_once())
            while (left := self._due - time.time()) > 0:
                await self._host.wait(self._changed, min(left, LONGEST_SLEEP))
                self._changed = self._host.new_event()

    async def _work_once(self) -> Instant:
        try:
            return await run(self._work(), self._host)
        except Exception as error:  # noqa: BLE001  # background work goes on
            self._log.error("background work failed", work=self._name, **describe_error(error))
            return time.time() + AFTER_FAILURE
