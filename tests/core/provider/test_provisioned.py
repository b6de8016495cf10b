"""The removal of what a record holds at the provider."""

from __future__ import annotations

from itertools import groupby
from urllib.parse import urlsplit

import pytest
from attrs import evolve, frozen

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.provider.provisioned import Provisioned, Removal, remove

from .cloud import START, Setting, error, reply, unreachable

ASSIGNMENTS = ("/subscriptions/s/providers/a/1", "/subscriptions/s/providers/a/2")
ABSENT = error(404, "Request_ResourceNotFound")
GONE = reply(204)
APPLICATIONS = "/v1.0/applications"
BY_NAME = f"{APPLICATIONS}(uniqueName='u-1')"
PRINCIPAL_OF = "/v1.0/servicePrincipals(appId='c-1')"
DELETED = "/v1.0/directory/deletedItems"
FOUND = {"id": "o-1", "appId": "c-1"}
DYNAMIC = Provisioned(
    made_at=START,
    unique_name="u-1",
    application_id="o-1",
    client_id="c-1",
    principal_id="p-1",
    member_id="p-1",
    assignments=ASSIGNMENTS,
    groups=("g-1", "g-2"),
)
LISTING = "GET /subscriptions/s/providers/a"
KILL = "POST /v1.0/applications/o-1/removePassword"
WITH_SECRET = evolve(DYNAMIC, password_on="o-1", password_name="u-1", password_key_id="k-1")
PASSWORD = Provisioned(made_at=START, password_on="o-9", password_name="n-1", password_key_id="k-1")
INTENDED = evolve(DYNAMIC, application_id="", client_id="", principal_id="", member_id="")
EMPTY = Provisioned(made_at=START)


def removal_paths(provisioned: Provisioned) -> list[str]:
    """Everything that is deleted, in its order."""
    return [
        *(f"DELETE {path}" for path in provisioned.assignments),
        *(f"DELETE /v1.0/groups/{group}/members/p-1/$ref" for group in provisioned.groups),
        "DELETE /v1.0/servicePrincipals/p-1",
        "DELETE /v1.0/applications/o-1",
    ]


def cloud() -> Setting:
    """A cloud that holds everything of `DYNAMIC` and `PASSWORD`."""
    setting = Setting()
    for what in removal_paths(DYNAMIC):
        setting.cloud.script(what, reply(200, {}) if "providers" in what else GONE)
    setting.cloud.script("POST /v1.0/applications/o-9/removePassword", GONE)
    setting.cloud.script(KILL, GONE)
    setting.cloud.script(LISTING, reply(200, {"value": []}))
    setting.cloud.script(f"GET {BY_NAME}", reply(200, FOUND))
    setting.cloud.script(f"GET {PRINCIPAL_OF}", reply(200, {"id": "p-1"}))
    setting.cloud.script(f"GET {APPLICATIONS}", reply(200, {"value": []}))
    setting.cloud.script("GET /v1.0/servicePrincipals", reply(200, {"value": []}))
    setting.cloud.script(f"DELETE {DELETED}/p-1", GONE)
    setting.cloud.script(f"DELETE {DELETED}/o-1", GONE)
    return setting


def attempt(setting: Setting, provisioned: Provisioned, *, settled: bool = True) -> Removal:
    return setting.world.perform(remove(setting.client, provisioned, settled=settled))


def asked(setting: Setting) -> list[str]:
    """Everything that was asked of the provider, but access tokens and the list of a principal's assignments."""
    asked = [f"{request.method} {request.url}" for request in setting.cloud.requests]
    shown = [
        each.replace("https://arm.test", "").replace("https://graph.test", "").partition("?")[0]
        for each in asked
        if "oauth2" not in each
    ]
    return [each for each in shown if each != LISTING]


def in_order(calls: list[str]) -> list[str]:
    """Calls as they were made; those for several objects of one kind, which run in parallel, in a fixed order."""
    kinds = ("removePassword", "providers", "members", "servicePrincipals", "applications", "deletedItems")

    def kind(call: str) -> str:
        return next(kind for kind in kinds if kind in call)

    return [call for _, group in groupby(calls, kind) for call in sorted(group)]


def test_the_secret_dies_first_and_the_application_goes_last() -> None:
    setting = cloud()
    removal = attempt(setting, WITH_SECRET, settled=False)
    assert (removal.left.is_empty, removal.reasons) == (True, ())
    assert in_order(asked(setting)) == [KILL, *removal_paths(DYNAMIC)]


@frozen
class Late:
    """An answer that arrives so many seconds late."""

    response: HttpResponse
    delay: float
    drop: bool = False


def hang(setting: Setting, what: str) -> None:
    """Let one call go without an answer."""

    def provider(request: HttpRequest) -> HttpResponse | Late:
        answer = setting.cloud(request)
        return Late(answer, 1000.0) if f"{request.method} {urlsplit(request.url).path}" == what else answer

    setting.world.provider = provider


