"""The checks of a store that is interrupted: a world that keeps its word passes, and each notices one that does not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cloudid_core.errors import OutcomeUnknown, StoreFailed
from cloudid_core.testing import FaultKind, NotConforming, World, interruption_checks
from cloudid_core.testing.conformance.check import Check
from cloudid_core.testing.faults import troubles_of


class Interrupted(World):
    """Its store is away for some effects, which fail as they may, by the seed."""

    away = 0

    async def interrupt(self) -> None:
        self.away = 40

    def fault_for(self, effect: object) -> FaultKind | None:
        """Failures of all kinds that leave the host alive; then the store is back."""
        kinds = [
            kind
            for kind in troubles_of(effect)  # type: ignore[arg-type]
            if kind not in {FaultKind.CRASH_AFTER, FaultKind.CRASH_BEFORE, FaultKind.CONFLICT}
        ]
        if not self.away or not kinds:
            return None
        self.away -= 1
        return kinds[(self.seed + self.away) % len(kinds)]


class Late(Interrupted):
    """What was on its way when the connection was lost is written later."""

    pending: tuple[Mapping[str, int], Mapping[str, bytes]] | None = None

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        if self.away > 30:
            self.away = 0
            self.pending = (expects, puts)
            raise OutcomeUnknown("the connection was lost")
        if self.pending is not None and self.store.revision % 7 == 0:
            self.store.commit({}, self.pending[1], ())
            self.pending = None
        return await super().commit(expects, puts, deletes)


class Forgetting(Interrupted):
    """Fails over to a server that lacks what was acknowledged last."""

    last: tuple[str, ...] = ()

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        version = await super().commit(expects, puts, deletes)
        self.last = tuple(puts)
        return version

    async def interrupt(self) -> None:
        self.store.commit({}, {}, self.last)


class Lying(Interrupted):
    """Says that a commit failed, though it was written."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        try:
            return await super().commit(expects, puts, deletes)
        except OutcomeUnknown:
            raise StoreFailed("certainly not written") from None


class SentTwice(Interrupted):
    """Sends a commit again without what it expects."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        try:
            return await super().commit(expects, puts, deletes)
        except (OutcomeUnknown, StoreFailed):
            for _ in range(5):
                await self.sleep(0.01)
            return self.store.commit({}, puts, deletes)


class Gone(Interrupted):
    """Never comes back."""

    def fault_for(self, effect: object) -> FaultKind | None:
        return FaultKind.FAIL if FaultKind.FAIL in troubles_of(effect) else None  # type: ignore[arg-type]


def checked(name: str, world: Interrupted) -> None:
    (check,) = (check for check in interruption_checks(world.interrupt) if check.name == name)
    world.perform(check())


CHECKS: tuple[Check, ...] = interruption_checks(World().now)
NAMES = [check.name for check in CHECKS]


@pytest.mark.parametrize("name", NAMES)
def test_a_store_that_keeps_its_word_passes(name: str) -> None:
    for seed in range(20):
        checked(name, Interrupted(seed))


NOTICED = [
    (Late, "outcomes_hold_when_the_store_is_interrupted"),
    (Forgetting, "outcomes_hold_when_the_store_is_interrupted"),
    (Lying, "outcomes_hold_when_the_store_is_interrupted"),
    (Gone, "outcomes_hold_when_the_store_is_interrupted"),
    (SentTwice, "no_update_is_lost_when_the_store_is_interrupted"),
    (Lying, "no_update_is_lost_when_the_store_is_interrupted"),
]


@pytest.mark.parametrize("wrong, name", NOTICED, ids=lambda value: getattr(value, "__name__", value))
def test_a_store_that_does_not_is_noticed(wrong: type[Interrupted], name: str) -> None:
    def all_seeds() -> None:
        for seed in range(20):
            checked(name, wrong(seed))

    with pytest.raises(NotConforming):
        all_seeds()


def test_every_check_notices_something() -> None:
    assert {name for _, name in NOTICED} == set(NAMES)
