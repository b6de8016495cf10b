"""Replicas: what the places of a cloud know of its objects, which is what was true a while ago."""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeAlias, TypeVar

from .behaviour import PRESETS, Behaviour, Place

T = TypeVar("T")

History: TypeAlias = tuple[tuple[float, T | None], ...]
"""What an object was, and since when, oldest first; `None` when it was gone."""


class Spread:
    """How news spreads through the cloud: its clock, its behaviour, and the delay of each object at each place."""

    def __init__(self, seed: int, now: Callable[[], float]) -> None:
        self._seed = seed
        self.now = now
        self.behaviour: Behaviour = PRESETS["immediate"]

    def known_until(self, place: Place, object_id: str, front_end: int = 0) -> float:
        """The time up to which a place knows what became of an object."""
        least, most = self.behaviour.delays[place]
        if most == 0:
            return math.inf
        share = zlib.crc32(f"{self._seed} {place} {front_end} {object_id}".encode()) / 2**32
        return self.now() - (least + (most - least) * share)


class Table(Generic[T]):
    """Objects by id, and what they were as far back as any place may still believe."""

    def __init__(self, spread: Spread) -> None:
        self._spread = spread
        self._histories: dict[str, History[T]] = {}
        self._leaving: deque[tuple[float, str]] = deque()
        self.count = 0

    def put(self, object_id: str, value: T | None) -> None:
        """Make, change or (with `None`) remove an object. Without delays, what is true now always was."""
        memory = self._spread.behaviour.settled_after
        now = self._spread.now()
        history = self._histories.get(object_id, ())
        self.count += (value is not None) - (bool(history) and history[-1][1] is not None)
        if memory == 0:
            history = ((-math.inf, value),)
        else:
            first = next((i for i in reversed(range(len(history))) if history[i][0] <= now - memory), 0)
            history = (*history[first:], (now, value))
        self._histories[object_id] = history
        if value is None:
            self._leaving.append((now + memory, object_id))
        while self._leaving and self._leaving[0][0] <= now:
            _, leaving = self._leaving.popleft()
            if leaving in self._histories and self._histories[leaving][-1][1] is None:
                del self._histories[leaving]

    def get(self, object_id: str, place: Place | None = None, front_end: int = 0) -> T | None:
        """The object as a place knows it; without a place, as it is."""
        history = self._histories.get(object_id)
        if not history:
            return None
        if place is None:
            return history[-1][1]
        until = self._spread.known_until(place, object_id, front_end)
        return next((value for since, value in reversed(history) if since <= until), None)

    def all(self, place: Place | None = None) -> Iterator[T]:
        """All objects that a place knows, in the order in which they were made."""
        found = (self.get(object_id, place) for object_id in self._histories)
        return (value for value in found if value is not None)
