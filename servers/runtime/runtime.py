"""Runtime: the few words of an event loop that trio and asyncio share.

What hosts have in common (single flight, group commit, background work) is written once with these words.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
A = TypeVar("A")


class Event(Protocol):
    """What `trio.Event` and `asyncio.Event` both are."""

    def set(self) -> object: ...

    def wait(self) -> Awaitable[object]: ...


class Runtime(Protocol):
    """Offers the words. Whatever is started runs in the host's own scope and is cancelled when the host is closed."""

    def new_event(self) -> Event: ...

    def note_batch(self, size: int, seconds: float) -> None:
        """Measure a batch of commits that was written."""

    async def next_turn(self) -> None:
        """Wait until everything that is ready now has run."""

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run in the background. An `Exception` of `work` is logged, and nothing else comes of it."""

    async def in_thread(self, work: Callable[[A], T], argument: A) -> T:
        """Call in a worker thread, and come back only when it has ended, even when cancelled."""

    async def wait(self, event: Event, seconds: float) -> None:
        """Wait until the event is set, but no longer than so many seconds."""

    async def in_time(self, seconds: float, work: Callable[[], Awaitable[T]]) -> T:
        """Return what the work returns. Raises `TimeIsUp` when it takes longer than so many seconds, and cancels it."""

    async def wait_readable(self, fd: int, seconds: float) -> bool:
        """Return whether the socket with this descriptor can be read within so many seconds. One task may wait."""

    async def wait_writable(self, fd: int, seconds: float) -> bool:
        """Return whether the socket with this descriptor can be written within so many seconds. One task may wait."""
