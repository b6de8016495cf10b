"""Every way in which a scenario can go wrong."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from cloudid_core.effects import (
    Commit,
    Effect,
    ReadEntry,
    Record,
    gather,
)
from cloudid_core.errors import (
    CloudidError,
    StoreFailed,
)
from cloudid_core.events import MountChanged
from cloudid_core.testing import Crashed, FaultKind, World, count_effects, every_fault
from cloudid_core.testing.faults import TROUBLES

COMMIT = Commit({}, {"a": b"1"})


async def transfer() -> None:
    """Read, write, tell."""
    await ReadEntry("a")
    await Commit({}, {"a": b"1"})
    await Record(MountChanged(mount_accessor="a", path="p", state="tuned"))


async def asking(effect: Effect[Any]) -> object:
    return await effect


def scenario(world: World) -> None:
    world.perform(transfer())


def prepared() -> World:
    world = World()
    world.perform(asking(COMMIT))
    return world


def faults_of(world: World) -> list[str]:
    return repr(world).removesuffix(">").split(", ")[1:]


def test_the_effects_of_a_scenario_are_counted_without_those_of_its_preparation() -> None:
    assert count_effects(scenario, prepared) == 3


def test_only_for_those_ways_that_are_chosen_a_world_is_made() -> None:
    made: list[World] = []

    def make() -> World:
        made.append(prepared())
        return made[-1]

    chosen = [faults_of(world) for world in every_fault(scenario, prepared)][1::3]
    worlds = every_fault(scenario, make, sample=lambda ways: [*ways][1::3])
    assert [faults_of(world) for world in worlds] == chosen
    assert len(made) == 1 + len(chosen)


def test_a_scenario_goes_wrong_at_each_effect_in_each_way() -> None:
    plans = [faults_of(world) for world in every_fault(scenario, prepared)]
    effects: list[tuple[int, type[Effect[Any]]]] = [(1, ReadEntry), (2, Commit), (3, Record)]
    wanted = [[f"{kind.name} at {at}"] for at, effect in effects for kind in TROUBLES[effect]]
    assert plans == wanted
    assert len(plans) == 11


def test_only_some_kinds_can_be_asked_for() -> None:
    plans = [faults_of(world) for world in every_fault(scenario, prepared, kinds=frozenset({FaultKind.CRASH_AFTER}))]
    assert plans == [["CRASH_AFTER at 2"], ["CRASH_AFTER at 3"]]


def test_every_world_is_fresh_and_its_fault_strikes() -> None:
    for world in every_fault(scenario, prepared):
        assert world.store.revision == 1
        with pytest.raises((Crashed, CloudidError)):
            scenario(world)


def test_a_scenario_that_recovers_goes_wrong_again_while_it_does() -> None:
    def resumed(world: World) -> None:
        try:
            scenario(world)
        except (Crashed, CloudidError):
            scenario(world)

    plans = [faults_of(world) for world in every_fault(resumed, prepared, depth=2)]
    assert ["CRASH_BEFORE at 1", "CRASH_AFTER at 3"] in plans
    assert ["CRASH_AFTER at 3", "FAIL at 4"] in plans
    assert len({tuple(plan) for plan in plans}) == len(plans) == 11 * 11
    assert all(int(first.split()[-1]) < int(second.split()[-1]) for first, second in plans)


def test_what_a_scenario_raises_in_peace_is_a_bug_of_the_proof() -> None:
    def broken(world: World) -> None:
        raise StoreFailed("in peace")

    with pytest.raises(StoreFailed, match="in peace"):
        list(every_fault(broken, World))


def test_programs_side_by_side_are_struck_too() -> None:
    def pair(world: World) -> None:
        world.perform(gather([transfer(), transfer()]))

    worlds = list(every_fault(pair, World))
    assert len(worlds) == 2 * 11
    for world in worlds:
        with suppress(Crashed, CloudidError):
            pair(world)
        world.settle()
        assert faults_of(world)
