"""Backoff: how long to wait before a retry."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from .effects import RandomBytes

_MOST_STEPS: Final = 64
"""After this many steps the pause is always the longest. Larger powers would overflow."""


@frozen(kw_only=True)
class Backoff:
    """Pauses in seconds that grow from the first to the longest.

    Each pause is multiplied by a random factor within `spread`, so that callers that failed together do not retry
    together.
    """

    first: float
    longest: float
    growth: float = 2.0
    spread: tuple[float, float] = (0.8, 1.2)

    def pause(self, n: int, chance: float) -> float:
        """Return the seconds before the n-th retry (counted from 1), for a random number from 0 to 1."""
        least, greatest = self.spread
        grown = self.first * self.growth ** min(n - 1, _MOST_STEPS)
        return min(grown, self.longest) * (least + (greatest - least) * chance)

    async def draw(self, n: int) -> float:
        """Return a pause like `pause`, with a new random number."""
        return self.pause(n, await draw_chance())


async def draw_chance() -> float:
    """Return a random number from 0 up to, but not including, 1."""
    return int.from_bytes(await RandomBytes(2)) / 2**16
