"""How often the resource manager is read: a bucket for each subscription, and who waits in which order."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cloudid_core.deadline import Deadline
from cloudid_core.effects import HttpResponse
from cloudid_core.errors import Code, ProviderProblem, Refused
from cloudid_core.provider.client import ApiCall, Client
from cloudid_core.provider.facts import machine_facts
from cloudid_core.provider.read_budget import BURST_SECONDS, MOST_CLOSED, REMAINING, ReadBudget
from cloudid_core.provider.retry import RetryPolicy
from cloudid_core.testing.turns import Task
from cloudid_core.values.resource_id import VIRTUAL_MACHINE, parse

from .cloud import ARM, GRAPH, SCOPE, START, Setting, error, reply

THROTTLED = "SubscriptionRequestsThrottled"


def path(number: int = 0, subscription: int = 1) -> str:
    """The path of a machine in a group of its own."""
    head = f"/subscriptions/aaaaaaaa-0000-0000-0000-{subscription:012}/resourceGroups/rg{number}"
    return f"{head}/providers/{VIRTUAL_MACHINE}/vm"


def slow(rate: int = 1, **settings: Any) -> Setting:
    """So many reads a second; the bucket is full."""
    return Setting(provider_read_rate=rate, **settings)


def scripted(setting: Setting, *numbers: int, subscription: int = 1) -> list[str]:
    paths = [path(number, subscription) for number in numbers]
    for each in paths:
        setting.cloud.script(f"GET {each}", reply(200, {"location": "westus2"}))
    return paths


def read(setting: Setting, where: str, method: str = "GET", asker: Client | None = None) -> Task[HttpResponse]:
    asker = asker or setting.client
    return setting.world.spawn(asker.call(ApiCall(method=method, url=f"{ARM}{where}", scope=SCOPE)))


def look_up(setting: Setting, where: str, patience: float = 90) -> Task[Any]:
    asker = replace(setting.client, deadline=Deadline(setting.world.clock + patience))
    return setting.world.spawn(machine_facts(asker, parse(where)))


def empty(setting: Setting, subscription: int = 1) -> None:
    """Use up what is in the bucket."""
    (where,) = scripted(setting, 999, subscription=subscription)
    for _ in range(int(setting.context.settings.provider_read_rate * BURST_SECONDS)):
        setting.world.perform(setting.client.call(ApiCall(url=f"{ARM}{where}", scope=SCOPE)))
    assert not setting.pauses


def refusal(task: Task[Any]) -> Refused:
    assert isinstance(task.error, Refused)
    return task.error


def test_a_full_bucket_is_used_at_once_and_then_as_fast_as_it_fills() -> None:
    budget = ReadBudget()
    budget.flow(25, START)
    turns = [budget.opens_at(budget.take()) for _ in range(228)]
    assert turns[:225] == [START] * 225
    assert [at - START for at in turns[225:]] == pytest.approx([0.04, 0.08, 0.12], abs=1e-5)


def test_a_bucket_is_never_more_than_full() -> None:
    budget = ReadBudget()
    budget.flow(25, START)
    budget.flow(25, START + 10**6)
    assert [budget.opens_at(budget.take()) > START + 10**6 for _ in range(226)] == [False] * 225 + [True]


def test_a_clock_that_went_back_closes_nothing() -> None:
    budget = ReadBudget()
    budget.flow(1, START)
    for _ in range(20):
        budget.take()
    budget.heed(error(429, THROTTLED, retry_after="5"), START)
    budget.flow(1, START - 3600)
    assert budget.next_opens_at <= START - 3600 + 5 + 21


def test_those_who_wait_keep_their_order_whatever_lowers_the_budget() -> None:
    setting = slow(2)
    empty(setting)
    order: list[str] = []

    async def one(where: str) -> None:
        await machine_facts(setting.client, parse(where))
        order.append(where)

    paths = scripted(setting, *range(20))
    for each in paths:
        setting.world.spawn(one(each))
        setting.world.advance(0.1)
    setting.context.caches.nodes = 2
    setting.world.advance(2)
    setting.cloud.script(f"GET {path(999)}", error(429, THROTTLED, retry_after="7"), reply(200, {}))
    _ = read(setting, path(999))
    setting.world.settle()
    assert order == paths


def test_every_subscription_has_a_bucket_of_its_own_and_case_does_not_matter() -> None:
    setting = slow()
    empty(setting)
    (one,) = scripted(setting, 1, subscription=2)
    assert read(setting, one).is_done or not setting.pauses
    setting.world.settle()
    assert not setting.pauses
    upper = path(999).replace("aaaaaaaa", "AAAAAAAA")
    setting.cloud.script(f"GET {upper}", reply(200, {}))
    _ = read(setting, upper)
    setting.world.settle()
    assert setting.pauses


def test_mounts_share_the_bucket() -> None:
    setting = slow()
    empty(setting)
    _ = read(setting, path(999), asker=replace(setting.client, owner="mount:2"))
    setting.world.settle()
    assert setting.pauses


def test_writes_and_other_services_do_not_wait() -> None:
    setting = slow()
    empty(setting)
    setting.cloud.script(f"PUT {path(999)}", reply(200, {}))
    _ = read(setting, path(999), "PUT")
    setting.cloud.script("GET /me", reply(200, {}))
    _ = setting.world.spawn(setting.client.call(ApiCall(url=f"{GRAPH}/me", scope=None)))
    setting.world.settle()
    assert not setting.pauses


def test_without_a_rate_nothing_waits() -> None:
    setting = slow(0)
    (where,) = scripted(setting, 999)
    for _ in range(50):
        setting.world.perform(setting.client.call(ApiCall(url=f"{ARM}{where}", scope=SCOPE)))
    assert not setting.pauses


def test_each_node_takes_its_part() -> None:
    setting = slow(10)
    setting.context.caches.nodes = 5
    (where,) = scripted(setting, 1)
    tasks = [read(setting, where) for _ in range(25)]
    setting.world.advance(0)
    assert sum(task.is_done for task in tasks) == int(2 * BURST_SECONDS)
    setting.world.advance(1)
    assert sum(task.is_done for task in tasks) == pytest.approx(2 * BURST_SECONDS + 2, abs=1)


def test_what_comes_too_late_is_refused_at_once_and_told_when_to_come_again() -> None:
    setting = slow()
    empty(setting)
    paths = scripted(setting, *range(12))
    patient = [look_up(setting, each) for each in paths[:10]]
    setting.world.advance(0)
    late = look_up(setting, paths[10], patience=5)
    setting.world.advance(0)
    assert refusal(late).code is Code.PROVIDER_THROTTLED
    assert refusal(late).retry_after == 7  # the line takes 11 seconds, and half a second is left for the read
    setting.world.settle()
    assert all(task.error is None for task in patient)
    assert not setting.cloud.asked(paths[10])


def test_who_asks_for_what_others_wait_for_already_has_their_turn() -> None:
    setting = slow()
    empty(setting)
    paths = scripted(setting, *range(12))
    first = look_up(setting, paths[0])
    tasks = [look_up(setting, each) for each in paths[1:]]
    setting.world.advance(0)
    late = look_up(setting, paths[0], patience=5)
    setting.world.settle()
    assert late.result() is first.result()
    assert all(task.error is None for task in tasks)


def test_a_line_that_comes_to_a_stop_refuses_those_whose_time_is_over() -> None:
    setting = slow()
    empty(setting)
    (one, *rest) = scripted(setting, *range(4))
    tasks = [look_up(setting, each) for each in (one, *rest)]
    setting.cloud.script(f"GET {one}", error(429, THROTTLED, retry_after="200"))
    setting.world.advance(3)
    assert {refusal(task).code for task in tasks[1:]} == {Code.PROVIDER_THROTTLED}


def test_who_begins_goes_on_before_those_who_have_not() -> None:
    """A retry, and what a look-up reads besides, do not wait at the end of the line."""
    setting = slow()
    empty(setting)
    (one, *rest) = scripted(setting, *range(10))
    setting.cloud.script(f"GET {one}", error(503, retry_after="1"), reply(200, {}))
    for each in (one, *rest):
        _ = look_up(setting, each)
        setting.world.advance(0.01)
    setting.world.settle()
    asked = [each for each in setting.cloud.paths if each in (one, *rest)]
    assert asked.count(one) == 2
    assert asked.index(one, 1) <= 3
    assert [each for each in asked if each != one] == rest


def test_who_gives_up_leaves_the_place_to_others() -> None:
    setting = slow()
    empty(setting)
    paths = scripted(setting, *range(10))
    tasks = [read(setting, each) for each in paths]
    for task in tasks[:9]:
        task.close()
    setting.world.advance(3)
    assert tasks[9].is_done


@pytest.mark.parametrize("name", REMAINING)
def test_what_the_provider_says_is_left_lowers_the_budget_and_never_raises_it(name: str) -> None:
    setting = slow(10)
    (where,) = scripted(setting, 1)
    setting.cloud.script(f"GET {where}", reply(200, {}, **{name: "3"}), reply(200, {}, **{name: "12000"}))
    setting.world.perform(setting.client.call(ApiCall(url=f"{ARM}{where}", scope=SCOPE)))
    tasks = [read(setting, where) for _ in range(10)]
    setting.world.advance(0)
    assert sum(task.is_done for task in tasks) == 3


@pytest.mark.parametrize("text", ["", "-1", "nonsense", "1e3", "9" * 30])
def test_a_header_that_makes_no_sense_is_ignored(text: str) -> None:
    budget = ReadBudget()
    budget.flow(1, START)
    budget.heed(reply(200, {}, **{REMAINING[0]: text}), START)
    assert budget.next_opens_at == START


def test_one_machine_that_is_throttled_stops_nobody_else() -> None:
    """The provider counts reads of each machine besides; who asks for one too often must not close the subscription."""
    setting = slow()
    one, other = scripted(setting, 1, 2)
    setting.cloud.script(f"GET {one}", error(429, "OperationNotAllowed", retry_after="1200"))
    setting.client = replace(setting.client, retry=RetryPolicy(max_retries=0))
    with pytest.raises(ProviderProblem):
        setting.world.perform(machine_facts(setting.client, parse(one)))
    assert setting.world.perform(machine_facts(setting.client, parse(other)))
    assert not setting.pauses


@pytest.mark.parametrize("asked, waited", [("30", 30), ("80000", MOST_CLOSED), ("soon", 1)])
def test_a_subscription_that_is_throttled_is_left_alone_for_a_while(asked: str, waited: float) -> None:
    budget = ReadBudget()
    budget.flow(1, START)
    budget.heed(error(429, THROTTLED, retry_after=asked), START)
    assert budget.next_opens_at == START + waited + 1
