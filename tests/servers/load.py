"""Clients that keep servers at work."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import httpx

from tests.waiting import PATIENT, wait_until

from .threads import Threads


class Load(Threads):
    """Each request is sent again and again by a client of its own, for as long as the block lasts.

    Requests may fail, because the servers are killed, unless the block's end is to raise the first failure.
    """

    def __init__(self, *requests: httpx.Request, may_fail: bool = True) -> None:
        super().__init__(*(partial(self._repeat, request) for request in requests))
        self.answers: list[Any] = []
        """The JSON of what succeeded."""
        self._may_fail = may_fail

    def wait_for_more(self, count: int) -> None:
        """Until so many more requests have succeeded."""
        enough = len(self.answers) + count
        wait_until(lambda: len(self.answers) >= enough)

    def _repeat(self, request: httpx.Request, stop: threading.Event) -> None:
        # A new connection each time: it comes to any worker of a server.
        limits = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(**PATIENT, limits=limits) as client:
            while not stop.is_set():
                try:
                    answer = client.send(request).raise_for_status()
                except httpx.HTTPError:
                    if not self._may_fail:
                        raise
                    stop.wait(0.1)
                else:
                    self.answers.append(answer.json())
