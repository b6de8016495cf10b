"""Turns: every order is possible, the clock jumps when nobody can go on, and tasks end on the spot."""

from __future__ import annotations

import pytest

from cloudid_core.effects import Commit, Instant, Now, Sleep, gather, together, within
from cloudid_core.testing import World


async def sleeping(seconds: float) -> Instant:
    await Sleep(seconds)
    return await Now()


async def putting(key: str) -> int:
    return await Commit({}, {key: b"1"})


def test_every_order_is_told_by_some_seed() -> None:
    def order(seed: int) -> tuple[object, ...]:
        world = World(seed)
        for key in "abc":
            world.spawn(putting(key))
        world.settle()
        return tuple(effect for _, effect in world.trace)

    assert len({tuple(repr(effect) for effect in order(seed)) for seed in range(200)}) == 6


def test_the_clock_jumps_to_the_next_sleeper_and_only_then() -> None:
    world = World(start=0.0)
    tasks = [world.spawn(sleeping(seconds)) for seconds in (86_400, 5, 0.25)]
    world.spawn(gather([putting(str(number)) for number in range(20)]))
    world.settle()
    assert [task.result() for task in tasks] == [86_400.0, 5.0, 0.25]
    assert world.clock == 86_400.0
    assert [type(effect) for _, effect in world.trace].index(Now) > 20


def test_perform_ends_with_its_program_and_lets_others_go_on_meanwhile() -> None:
    world = World(start=0.0)
    short, long = world.spawn(sleeping(1)), world.spawn(sleeping(10))
    assert world.perform(sleeping(5)) == 5.0
    assert (short.is_done, long.is_done) == (True, False)
    with pytest.raises(RuntimeError, match="sleeping 2 is not done"):
        long.result()
    world.settle()
    assert long.result() == 10.0


def test_advance_goes_on_for_so_long_and_no_longer() -> None:
    world = World(start=0.0)
    due, later = world.spawn(sleeping(5)), world.spawn(sleeping(5.5))
    world.advance(5)
    assert (due.is_done, later.is_done, world.clock) == (True, False, 5.0)
    world.advance(0.25)
    assert (later.is_done, world.clock) == (False, 5.25)
    world.advance(100)
    assert (later.result(), world.clock) == (5.5, 105.25)


def test_nothing_sleeps_for_no_time() -> None:
    world = World(start=9.0)
    assert world.perform(sleeping(0)) == world.perform(sleeping(-1)) == 9.0


def test_a_story_without_end_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forever() -> None:
        while True:
            await Sleep(1)

    monkeypatch.setattr("cloudid_core.testing.turns.LONGEST_STORY", 100)
    with pytest.raises(RuntimeError, match=r"has no end: \['forever 1'\] are still under way"):
        World().perform(forever())


def test_what_waits_for_ever_is_left_alone() -> None:
    world = World()
    task = world.spawn(sleeping(float("inf")))
    world.settle()
    assert not task.is_done


def test_a_closed_task_ends_on_the_spot_with_all_that_it_runs() -> None:
    closed: list[str] = []

    async def noting(name: str) -> None:
        try:
            await Sleep(60)
        finally:
            closed.append(name)

    world = World(start=0.0)
    task = world.spawn(within(100, together(noting("a"), noting("b"))))
    world.advance(1)
    task.close()
    task.close()
    assert sorted(closed) == ["a", "b"]
    with pytest.raises(RuntimeError, match="was closed"):
        task.result()
    world.settle()
    assert world.clock == 1.0
