"""The words of an event loop, on trio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import trio

from cloudid_core.errors import TimeIsUp

from .runtime import Event, Runtime

T = TypeVar("T")
A = TypeVar("A")


class OnTrio(Runtime):
    """Runs tasks in a nursery, which the caller cancels at the end."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def new_event(self) -> Event:
        return trio.Event()

    def new_semaphore(self, count: int) -> trio.Semaphore:
        return trio.Semaphore(count)

    async def next_turn(self) -> None:
        await trio.lowlevel.cancel_shielded_checkpoint()

    def start_task(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._nursery.start_soon(work)

    async def in_thread(self, work: Callable[[A], T], argument: A) -> T:
        return await trio.to_thread.run_sync(work, argument)

    def from_thread(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return trio.from_thread.run(work)

    async def wait(self, event: Event, seconds: float) -> None:
        with trio.move_on_after(max(0.0, seconds)):
            await event.wait()

    async def in_time(self, seconds: float, work: Callable[[], Awaitable[T]]) -> T:
        with trio.move_on_after(max(0.0, seconds)):
            return await work()
        raise TimeIsUp("it took too long")

    async def wait_readable(self, fd: int, seconds: float) -> bool:
        with trio.move_on_after(max(0.0, seconds)):
            await trio.lowlevel.wait_readable(fd)
            return True
        return False

    async def wait_writable(self, fd: int, seconds: float) -> bool:
        with trio.move_on_after(max(0.0, seconds)):
            await trio.lowlevel.wait_writable(fd)
            return True
        return False

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(max(0.0, seconds))
