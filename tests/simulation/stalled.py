"""Worlds in which effects stall: they are never answered, and may be performed all the same, even later."""

from __future__ import annotations

from typing import Any, Final, Self

from attrs import frozen

from cloudid_core.effects import (
    CallProvider,
    Commit,
    Effect,
    ListKeys,
    ReadEntries,
    ReadEntry,
    Record,
    Shared,
    Together,
    Within,
)
from cloudid_core.testing import Stall

from .operations import DUTY
from .recorded import RecordedInstallation

CARRIERS: Final = (Shared, Together, Within)
"""Effects that wait for the effects of the programs that they carry, and for nothing else."""

STORE: Final = (ReadEntry, ReadEntries, ListKeys, Commit)
DONE_FIRST: Final = (Commit, CallProvider, Record)
"""Effects that may have been performed though their answer never comes."""


def stalls_of(effect: Effect[Any]) -> tuple[Stall, ...]:
    """How an effect can stall."""
    if isinstance(effect, Commit):
        return tuple(Stall)
    return (Stall.BEFORE, Stall.AFTER) if isinstance(effect, DONE_FIRST) else (Stall.BEFORE,)


@frozen
class Stalling:
    """From the effect at a place on, what stalls: that effect only, or everything of its kind."""

    at: int
    how: Stall
    kind: tuple[type[Effect[Any]], ...] = ()

    def includes(self, place: int, effect: Effect[Any]) -> bool:
        return place == self.at or (place > self.at and isinstance(effect, self.kind))


class Stalls:
    """A world in which effects stall."""

    stalling: Stalling | None = None
    trace: list[tuple[str, Effect[Any]]]

    def stall_for(self, effect: Effect[Any]) -> Stall | None:
        stalling = self.stalling
        if stalling is None or isinstance(effect, CARRIERS) or not stalling.includes(len(self.trace), effect):
            return None
        return stalling.how if stalling.how in stalls_of(effect) else Stall.BEFORE


class StallingInstallation(Stalls, RecordedInstallation):
    @classmethod
    def like(cls, original: RecordedInstallation) -> Self:
        twin = cls.copy_of(original, original.seed + 1)
        twin.answered = dict(original.answered)
        twin.advance(DUTY)
        twin.tick()
        return twin
