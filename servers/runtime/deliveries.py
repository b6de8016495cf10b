"""Deliveries: responses that are being written, and giving back what a client did not receive."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

from .runtime import Runtime

GiveBack: TypeAlias = Callable[[], Awaitable[object]]


class Deliveries:
    """Counts the responses that are being written or given back, so that the end can wait for them."""

    def __init__(self, runtime: Runtime, report: Callable[[Exception], object]) -> None:
        """`report` is called with each failure to give something back."""
        self._runtime = runtime
        self._report = report
        self._pending = 0
        self._nothing_pending = runtime.new_event()

    @contextmanager
    def delivering(self, give_back: GiveBack) -> Iterator[None]:
        """Write a response within this context. If writing fails or is cancelled, give back what it contains."""
        self._pending += 1
        try:
            yield
        except BaseException:
            self.give_back(give_back)
            raise
        finally:
            self._end_one()

    def give_back(self, give_back: GiveBack) -> None:
        """Start to give something back."""
        self._pending += 1
        try:
            self._runtime.start(partial(self._give_back, give_back))
        except RuntimeError:  # the runtime has ended: as in a crash, the background of another start finds what is left
            self._end_one()

    async def _give_back(self, give_back: GiveBack) -> None:
        try:
            await give_back()
        except Exception as error:  # noqa: BLE001  # the client is gone
            self._report(error)
        finally:
            self._end_one()

    def _end_one(self) -> None:
        self._pending -= 1
        if not self._pending:
            self._nothing_pending.set()

    async def settle(self, seconds: float) -> None:
        """Wait until all responses are delivered or given back, but no longer than so many seconds."""
        ends_at = time.monotonic() + seconds
        while self._pending and (left := ends_at - time.monotonic()) > 0:
            self._nothing_pending = self._runtime.new_event()
            await self._runtime.wait(self._nothing_pending, left)