@pytest.mark.parametrize("hanging", [KILL, *removal_paths(DYNAMIC)])
def test_a_call_that_hangs_keeps_no_other_step_waiting(hanging: str) -> None:
    """Each step has its own share of the time."""
    setting = cloud()
    hang(setting, hanging)
    removal = attempt(setting, WITH_SECRET)
    assert set(asked(setting)) == {KILL, *removal_paths(DYNAMIC)}
    assert setting.world.clock <= START + 90
    assert len(removal.failures) == 1


@pytest.mark.parametrize("purge", [False, True])
def test_a_secret_ends_with_its_application(purge: bool) -> None:
    """Its own removal failed, and nothing is to be done about that any more."""
    setting = cloud()
    setting.cloud.script(KILL, error(403, "Denied"))
    setting.cloud.script(f"DELETE {DELETED}/o-1", ABSENT)
    removal = attempt(setting, evolve(WITH_SECRET, purge=purge), settled=False)
    assert (removal.left.is_empty, removal.left.password_on, removal.is_accepted) == (not purge, "", True)


def test_an_unknown_number_of_assignments_does_not_wait_for_one_that_hangs() -> None:
    many = tuple(f"/subscriptions/s/providers/a/{number}" for number in range(30))
    setting = cloud()
    for path in many:
        setting.cloud.script(f"DELETE {path}", reply(200, {}))
    hang(setting, f"DELETE {many[0]}")
    removal = attempt(setting, evolve(DYNAMIC, assignments=many, principal_id="", application_id="", unique_name=""))
    assert removal.left.assignments == many[:1]


def test_nothing_held_nothing_done() -> None:
    setting = cloud()
    assert attempt(setting, EMPTY) == Removal(EMPTY, ())
    assert asked(setting) == []


@pytest.mark.parametrize("failing", removal_paths(DYNAMIC))
def test_one_failure_stops_nothing_else(failing: str) -> None:
    """What failed is left, with its reason, and is all that the next attempt has to do."""
    setting = cloud()
    setting.cloud.script(failing, error(403, "Denied"), GONE)
    removal = attempt(setting, DYNAMIC)
    assert in_order(asked(setting)) == removal_paths(DYNAMIC)
    (reason,) = removal.reasons
    assert "403 Denied" in reason
    assert removal.is_accepted == ("members" in failing)
    setting.cloud.script(f"GET {PRINCIPAL_OF}", ABSENT)
    again = attempt(setting, removal.left)
    assert again.left.is_empty
    later = asked(setting)[len(removal_paths(DYNAMIC)) :]
    assert [each for each in later if each.startswith("DELETE")] == ([] if "members" in failing else [failing])


def test_memberships_end_with_their_principal() -> None:
    setting = cloud()
    setting.cloud.script("DELETE /v1.0/groups/g-1/members/p-1/$ref", error(403, "Denied"))
    removal = attempt(setting, DYNAMIC)
    assert (removal.left.is_empty, removal.is_accepted, len(removal.reasons)) == (True, True, 1)


def test_memberships_are_removed_of_a_principal_that_is_not_held() -> None:
    setting = cloud()
    joined = Provisioned(made_at=START, member_id="p-1", groups=("g-1", "g-2"))
    setting.cloud.script("DELETE /v1.0/groups/g-1/members/p-1/$ref", error(403, "Denied"), ABSENT, ABSENT)
    removal = attempt(setting, joined)
    assert removal.left == evolve(joined, groups=("g-1",))
    assert attempt(setting, removal.left, settled=False).left.groups == ("g-1",)
    assert attempt(setting, removal.left, settled=True).left.is_empty
    assert all("/groups/" in each for each in asked(setting))


@pytest.mark.parametrize("absent", [path for path in removal_paths(DYNAMIC) if "members" not in path])
def test_absence_counts_once_the_directory_has_settled(absent: str) -> None:
    setting = cloud()
    setting.cloud.script(absent, ABSENT)
    unsettled = attempt(setting, DYNAMIC, settled=False)
    assert not unsettled.left.is_empty
    assert "settle time" in unsettled.reasons[0]
    assert attempt(setting, DYNAMIC, settled=True).left.is_empty


def test_the_reason_of_a_lost_connection_names_the_host_and_why() -> None:
    setting = cloud()
    setting.cloud.script("DELETE /v1.0/applications/o-1", unreachable())
    [reason] = attempt(setting, DYNAMIC).reasons
    assert reason.startswith("application: the provider gave no answer (nobody there (client request ")


def test_a_passed_deadline_leaves_all_as_it_is() -> None:
    setting = cloud()
    setting.world.advance(91)
    removal = attempt(setting, DYNAMIC)
    assert removal.left == DYNAMIC
    assert asked(setting) == []


def test_an_application_whose_answer_was_lost_is_found_by_its_unique_name() -> None:
    setting = cloud()
    removal = attempt(setting, INTENDED, settled=False)
    assert (removal.left.is_empty, removal.reasons) == (True, ())
    assert asked(setting)[:2] == [f"GET {BY_NAME}", f"GET {PRINCIPAL_OF}"]
    assert in_order(asked(setting)[2:]) == removal_paths(DYNAMIC)


