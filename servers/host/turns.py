"""Turns of the event loop, shared fairly by the sources of requests.

Each connection with a request has it answered in the next turn of the loop. A source with a thousand connections would
so have a thousand requests answered before each one of others. In each turn a source has a share; its further requests
wait for later turns, in their order, while others are answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Hashable
from typing import Final

from ..runtime import Event, Runtime

SHARE: Final = 32
"""How many requests a source may have answered in a turn at least; twice as many at most.

Counts are cleared in the turn after so many requests, and not in each one: most turns answer few, which cost nothing.
"""


class Turns:
    """Which requests may be answered in this turn."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._taken: dict[Hashable, int] = {}
        """Requests of each source since the counts were cleared."""

        self._waiting: dict[Hashable, deque[Event]] = {}
        """The requests of each source that wait, the longest waiting first."""

        self._total = 0
        """Requests of all sources since then."""

    def take(self, source: Hashable) -> bool:
        """Count a request; whether it may be answered now. If not, it has to `wait`."""
        taken = self._taken[source] = self._taken.get(source, 0) + 1
        self._total += 1
        if self._total == SHARE:
            self._runtime.start(self._share)
        return taken <= 2 * SHARE and source not in self._waiting

    def wait(self, source: Hashable) -> Awaitable[object]:
        """Wait for a turn in which the source has a share left."""
        event = self._runtime.new_event()
        self._waiting.setdefault(source, deque()).append(event)
        return event.wait()

    async def _share(self) -> None:
        """Restart the count in this turn, and give waiting requests their shares, as long as there are some."""
        self._admit()
        while self._waiting:
            await self._runtime.next_turn()
            self._admit()
        self._total = 0

    def _admit(self) -> None:
        self._taken.clear()
        share = max(1, SHARE // max(1, len(self._waiting)))
        for source, waiting in [*self._waiting.items()]:
            for _ in range(min(share, len(waiting))):
                waiting.popleft().set()
                self._taken[source] = self._taken.get(source, 0) + 1
            if not waiting:
                del self._waiting[source]
