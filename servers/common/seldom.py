"""Seldom: a warning that would come thousands of times comes once a minute."""

from __future__ import annotations

import time
from math import inf
from typing import Any, Final

from structlog.typing import FilteringBoundLogger

PAUSE: Final = 60.0


class Seldom:
    """One kind of warning, at most once a minute; each tells how many were left out before it."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._last = -inf
        self._left_out = 0

    def warning(self, event: str, **facts: Any) -> None:
        now = time.monotonic()
        if now - self._last < PAUSE:
            self._left_out += 1
            return
        self._log.warning(event, left_out=self._left_out, **facts)
        self._last, self._left_out = now, 0
