"""Work that is shared."""

from __future__ import annotations

from traceback import walk_tb

import pytest
from msgspec.structs import replace

from cloudid_core.deadline import Deadline
from cloudid_core.effects import Instant, Sleep
from cloudid_core.errors import Code, ProviderProblem, ProviderUnreachable, Refused
from cloudid_core.provider.client import refusal_of
from cloudid_core.provider.compute import Machine
from cloudid_core.provider.facts import machine_facts
from cloudid_core.provider.single_flight import GRACE, once
from cloudid_core.testing import World
from cloudid_core.testing.turns import Task
from cloudid_core.values.resource_id import VIRTUAL_MACHINE, ResourceId, parse

from .cloud import TOKEN_PATH, Reply, Setting, error, reply, token

VM = f"/subscriptions/aaaaaaaa-0000-0000-0000-000000000001/resourceGroups/rg/providers/{VIRTUAL_MACHINE}/vm"
MACHINE = parse(VM)


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


# Look-ups that pause before a retry


KNOWN = reply(200, {"location": "westus2"})


def paused(*replies: Reply, seed: int = 0) -> tuple[Setting, Task[Machine | None]]:
    """A patient look-up of a machine, half a second after the first of the provider's replies, which is a failure."""
    setting = Setting(seed)
    setting.cloud.script(f"GET {VM}", *replies)
    patient = setting.world.spawn(machine_facts(setting.client, MACHINE))
    setting.world.advance(0.5)
    return setting, patient


def hasty(setting: Setting, seconds: float = 1.0, machine: ResourceId = MACHINE) -> Task[Machine | None]:
    client = replace(setting.client, deadline=Deadline(setting.world.clock + seconds))
    return setting.world.spawn(machine_facts(client, machine))


def code_of(task: Task[Machine | None]) -> Code:
    try:
        task.result()
    except Refused as refusal:
        return refusal.code
    except ProviderProblem as problem:
        return refusal_of(problem).code
    pytest.fail("it was answered")


@pytest.mark.parametrize("seed", range(5))
def test_those_who_cannot_wait_for_the_end_of_a_pause_share_one_attempt(seed: int) -> None:
    setting, patient = paused(error(500), KNOWN, seed=seed)
    others = [hasty(setting) for _ in range(20)]
    setting.world.advance(0.5)
    assert {task.result() is not None for task in others} == {True}
    assert len(setting.cloud.asked(VM)) == 2
    setting.world.settle()
    assert patient.result() is not None


def test_who_can_wait_for_the_end_of_a_pause_waits() -> None:
    setting, patient = paused(error(500), KNOWN)
    other = hasty(setting, 30)
    setting.world.advance(2)
    assert not other.is_done
    setting.world.settle()
    assert other.result() is patient.result()
    assert len(setting.cloud.asked(VM)) == 2


def test_one_attempt_is_made_in_each_pause_and_its_failure_is_that_of_all_who_cannot_wait() -> None:
    setting, _ = paused(error(500))
    for _ in range(3):
        other = hasty(setting)
        setting.world.advance(0.5)
        assert code_of(other) is Code.PROVIDER_FAILED
    assert len(setting.cloud.asked(VM)) == 2
    setting.world.advance(4)  # in the second pause
    other = hasty(setting)
    setting.world.advance(0.5)
    assert code_of(other) is Code.PROVIDER_FAILED
    assert len(setting.cloud.asked(VM)) == 4


def test_an_attempt_takes_no_retry_from_those_who_wait() -> None:
    setting, patient = paused(error(500), error(500), error(500), error(500), KNOWN)
    _ = hasty(setting)
    setting.world.settle()
    assert patient.result() is not None
    assert len(setting.cloud.asked(VM)) == 5


def test_a_pause_that_the_provider_asked_for_is_kept_by_all() -> None:
    setting, patient = paused(error(429, retry_after="4"), KNOWN)
    other = hasty(setting)
    setting.world.advance(2)
    assert code_of(other) is Code.DEADLINE_PASSED
    assert len(setting.cloud.asked(VM)) == 1
    setting.world.settle()
    assert patient.result() is not None


class RunningClock(World):
    """A world whose clock also goes on between two effects, as every real one does."""

    async def now(self) -> Instant:
        self.clock += 0.001
        return await super().now()


@pytest.mark.parametrize("form", [World, RunningClock])
def test_an_attempt_is_made_also_when_the_look_up_waits_for_an_access_token_that_pauses(form: type[World]) -> None:
    setting = Setting()
    setting.world = form(provider=setting.cloud)
    setting.cloud.script(f"POST {TOKEN_PATH}", error(500), token())
    setting.cloud.script(f"GET {VM}", KNOWN)
    patient = setting.world.spawn(machine_facts(setting.client, MACHINE))
    setting.world.advance(0.5)
    others = [hasty(setting) for _ in range(5)]
    setting.world.advance(0.5)
    assert all(task.result() is not None for task in others)
    assert len(setting.cloud.asked(TOKEN_PATH)) == 2
    setting.world.settle()
    assert patient.result() is not None


def test_the_failure_of_an_attempt_is_not_that_of_another_look_up_which_waits_for_the_same_access_token() -> None:
    setting = Setting()
    setting.cloud.script(f"POST {TOKEN_PATH}", error(500), token())
    setting.cloud.script(f"GET {VM}", error(403, "AuthorizationFailed"))
    setting.cloud.script(f"GET {VM}2", KNOWN)
    for machine in (MACHINE, parse(f"{VM}2")):
        setting.world.spawn(machine_facts(setting.client, machine))
    setting.world.advance(0.5)
    refused = hasty(setting)
    setting.world.advance(0.1)
    known = hasty(setting, machine=parse(f"{VM}2"))
    setting.world.advance(0.1)
    assert code_of(refused) is Code.PROVIDER_PERMISSION_DENIED
    assert known.result() is not None


def test_a_failure_that_many_get_in_one_pause_does_not_grow() -> None:
    setting, _ = paused(error(500))
    lengths = []
    for _ in range(5):
        other = hasty(setting)
        setting.world.advance(0.1)
        assert other.error is not None
        lengths.append(len(list(walk_tb(other.error.__traceback__))))
    assert max(lengths) == lengths[0]


def test_nothing_is_kept_of_a_look_up_that_is_over() -> None:
    setting, _ = paused(error(500), KNOWN)
    _ = hasty(setting)
    setting.world.settle()
    assert len(setting.client.caches.flights) == 0
