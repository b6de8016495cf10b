"""Work that goes on in threads while a block runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Self, TypeAlias

from tests.waiting import PATIENCE

Work: TypeAlias = Callable[[threading.Event], object]
"""It ends soon after the event is set."""


class Threads:
    """Each piece of work in a thread of its own, for as long as the block lasts.

    The block's end waits for all of it. It raises the first error, or `TimeoutError` when a piece of work does not end.
    """

    def __init__(self, *work: Work) -> None:
        self._work = work
        self._stop = threading.Event()
        self._started: list[Future[object]] = []

    def __enter__(self) -> Self:
        pool = ThreadPoolExecutor(len(self._work))
        self._started = [pool.submit(each, self._stop) for each in self._work]
        pool.shutdown(wait=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        wait(self._started, PATIENCE)
        for each in self._started:
            each.result(0)
