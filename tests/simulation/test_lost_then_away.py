"""A store that loses the answer to a commit and is away from then on: what the request created does not live.

Whether the commit was written cannot be read either, so nothing may be concluded from that failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from cloudid_core.effects import Commit, Effect
from cloudid_core.testing import FaultKind

from .invariants import check_in_the_end
from .recorded import RecordedInstallation
from .stalled import STORE, StallingInstallation
from .test_delivery import KINDS, Kind, living

AWAY_SECONDS: Final = 120.0
LOSSES: Final = (FaultKind.LOST_ANSWER, FaultKind.UNKNOWN_NOT_WRITTEN)


class Losing(StallingInstallation):
    """From the commit at a place on, the store is away; whether that one was written is not said."""

    lost_at: int | None = None
    loss: FaultKind = FaultKind.LOST_ANSWER

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        if self.lost_at is None or len(self.trace) < self.lost_at or not isinstance(effect, STORE):
            return super().fault_for(effect)
        return self.loss if len(self.trace) == self.lost_at else FaultKind.FAIL


def losing(original: RecordedInstallation) -> Losing:
    world = Losing.like(original)
    world.files.update(original.files)
    return world


def commits_of(kind: Kind, start: RecordedInstallation) -> Iterator[tuple[int, FaultKind]]:
    """The place of each commit of a request, and how its answer is lost."""
    world = losing(start)
    first = len(world.trace)
    world.perform(world.service.handle(kind.make(world)))
    for at, (_, effect) in enumerate(world.trace[first:], first):
        if isinstance(effect, Commit):
            yield from ((at, loss) for loss in LOSSES)


@pytest.mark.parametrize("name", KINDS)
def test_nothing_lives_whose_commit_was_not_answered_before_the_store_went_away(name: str) -> None:
    kind = KINDS[name]
    start = kind.start()
    for at, loss in commits_of(kind, start):
        world = losing(start)
        before = living(world)
        request = kind.make(world)
        world.lost_at, world.loss = at, loss
        response = world.perform(world.service.handle(request))
        world.advance(AWAY_SECONDS)
        world.lost_at = None
        world.perform(world.service.upkeep())
        world.converge()
        assert response.status != 200, f"{loss.name} at {at}"
        assert living(world) - before == set(), f"{loss.name} at {at}: created, and received by no one"
        check_in_the_end(world)
