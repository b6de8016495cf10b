"""Lists that answer many look-ups, and what they must not be believed."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen
from msgspec.structs import replace

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.provider.compute import Machine
from cloudid_core.provider.facts import machine_facts
from cloudid_core.provider.lists import (
    COUNTED_SECONDS,
    FAILED_SECONDS,
    GROUP,
    LIST_SECONDS,
    REFUSED_SECONDS,
)
from cloudid_core.provider.read_budget import BURST_SECONDS
from cloudid_core.values.resource_id import (
    SCALE_SET,
    SCALE_SET_INSTANCE,
    USER_ASSIGNED_IDENTITY,
    VIRTUAL_MACHINE,
    parse,
)

from .cloud import ARM, START, Reply, Setting, error, reply, token, unreachable

HEAD = "/subscriptions/aaaaaaaa-0000-0000-0000-000000000001"
MACHINES = f"{HEAD}/resourceGroups/rg/providers/{VIRTUAL_MACHINE}"
ALL = f"{HEAD}/providers/{VIRTUAL_MACHINE}"


def path(number: int) -> str:
    return f"{MACHINES}/vm{number}"


def show(where: str, **changes: Any) -> Any:
    return {"id": where, "location": "westus2", "identity": {"principalId": f"p-{where[-1]}"}, **changes}


def page(*documents: Any, following: str | None = None) -> Reply:
    return reply(200, {"value": documents, "nextLink": following} if following else {"value": documents})


@frozen
class Hanging:
    """An answer that comes after an hour."""

    response: HttpResponse
    delay: float = 3600.0
    drop: bool = False


def fleet(*lists: Reply, size: int = 20, **settings: Any) -> Setting:
    """Machines of one group, and the answers of its list; of one page with all of them, unless it is told otherwise."""
    setting = Setting(**settings)
    for number in range(size):
        setting.cloud.script(f"GET {path(number)}", reply(200, show(path(number))))
    setting.cloud.script(f"GET {MACHINES}", *(lists or [page(*(show(path(number)) for number in range(size)))]))
    return setting


def ask(setting: Setting, *numbers: int) -> list[Machine | None]:
    return [setting.world.perform(machine_facts(setting.client, parse(path(number)))) for number in numbers]


def lists(setting: Setting) -> int:
    return len(setting.cloud.asked(MACHINES))


def singles(setting: Setting) -> list[int]:
    return [number for number in range(20) if setting.cloud.asked(path(number))]


def test_a_list_answers_for_all_once_several_of_its_machines_were_asked_for() -> None:
    setting = fleet()
    machines = ask(setting, *range(20))
    assert all(machine and f"p-{machine.resource_id.name[-1]}" in machine.principals for machine in machines)
    assert singles(setting) == list(range(GROUP.fewest - 1))
    assert lists(setting) == 1


def test_a_list_says_of_a_machine_what_its_own_document_says() -> None:
    document = show(
        path(5),
        location="West US 2",
        identity={"principalId": "P", "userAssignedIdentities": {"/i": {"principalId": "Q"}}},
        properties={"virtualMachineScaleSet": {"id": f"{HEAD}/resourceGroups/rg/providers/{SCALE_SET}/fleet"}},
    )
    setting = fleet(page(document))
    setting.cloud.script(f"GET {path(5)}", reply(200, document))
    (alone,) = ask(setting, 5)
    setting.later(setting.context.settings.fact_max_age)
    _, _, listed = ask(setting, 1, 2, 5)
    assert lists(setting) == len(setting.cloud.asked(path(5))) == 1
    assert listed == alone
    assert listed is not alone


def test_the_same_machine_again_and_again_is_no_reason_for_a_list() -> None:
    setting = fleet(fact_max_age=0)
    ask(setting, *[1] * 10, *[2] * 10)
    assert lists(setting) == 0


def test_look_ups_of_another_minute_are_no_reason_for_a_list() -> None:
    setting = fleet()
    for number in range(10):
        ask(setting, number)
        setting.later(COUNTED_SECONDS / 2)
    assert lists(setting) == 0


@pytest.mark.parametrize(
    "changes", [{"owner": "mount:2"}, {"tenant": "11111111-2222-3333-4444-000000000000"}], ids=["owner", "tenant"]
)
def test_what_a_list_says_is_shown_to_nobody_else(changes: dict[str, Any]) -> None:
    setting = fleet()
    ask(setting, 0, 1, 2)
    assert lists(setting) == 1
    setting.client = replace(setting.client, **changes)
    setting.cloud.script(f"POST /{setting.client.tenant}/oauth2/v2.0/token", token())
    ask(setting, 3)
    assert singles(setting) == [0, 1, 3]


def test_a_machine_that_a_list_lacks_is_asked_for_alone() -> None:
    setting = fleet(page(show(path(0))))
    assert all(ask(setting, 0, 1, 2, 3))
    assert lists(setting) == 1
    assert singles(setting) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "entry",
    [
        show("nonsense"),
        show(path(2), properties={"virtualMachineScaleSet": {"id": "nonsense"}}),
        show(path(2), identity={"userAssignedIdentities": {f"{MACHINES}/{USER_ASSIGNED_IDENTITY}/i": {}}}),
    ],
    ids=["id", "scale set", "identity that is only named"],
)
def test_an_entry_that_does_not_tell_all_is_as_none(entry: Any) -> None:
    setting = fleet(page(entry, show(path(3))))
    ask(setting, 0, 1, 2, 3)
    assert singles(setting) == [0, 1, 2]


@pytest.mark.parametrize(
    "refusal",
    [
        error(403, "AuthorizationFailed"),
        error(404),
        reply(200, {"value": [{"name": "without id"}]}),
        page(following="https://elsewhere.test/more"),
    ],
    ids=["forbidden", "not there", "nonsense", "link to elsewhere"],
)
def test_a_list_that_is_refused_is_not_asked_for_again_for_a_while(refusal: Reply) -> None:
    setting = fleet(refusal, fact_max_age=0)
    assert all(ask(setting, *range(20)))
    assert lists(setting) == 1
    setting.later(REFUSED_SECONDS)
    assert all(ask(setting, *range(20)))
    assert lists(setting) == 2


@pytest.mark.parametrize("trouble", [unreachable(), error(500), error(429, retry_after="1200")])
def test_a_list_that_fails_leaves_time_to_ask_for_each_alone_and_is_tried_again_sooner(trouble: Reply) -> None:
    setting = fleet(trouble, page(), fact_max_age=0)
    setting.cloud.script(f"GET {MACHINES}", trouble)
    began = setting.world.clock
    assert all(ask(setting, 0, 1, 2))
    assert setting.world.clock - began <= LIST_SECONDS
    before = lists(setting)
    assert all(ask(setting, *range(20)))
    assert lists(setting) == before
    setting.later(FAILED_SECONDS)
    assert all(ask(setting, *range(20)))
    assert lists(setting) > before


def test_a_list_that_hangs_leaves_time_to_ask_for_each_alone() -> None:
    setting = fleet()
    answer = setting.cloud

    def hang(request: HttpRequest) -> HttpResponse | Hanging:
        response = answer(request)
        return Hanging(response) if setting.cloud.paths[-1] == MACHINES else response

    setting.world.provider = hang
    assert all(ask(setting, 0, 1, 2))
    assert setting.world.clock - START <= LIST_SECONDS


def test_a_list_whose_pages_are_slow_leaves_time_to_ask_for_each_alone() -> None:
    """Its time is not longer for having more pages. Machines of the pages that were read are not asked for alone."""
    pages = [page(show(path(number)), following=f"{ARM}{MACHINES}?page={number}") for number in range(10)]
    setting = fleet(*pages)
    answer = setting.cloud

    def crawl(request: HttpRequest) -> HttpResponse | Hanging:
        response = answer(request)
        return Hanging(response, delay=10.0) if setting.cloud.paths[-1] == MACHINES else response

    setting.world.provider = crawl
    asked = [setting.world.spawn(machine_facts(setting.client, parse(path(number)))) for number in range(20)]
    setting.world.settle()
    assert all(task.result() for task in asked)
    assert setting.world.clock - START <= LIST_SECONDS + 1
    assert lists(setting) == 2


def test_facts_of_a_list_are_as_old_as_its_answer() -> None:
    setting = fleet(fact_max_age=60)
    ask(setting, 0, 1, 2)
    setting.later(59)
    ask(setting, 3)
    assert singles(setting) == [0, 1]
    setting.later(1)
    ask(setting, 4)
    assert singles(setting) == [0, 1, 4]


def test_those_who_wait_for_a_list_have_its_answer_even_if_facts_are_not_kept() -> None:
    setting = fleet(fact_max_age=0)
    tasks = [setting.world.spawn(machine_facts(setting.client, parse(path(number)))) for number in range(20)]
    setting.world.settle()
    assert all(task.result() for task in tasks)
    assert lists(setting) == 1
    assert len(singles(setting)) == GROUP.fewest - 1


def test_a_list_that_is_longer_than_what_it_replaces_is_given_up_and_needs_more_reasons_next_time() -> None:
    """It never doubles what look-ups alone would have cost."""
    link = f"{ARM}{MACHINES}?api-version=2026-04-01&$skiptoken=more"
    setting = fleet(page(following=link), fact_max_age=0)
    assert all(ask(setting, *range(20)))
    assert lists(setting) == 3 + 6  # pages
    assert lists(setting) <= len(singles(setting))


def test_pages_follow_each_other_while_they_are_worth_it() -> None:
    link = f"{ARM}{MACHINES}?api-version=2026-04-01&$skiptoken=more"
    setting = fleet(page(show(path(0)), following=link), page(show(path(2)), following=link), page(show(path(9))))
    ask(setting, 0, 1, 2, 9)
    assert lists(setting) == 3
    assert singles(setting) == [0, 1]


def test_instances_are_listed_for_each_set() -> None:
    setting = Setting()
    instances = f"{HEAD}/resourceGroups/rg/providers/{SCALE_SET}/fleet/virtualMachines"
    named = [f"{instances}/{number}" for number in range(5)]
    assert parse(named[0]).is_a(SCALE_SET_INSTANCE)
    for each in named:
        setting.cloud.script(f"GET {each}", reply(200, show(each)))
    setting.cloud.script(f"GET {instances}", page(*map(show, named)))
    for each in named:
        assert setting.world.perform(machine_facts(setting.client, parse(each)))
    assert len(setting.cloud.asked(instances)) == 1


def test_types_whose_lists_are_not_known_are_never_listed() -> None:
    setting = Setting()
    sites = f"{HEAD}/resourceGroups/rg/providers/Microsoft.Web/sites"
    for number in range(10):
        setting.cloud.script(f"GET {sites}/{number}", reply(200, show(f"{sites}/{number}")))
        setting.world.perform(machine_facts(setting.client, parse(f"{sites}/{number}")))
    assert not setting.cloud.asked(sites)


@pytest.mark.parametrize("rate, listed", [(0, 0), (1000, 0), (1, 1)], ids=["unlimited", "plenty", "scarce"])
def test_a_whole_subscription_is_listed_only_while_look_ups_have_to_wait(rate: int, listed: int) -> None:
    setting = Setting(provider_read_rate=rate)
    paths = [f"{HEAD}/resourceGroups/rg{number}/providers/{VIRTUAL_MACHINE}/vm" for number in range(70)]
    for each in paths:
        setting.cloud.script(f"GET {each}", reply(200, show(each)))
    setting.cloud.script(f"GET {ALL}", page(*map(show, paths)))
    for each in paths:
        _ = setting.world.spawn(machine_facts(setting.client, parse(each)))
        setting.world.advance(0)
    setting.world.settle()
    assert len(setting.cloud.asked(ALL)) == listed
    alone = sum(bool(setting.cloud.asked(each)) for each in paths)
    assert alone <= BURST_SECONDS + 1 if listed else alone == len(paths)
