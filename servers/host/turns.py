"""Share the turns of the event loop fairly among the sources of requests.

A request is answered in the next turn of the loop, so a source with a thousand connections would have a thousand
requests answered before each request of another source. Therefore each source has a share of each turn. Its other
requests wait, in order, for later turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Hashable
from typing import Final

from ..runtime import Event, Runtime

SHARE: Final = 32
"""The minimum number of requests of one source in a turn. The maximum is twice this number.

Counts are cleared after this many requests, not in each turn, because most turns answer few requests.
"""


class Turns:
    """Decides which requests may be answered in this turn."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._taken: dict[Hashable, int] = {}
        """The number of requests of each source since the counts were cleared."""

        self._waiting: dict[Hashable, deque[Event]] = {}
        """The waiting requests of each source, oldest first."""

        self._total = 0
        """The number of requests of all sources since the counts were cleared."""

    def take(self, source: Hashable) -> bool:
        """Count a request and return whether it may be answered now. If not, the caller must `wait`."""
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
        """Clear the counts in this turn, and admit waiting requests up to their shares. Repeat while requests wait."""
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
