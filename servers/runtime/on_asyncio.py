"""The words of an event loop, on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from cloudid_core.errors import TimeIsUp

from .runtime import Event, Runtime

T = TypeVar("T")
A = TypeVar("A")


class OnAsyncio(Runtime):
    """Runs tasks on the running loop until `end_tasks`."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def new_event(self) -> Event:
        return asyncio.Event()

    def new_semaphore(self, count: int) -> asyncio.Semaphore:
        return asyncio.Semaphore(count)

    def next_turn(self) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(0)

    def start_task(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end_tasks(self) -> None:
        """Cancel what runs in the background, and wait until it has ended."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def in_thread(self, work: Callable[[A], T], argument: A) -> T:
        task = asyncio.create_task(asyncio.to_thread(work, argument))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    def from_thread(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()

    async def wait(self, event: Event, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await event.wait()

    async def in_time(self, seconds: float, work: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(max(0.0, seconds)) as scope:
                return await work()
        except TimeoutError:
            if scope.expired():
                raise TimeIsUp("it took too long") from None
            raise

    async def wait_readable(self, fd: int, seconds: float) -> bool:
        return await self._wait_for(self._loop.add_reader, self._loop.remove_reader, fd, seconds)

    async def wait_writable(self, fd: int, seconds: float) -> bool:
        return await self._wait_for(self._loop.add_writer, self._loop.remove_writer, fd, seconds)

    async def _wait_for(
        self, watch: Callable[..., object], leave: Callable[[int], object], fd: int, seconds: float
    ) -> bool:
        ready: asyncio.Future[bool] = self._loop.create_future()
        timer = self._loop.call_later(seconds, _answer, ready, False)
        watch(fd, _answer, ready, True)
        try:
            return await ready
        finally:
            leave(fd)
            timer.cancel()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


def _answer(future: asyncio.Future[bool], answer: bool) -> None:
    if not future.done():
        future.set_result(answer)
