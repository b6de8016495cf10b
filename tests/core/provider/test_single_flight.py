"""Work that is shared."""

from __future__ import annotations

import pytest

from cloudid_core.effects import Sleep
from cloudid_core.errors import Code, ProviderUnreachable, Refused
from cloudid_core.foundation.deadline import Deadline
from cloudid_core.provider.single_flight import GRACE, once
from cloudid_core.testing import World


class Job:
    """Takes five seconds, and counts how often it is done."""

    def __init__(self) -> None:
        self.begun = 0
        self.deadlines: list[float] = []

    async def __call__(self, deadline: Deadline) -> int:
        self.begun += 1
        self.deadlines.append(deadline.at)
        await Sleep(5)
        return self.begun


def test_many_who_ask_at_once_share_one_answer() -> None:
    world, job = World(), Job()
    tasks = [world.spawn(once("key", 60, Deadline(world.clock + 30), job)) for _ in range(20)]
    world.settle()
    assert [task.result() for task in tasks] == [1] * 20


def test_who_asks_later_gets_new_work() -> None:
    world, job = World(), Job()
    answers = [world.perform(once("key", 60, Deadline(world.clock + 30), job)) for _ in range(2)]
    assert answers == [1, 2]


def test_other_keys_are_other_work() -> None:
    world, job = World(), Job()
    tasks = [world.spawn(once(key, 60, Deadline(world.clock + 30), job)) for key in "ab"]
    world.settle()
    assert sorted(task.result() for task in tasks) == [2, 2]


def test_a_short_deadline_of_the_first_does_not_hurt_the_others() -> None:
    world, job = World(), Job()
    hasty = world.spawn(once("key", 60, Deadline(world.clock + 1), job))
    patient = world.spawn(once("key", 60, Deadline(world.clock + 30), job))
    start = world.clock
    world.settle()
    assert patient.result() == 1
    assert job.deadlines == [start + 60]
    with pytest.raises(Refused) as caught:
        hasty.result()
    assert caught.value.code is Code.DEADLINE_PASSED


def test_work_without_end_is_closed() -> None:
    world = World()

    async def forever(deadline: Deadline) -> None:
        await Sleep(10**6)

    start = world.clock
    with pytest.raises(Refused) as caught:
        world.perform(once("key", 60, Deadline(start + 10**5), forever))
    assert caught.value.code is Code.DEADLINE_PASSED
    assert world.clock == start + 60 + GRACE


def test_a_failure_is_everybodys() -> None:
    world = World()

    async def fail(deadline: Deadline) -> None:
        await Sleep(1)
        raise ProviderUnreachable("no", sent=False)

    tasks = [world.spawn(once("key", 60, Deadline(world.clock + 30), fail)) for _ in range(3)]
    world.settle()
    for task in tasks:
        with pytest.raises(ProviderUnreachable):
            task.result()


def test_a_passed_deadline_starts_nothing() -> None:
    world, job = World(), Job()
    with pytest.raises(Refused):
        world.perform(once("key", 60, Deadline(world.clock), job))
    assert job.begun == 0
