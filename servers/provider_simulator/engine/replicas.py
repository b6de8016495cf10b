"""Replicas: a cloud whose parts learn of a change at different times after it is made."""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeAlias, TypeVar

from .behaviour import PRESETS, Behaviour, Replica

T = TypeVar("T")

History: TypeAlias = tuple[tuple[float, T | None], ...]
"""An object's values and since when each holds, oldest first; `None`: the object is deleted."""


class Replication:
    """The cloud's clock and behaviour, and the delay with which each replica learns of each object."""

    def __init__(self, seed: int, now: Callable[[], float]) -> None:
        self._seed = seed
        self.now = now
        self.behaviour: Behaviour = PRESETS["immediate"]

    def known_until(self, replica: Replica, object_id: str, front_end: int = 0) -> float:
        """The time up to which a replica knows the changes of an object."""
        least, most = self.behaviour.delays[replica]
        if most == 0:
            return math.inf
        share = zlib.crc32(f"{self._seed} {replica} {front_end} {object_id}".encode()) / 2**32
        return self.now() - (least + (most - least) * share)


class Table(Generic[T]):
    """Objects by id, with their histories as far back as a replica may still show them."""

    def __init__(self, replication: Replication) -> None:
        self._replication = replication
        self._histories: dict[str, History[T]] = {}
        self._leaving: deque[tuple[float, str]] = deque()
        self.count = 0

    def put(self, object_id: str, value: T | None) -> None:
        """Create, change or (with `None`) delete an object. Without delays, no history is kept."""
        memory = self._replication.behaviour.settled_after
        now = self._replication.now()
        history = self._histories.get(object_id, ())
        self.count += (value is not None) - (bool(history) and history[-1][1] is not None)
        if memory == 0:
            history = ((-math.inf, value),)
        else:
            settled = [each for since, each in history if since <= now - memory][-1:]  # every replica knows this one
            recent = (each for each in history if each[0] > now - memory)
            history = (*((-math.inf, each) for each in settled), *recent, (now, value))
        self._histories[object_id] = history
        if value is None:
            self._leaving.append((now + memory, object_id))
        while self._leaving and self._leaving[0][0] <= now:
            _, leaving = self._leaving.popleft()
            if leaving in self._histories and self._histories[leaving][-1][1] is None:
                del self._histories[leaving]

    def get(self, object_id: str, replica: Replica | None = None, front_end: int = 0) -> T | None:
        """The object as a replica knows it; without a replica, as it is."""
        history = self._histories.get(object_id)
        if not history:
            return None
        if replica is None:
            return history[-1][1]
        until = self._replication.known_until(replica, object_id, front_end)
        return next((value for since, value in reversed(history) if since <= until), None)

    def all(self, replica: Replica | None = None) -> Iterator[T]:
        """All objects that a replica knows, in the order of their creation."""
        found = (self.get(object_id, replica) for object_id in self._histories)
        return (value for value in found if value is not None)