def test_an_application_goes_even_if_its_principal_does_not_show() -> None:
    setting = cloud()
    setting.cloud.script(f"GET {PRINCIPAL_OF}", ABSENT)
    assert attempt(setting, evolve(INTENDED, assignments=()), settled=False).left.is_empty
    assert asked(setting)[-1] == "DELETE /v1.0/applications/o-1"


def test_an_application_that_does_not_show_is_looked_for_until_the_directory_has_settled() -> None:
    setting = cloud()
    setting.cloud.script(f"GET {BY_NAME}", ABSENT)
    intended = evolve(INTENDED, assignments=())
    unsettled = attempt(setting, intended, settled=False)
    assert unsettled.left == intended
    assert len(unsettled.reasons) == 1
    assert attempt(setting, intended, settled=True).left.is_empty


def test_a_failed_look_up_is_no_absence() -> None:
    """Neither does it stop the removal of what is known."""
    setting = cloud()
    setting.cloud.script(f"GET {BY_NAME}", error(403, "Denied"))
    removal = attempt(setting, INTENDED, settled=True)
    assert removal.left == evolve(INTENDED, assignments=())
    assert "403 Denied" in removal.reasons[0]


def test_a_password_is_removed_by_its_key_id_and_then_by_its_name() -> None:
    setting = cloud()
    setting.cloud.script("GET /v1.0/applications/o-9", ABSENT)
    assert attempt(setting, PASSWORD, settled=False) == Removal(EMPTY, ())
    path = "/v1.0/applications/o-9"
    assert asked(setting) == [f"POST {path}/removePassword", f"GET {path}"]


def shown(*passwords: tuple[str, str]) -> HttpResponse:
    credentials = [{"keyId": key_id, "displayName": name} for key_id, name in passwords]
    return reply(200, {"id": "o-9", "appId": "c-9", "passwordCredentials": credentials})


def test_a_password_whose_answer_was_lost_is_found_by_its_name() -> None:
    setting = cloud()
    setting.cloud.script("GET /v1.0/applications/o-9", shown(("k-0", "other"), ("k-1", "n-1")))
    removal = attempt(setting, evolve(PASSWORD, password_key_id=""), settled=False)
    assert removal.left.is_empty
    assert setting.cloud.requests[-1].body == b'{"keyId":"k-1"}'


@pytest.mark.parametrize("answer", [shown(("k-0", "other")), ABSENT])
def test_a_password_that_does_not_show_is_looked_for_until_the_directory_has_settled(answer: HttpResponse) -> None:
    setting = cloud()
    setting.cloud.script("GET /v1.0/applications/o-9", answer)
    unnamed = evolve(PASSWORD, password_key_id="")
    assert attempt(setting, unnamed, settled=False).left == unnamed
    assert attempt(setting, unnamed, settled=True).left.is_empty
    assert not setting.cloud.asked("/v1.0/applications/o-9/removePassword")


def test_a_purge_follows_the_deletions() -> None:
    setting = cloud()
    assert attempt(setting, evolve(DYNAMIC, purge=True)).left.is_empty
    assert sorted(asked(setting)[-2:]) == [f"DELETE {DELETED}/o-1", f"DELETE {DELETED}/p-1"]


def test_a_deleted_object_that_does_not_show_yet_is_purged_later() -> None:
    """Even when all was made long ago: it was deleted just now."""
    setting = cloud()
    setting.cloud.script(f"DELETE {DELETED}/p-1", ABSENT, GONE)
    removal = attempt(setting, evolve(DYNAMIC, purge=True), settled=True)
    assert removal.left.to_purge == ("p-1",)
    assert attempt(setting, removal.left).left.is_empty


def test_a_deleted_object_that_never_shows_is_given_up_after_the_settle_time() -> None:
    setting = cloud()
    setting.cloud.script(f"DELETE {DELETED}/p-1", ABSENT)
    left = attempt(setting, evolve(DYNAMIC, purge=True)).left
    setting.later(setting.context.settings.settle_time - 1)
    left = attempt(setting, left).left
    assert left.to_purge == ("p-1",)
    setting.later(1)
    assert attempt(setting, left).left.is_empty


def test_ids_that_were_looked_up_are_written_down_before_what_is_to_be_purged_is_deleted() -> None:
    """A deleted object is not found by its name: a crash after the deletion would leave it unpurged."""
    setting = cloud()
    removal = attempt(setting, evolve(INTENDED, purge=True))
    assert removal.left == evolve(DYNAMIC, purge=True)
    assert all(each.startswith("GET") for each in asked(setting))
    assert attempt(setting, removal.left).left.is_empty


@pytest.mark.parametrize(
    "provisioned", [DYNAMIC, PASSWORD, INTENDED, evolve(EMPTY, to_purge=("o-1",)), evolve(EMPTY, groups=("g-1",))]
)
def test_it_is_not_empty_while_something_may_be_there(provisioned: Provisioned) -> None:
    assert not provisioned.is_empty
