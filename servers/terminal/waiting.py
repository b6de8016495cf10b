"""What a command waits for, for how long, and which try it is: a line on standard error, on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from .output import show_progress

INTERVAL: Final = 1.0
"""Seconds before the line appears, and between two updates."""


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Show `what` is awaited while the block runs for longer than a second. The yielded function adds a remark."""
    line = _Line(what)
    if not sys.stderr.isatty():
        yield line.remark
        return
    thread = threading.Thread(target=line.show_until_over, daemon=True)
    thread.start()
    try:
        yield line.remark
    finally:
        line.is_over.set()
        thread.join()
        show_progress("")


class _Line:
    """The line, which a thread of its own writes: the command itself stands still."""

    def __init__(self, what: str) -> None:
        self._what, self._remark, self._began = what, "", time.monotonic()
        self.is_over = threading.Event()

    def remark(self, text: str) -> None:
        self._remark = text

    def show_until_over(self) -> None:
        while not self.is_over.wait(INTERVAL):
            remark = f" ({self._remark})" if self._remark else ""
            seconds = time.monotonic() - self._began
            show_progress(f"waiting for {self._what}: {seconds:.0f} s{remark}; Ctrl-C stops waiting")
