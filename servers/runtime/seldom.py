"""Limit a repeated log line to once a minute."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Any, Final

PAUSE: Final = 60.0


class Seldom:
    """Writes at most one line a minute. Each line contains the number of lines that were omitted before it."""

    def __init__(self, write: Callable[..., object]) -> None:
        """`write` is a method of a logger, such as `log.warning`."""
        self._write = write
        self._last = -inf
        self._left_out = 0

    def __call__(self, event: str, **facts: Any) -> None:
        now = time.monotonic()
        if now - self._last < PAUSE:
            self._left_out += 1
            return
        self._write(event, left_out=self._left_out, **facts)
        self._last, self._left_out = now, 0
