"""Facts and their reuse."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cloudid_core.effects import Now
from cloudid_core.errors import ProviderProblem
from cloudid_core.provider.compute import Machine
from cloudid_core.provider.facts import machine_facts, member_groups
from cloudid_core.values.resource_id import USER_ASSIGNED_IDENTITY, VIRTUAL_MACHINE, parse

from .cloud import CLOUD, TOKEN_PATH, Setting, error, reply, token

GROUP = "/subscriptions/aaaaaaaa-0000-0000-0000-000000000001/resourceGroups/rg/providers"
VM = f"{GROUP}/{VIRTUAL_MACHINE}/vm"
GROUPS = "/v1.0/directoryObjects/p1/getMemberGroups"


def known(**settings: Any) -> Setting:
    setting = Setting(**settings)
    setting.cloud.script(f"GET {VM}", reply(200, {"location": "westus2", "identity": {"principalId": "p1"}}))
    return setting


def unknown(**settings: Any) -> Setting:
    setting = Setting(**settings)
    setting.cloud.script(f"GET {VM}", error(404, "ResourceNotFound"))
    return setting


def ask(setting: Setting, where: str = VM) -> Machine | None:
    return setting.world.perform(machine_facts(setting.client, parse(where)))


def questions(setting: Setting) -> int:
    return len(setting.cloud.asked(VM))


def test_a_fact_is_reused_until_it_is_too_old() -> None:
    setting = known(fact_max_age=60)
    first = ask(setting)
    setting.later(59)
    assert ask(setting) is first
    setting.later(1)
    assert ask(setting) == first
    assert questions(setting) == 2


def test_the_age_counts_from_the_question() -> None:
    """An answer that took its time is old when it comes."""
    setting = known(fact_max_age=60)
    setting.cloud.script(f"GET {VM}", error(429, retry_after="50"), reply(200, {}))
    _ = ask(setting)
    setting.later(10)
    _ = ask(setting)
    assert questions(setting) == 3


def test_a_machine_with_an_unread_identity_is_asked_about_again_as_soon_as_a_missing_one() -> None:
    setting = Setting(missing_max_age=5)
    identity = f"{GROUP}/{USER_ASSIGNED_IDENTITY}/i"
    setting.cloud.script(f"GET {VM}", reply(200, {"identity": {"userAssignedIdentities": {identity: {}}}}))
    setting.cloud.script(f"GET {identity}", error(403), reply(200, {"properties": {"principalId": "p1"}}))
    found = ask(setting)
    assert found is not None
    assert found.unread
    setting.later(4)
    assert ask(setting) is found
    setting.later(1)
    found = ask(setting)
    assert found is not None
    assert (found.principals, found.unread) == (frozenset({"p1"}), None)


def test_absence_is_believed_for_a_shorter_time() -> None:
    setting = unknown(missing_max_age=5)
    assert ask(setting) is None
    setting.later(4)
    assert ask(setting) is None
    setting.later(1)
    assert ask(setting) is None
    assert questions(setting) == 2


def test_an_age_of_zero_asks_always() -> None:
    setting = known(fact_max_age=0)
    _ = ask(setting), ask(setting)
    assert questions(setting) == 2


def test_a_clock_that_went_back_asks_again() -> None:
    setting = known()
    _ = ask(setting)
    setting.world.clock -= 10
    _ = ask(setting)
    assert questions(setting) == 2


@pytest.mark.parametrize("seed", range(5))
def test_many_who_ask_at_once_ask_once(seed: int) -> None:
    setting = known(seed=seed)
    tasks = [setting.world.spawn(machine_facts(setting.client, parse(VM))) for _ in range(20)]
    setting.world.settle()
    assert {task.result() for task in tasks} == {tasks[0].result()}
    assert questions(setting) == 1


def test_an_answer_that_comes_between_look_and_question_is_enough() -> None:
    setting = known()
    slow = machine_facts(setting.client, parse(VM))
    effect = slow.send(None)
    first = ask(setting)

    async def go_on() -> Machine | None:
        reply = await effect
        while True:
            try:
                following = slow.send(reply)
            except StopIteration as finished:
                answer: Machine | None = finished.value
                return answer
            reply = await following

    assert setting.world.perform(go_on()) is first
    assert questions(setting) == 1


def test_case_does_not_matter() -> None:
    setting = known()
    assert ask(setting) is ask(setting, VM.replace("/rg/", "/RG/"))


@pytest.mark.parametrize(
    "changes",
    [{"owner": "mount:2"}, {"tenant": "other.test"}, {"cloud": replace(CLOUD, login="https://other.test")}],
)
def test_what_was_asked_for_one_client_is_not_shown_to_another(changes: dict[str, Any]) -> None:
    setting = known()
    setting.cloud.script("POST /other.test/oauth2/v2.0/token", token())
    _ = ask(setting)
    setting.client = replace(setting.client, **changes)
    _ = ask(setting)
    assert questions(setting) == 2


def test_a_failure_is_not_remembered() -> None:
    setting = known()
    setting.cloud.script(f"GET {VM}", error(403), reply(200, {}))
    with pytest.raises(ProviderProblem):
        ask(setting)
    assert ask(setting) is not None


def test_a_known_fact_needs_nothing_but_the_time() -> None:
    setting = known()
    _ = ask(setting)
    before = len(setting.world.trace)
    _ = ask(setting)
    assert [type(effect) for _, effect in setting.world.trace[before:]] == [Now]


def test_groups_are_reused_alike() -> None:
    setting = Setting(fact_max_age=60)
    setting.cloud.script(f"POST {GROUPS}", reply(200, {"value": ["G1"]}), reply(200, {"value": []}))
    for principal in ("p1", "P1"):
        assert setting.world.perform(member_groups(setting.client, principal)) == frozenset({"g1"})
    assert setting.cloud.paths == [TOKEN_PATH, GROUPS]
    setting.later(60)
    assert setting.world.perform(member_groups(setting.client, "p1")) == frozenset()
