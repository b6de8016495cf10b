"""Stretches of consecutive tokens in the store, and when each of them is worth reading again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from attrs import evolve, frozen

from ..effects import Instant

MOST: Final = 50_000
"""Maximum number of remembered stretches: 25 million tokens in about 10 MB. If there are more, some are dropped."""


@frozen
class Stretch:
    """The tokens whose keys sort after one key, up to another one."""

    after: str
    until: str
    due_at: Instant
    """When it is worth reading again."""


class Stretches:
    """Stretches in the order of their keys. They do not overlap, and may have gaps between them."""

    def __init__(self) -> None:
        self._stretches: list[Stretch] = []

    def remember(self, after: str, until: str, due_at: Instant | None) -> None:
        """Replace what is remembered about a stretch's keys. Without `due_at`, nothing is remembered."""
        low = bisect_right(self._stretches, after, key=attrgetter("until"))
        high = bisect_left(self._stretches, until, key=attrgetter("after"))
        known = self._stretches[low:high]
        before = [evolve(first, until=after) for first in known[:1] if first.after < after]
        behind = [evolve(last, after=until) for last in known[-1:] if until < last.until]
        fresh = [Stretch(after, until, due_at)] if due_at is not None else []
        self._stretches[low:high] = [*before, *fresh, *behind] if len(self) < MOST else []

    def due(self, now: Instant) -> list[Stretch]:
        """Return the stretches that are worth reading now, longest due first."""
        return sorted((each for each in self._stretches if each.due_at <= now), key=attrgetter("due_at"))

    def __iter__(self) -> Iterator[Stretch]:
        return iter(self._stretches)

    def __len__(self) -> int:
        return len(self._stretches)
