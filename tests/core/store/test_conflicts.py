"""Programs that run anew when their commit conflicts."""

from __future__ import annotations

import pytest
from attrs import frozen

from cloudid_core.deadline import Deadline
from cloudid_core.effects import Commit, Now, ReadEntry, Sleep
from cloudid_core.errors import Code, Conflict, Refused
from cloudid_core.store.conflicts import PATIENCE, PAUSES, retry_on_conflict
from cloudid_core.testing import World


@frozen
class Request:
    deadline: Deadline


@retry_on_conflict
async def count(request: Request | None) -> int:
    entry = await ReadEntry("count")
    number = int(entry.value) + 1 if entry else 1
    await Commit({"count": entry.version if entry else 0}, {"count": b"%d" % number})
    return number


@retry_on_conflict
async def lose(request: Request | None) -> None:
    raise Conflict("always")


def seconds_until_refused(world: World, request: Request | None) -> float:
    start = world.clock
    with pytest.raises(Refused) as refusal:
        world.perform(lose(request))
    assert refusal.value.code is Code.STORE_CONTENDED
    return world.clock - start


def test_the_answer_is_that_of_the_first_run_without_a_conflict() -> None:
    """Many requests change one entry at the same time, and each of them succeeds."""
    world = World(seed=3)
    request = Request(Deadline(world.clock + 90))
    tasks = [world.spawn(count(request)) for _ in range(40)]
    world.settle()
    assert sorted(task.result() for task in tasks) == list(range(1, 41))


def test_retries_stop_at_the_deadline() -> None:
    world = World()
    waited = seconds_until_refused(world, Request(Deadline(world.clock + 5)))
    assert 5 - PAUSES.longest <= waited < 5


def test_a_program_without_a_deadline_is_retried_for_a_while() -> None:
    assert PATIENCE - PAUSES.longest <= seconds_until_refused(World(), None) < PATIENCE


def test_pauses_are_random_and_grow() -> None:
    """Requests that lost against each other do not meet again."""
    pauses = []
    for seed in (1, 2):
        world = World(seed)
        seconds_until_refused(world, None)
        pauses.append([effect.seconds for _, effect in world.trace if isinstance(effect, Sleep)])
    assert pauses[0] != pauses[1]
    assert max(pauses[0][:2]) < PAUSES.longest / 4 < max(pauses[0]) <= PAUSES.longest


def test_other_failures_pass() -> None:
    @retry_on_conflict
    async def fail() -> None:
        await Now()
        raise Refused(Code.NOT_FOUND)

    with pytest.raises(Refused, match="nothing here"):
        World().perform(fail())
