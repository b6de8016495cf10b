"""A disk: the event loop itself waits for a quick one, and a thread for a slow one.

A thread costs more than a quick disk does: two switches, and the interpreter's lock handed to and fro at every step.
So the loop waits for a disk that takes at most 2 ms. Only waits on the loop are timed: times of a thread are of no use,
since they contain its waits for the lock. Off the loop, a wait is tried on the loop now and then, unless the thread's
time shows that this would hold up everything else.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from ..runtime import Runtime

A = TypeVar("A")
T = TypeVar("T")

QUICK_SECONDS: Final = 0.002
"""A disk that usually takes no longer is waited for on the loop."""

BEARABLE_SECONDS: Final = 0.02
"""A thread that takes longer is not interrupted by a try on the loop."""

TRY_EVERY: Final = 64
"""So many waits of a thread are followed by one on the loop."""

RECENT: Final = 9
"""So many times of the disk count. Their median does: on a busy machine, single waits take long with any disk."""


def why_unreadable(error: Exception) -> str:
    """Why a file could not be read, for people."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is no text in {error.encoding.upper()}"
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


def sync(path: Path) -> None:
    """Return when a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Disk:
    """Work that waits for one disk, one piece after the other."""

    def __init__(self, runtime: Runtime, seconds: float = 0.0) -> None:
        """`seconds` is how long the disk takes, as far as is known."""
        self._runtime = runtime
        self._recent_seconds: deque[float] = deque([seconds], maxlen=RECENT)
        self._off_loop = 0

    @property
    def is_for_loop(self) -> bool:
        """Whether the loop itself should wait the next time."""
        usual = sorted(self._recent_seconds)[len(self._recent_seconds) // 2]
        return self._off_loop >= TRY_EVERY or usual <= QUICK_SECONDS

    async def wait(self, work: Callable[[A], tuple[T, float]], argument: A) -> T:
        """The result of `work`, which also answers how many seconds it waited for the disk. Raises what it raises."""
        if self.is_for_loop:
            return self.wait_on_loop(work, argument)
        result, waited = await self._runtime.in_thread(work, argument)
        if waited < BEARABLE_SECONDS:
            self._off_loop += 1
        return result

    def wait_on_loop(self, work: Callable[[A], tuple[T, float]], argument: A) -> T:
        """As `wait`, whatever the disk is like."""
        is_try, self._off_loop = self._off_loop >= TRY_EVERY, 0
        result, waited = work(argument)
        if is_try:
            self._recent_seconds.clear()
        self._recent_seconds.append(waited)
        return result
