"""Backoff: how long to wait before another try."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from .effects import RandomBytes

_MOST_STEPS: Final = 64
"""After so many steps every pause is the longest, and greater powers would overflow."""


@frozen(kw_only=True)
class Backoff:
    """Pauses in seconds that grow from the first to the longest. Each is multiplied by a factor drawn from `spread`, so
    that those who failed together do not try again together."""

    first: float
    longest: float
    growth: float = 2.0
    spread: tuple[float, float] = (0.8, 1.2)

    def pause(self, n: int, chance: float) -> float:
        """Seconds before the n-th retry (from 1), for a chance from 0 to 1."""
        least, greatest = self.spread
        grown = self.first * self.growth ** min(n - 1, _MOST_STEPS)
        return min(grown, self.longest) * (least + (greatest - least) * chance)

    async def draw(self, n: int) -> float:
        """As `pause`, by chance."""
        return self.pause(n, await draw_chance())


async def draw_chance() -> float:
    """A random number from 0 to 1, without 1."""
    return int.from_bytes(await RandomBytes(2)) / 2**16
