"""Applications and their passwords."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from cloudid_core.errors import ProviderAmbiguous, ProviderProblem
from cloudid_core.provider.applications import (
    Application,
    Description,
    Password,
    add_password,
    application_by_unique_name,
    applications_by_client_id,
    change_audience,
    delete_application,
    describe_application,
    ensure_application,
    find_application,
    make_password,
    marked_applications,
    marked_by,
    purge,
    remove_password,
)

from .cloud import START, Reply, Setting, error, reply, unreachable

NAME = "cloudid-x-1"
APPLICATIONS = "/v1.0/applications"
KEY_PATH = f"{APPLICATIONS}(uniqueName='{NAME}')"
OBJECT_PATH = f"{APPLICATIONS}/o-1"
ABSENT = error(404, "Request_ResourceNotFound")
NOT_OFFERED = error(400, "BadRequest")


def shown(object_id: str = "o-1", **fields: Any) -> dict[str, Any]:
    return {"id": object_id, "appId": "c-1", "displayName": "shown", "passwordCredentials": [], **fields}


def listed(*applications: dict[str, Any]) -> Reply:
    return reply(200, {"value": list(applications)})


def ensure(setting: Setting, **fields: Any) -> Application:
    program = ensure_application(setting.client, NAME, Description(**fields))
    return setting.world.perform(program)


def bodies(setting: Setting, path: str) -> list[Any]:
    return [json.loads(request.body) for request in setting.cloud.asked(path) if request.body]


def condition(setting: Setting) -> str:
    """The filter of the last request."""
    return dict(parse_qsl(urlsplit(setting.cloud.requests[-1].url).query))["$filter"]


def without_upserts() -> Setting:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", NOT_OFFERED)
    setting.cloud.script(f"GET {KEY_PATH}", NOT_OFFERED)
    setting.cloud.script(f"GET {APPLICATIONS}", listed())
    return setting


def test_an_application_is_made_under_its_unique_name() -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", reply(201, shown(uniqueName=NAME)))
    made = ensure(setting, tags=("a",), sign_in_audience="AzureADMyOrg")
    assert made == Application("o-1", "c-1", "shown", NAME, ())
    assert bodies(setting, KEY_PATH) == [{"displayName": NAME, "tags": ["a"], "signInAudience": "AzureADMyOrg"}]


def test_an_audience_is_always_sent_because_the_default_of_azure_is_every_account() -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", reply(204))
    setting.cloud.script(f"GET {KEY_PATH}", reply(200, shown()))
    assert ensure(setting).object_id == "o-1"
    assert bodies(setting, KEY_PATH) == [{"displayName": NAME, "signInAudience": "AzureADMyOrg"}]


def test_without_upserts_the_marker_is_display_name_and_tag() -> None:
    setting = without_upserts()
    setting.cloud.script(f"POST {APPLICATIONS}", reply(201, shown(displayName=NAME)))
    assert ensure(setting, tags=("a",)).object_id == "o-1"
    assert bodies(setting, APPLICATIONS) == [
        {"displayName": NAME, "signInAudience": "AzureADMyOrg", "tags": ["a", NAME]}
    ]


def test_without_upserts_an_application_that_is_there_is_taken() -> None:
    setting = without_upserts()
    setting.cloud.script(f"GET {APPLICATIONS}", listed(shown("o-2", displayName=NAME, tags=[NAME])))
    assert ensure(setting).object_id == "o-2"
    assert bodies(setting, APPLICATIONS) == []


@pytest.mark.parametrize("lost", [unreachable(), error(500), error(504), reply(201, {"what": "?"})])
def test_a_lost_answer_is_looked_up_by_the_marker(lost: Reply) -> None:
    setting = without_upserts()
    setting.cloud.script(f"POST {APPLICATIONS}", lost)
    setting.cloud.script(f"GET {APPLICATIONS}", listed(), listed(shown(displayName=NAME, tags=[NAME])))
    assert ensure(setting).object_id == "o-1"


def test_an_application_that_may_have_been_made_is_not_made_again() -> None:
    """The list may lag behind: no record would list a second one."""
    setting = without_upserts()
    setting.cloud.script(f"POST {APPLICATIONS}", unreachable())
    with pytest.raises(ProviderAmbiguous):
        ensure(setting)
    assert len(bodies(setting, APPLICATIONS)) == 1


@pytest.mark.parametrize("look", [error(403), error(404), error(500), unreachable()])
def test_an_application_that_may_have_been_made_stays_so_when_nobody_can_look(look: Reply) -> None:
    setting = without_upserts()
    setting.cloud.script(f"POST {APPLICATIONS}", unreachable())
    setting.cloud.script(f"GET {APPLICATIONS}", listed(), *[look] * 4)
    with pytest.raises(ProviderAmbiguous):
        ensure(setting)


def test_a_definite_refusal_is_tried_again() -> None:
    setting = without_upserts()
    setting.cloud.script(f"POST {APPLICATIONS}", error(429), reply(201, shown()))
    assert ensure(setting).object_id == "o-1"


def test_an_application_is_found_by_its_unique_name_or_by_its_marker() -> None:
    setting = Setting()
    look_up = application_by_unique_name
    setting.cloud.script(f"GET {KEY_PATH}", reply(200, shown()), ABSENT)
    setting.cloud.script(f"GET {APPLICATIONS}", listed(shown("o-2", displayName=NAME, tags=[NAME])), listed())
    found = [setting.world.perform(look_up(setting.client, NAME)) for _ in range(3)]
    assert [each and each.object_id for each in found] == ["o-1", "o-2", None]
    assert condition(setting) == f"tags/any(t:t eq '{NAME}')"


def test_a_marker_must_match_exactly() -> None:
    setting = without_upserts()
    setting.cloud.script(f"GET {APPLICATIONS}", listed(shown(tags=[NAME.upper()])))
    assert setting.world.perform(application_by_unique_name(setting.client, NAME)) is None


def test_passwords_are_shown_without_those_that_have_no_key_id() -> None:
    credentials = [
        {"keyId": "k-1", "displayName": "p", "hint": "abc", "endDateTime": "2023-11-14T22:13:20.1234567Z"},
        {"keyId": "k-2", "displayName": None, "hint": None, "endDateTime": None},
        {"keyId": None, "displayName": "ghost"},
    ]
    setting = Setting()
    setting.cloud.script(f"GET {OBJECT_PATH}", reply(200, shown(passwordCredentials=credentials)))
    found = setting.world.perform(find_application(setting.client, "o-1"))
    assert found is not None
    assert found.passwords == (Password("k-1", "p", "abc", START + 0.123456), Password("k-2", "", "", None))


def test_an_application_that_is_not_there_is_none() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {OBJECT_PATH}", ABSENT)
    assert setting.world.perform(find_application(setting.client, "o-1")) is None


def test_applications_are_listed_by_client_id_and_by_marker() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {APPLICATIONS}", listed(shown("o-1"), shown("o-2")))
    found = setting.world.perform(applications_by_client_id(setting.client, "c'1"))
    assert [each.object_id for each in found] == ["o-1", "o-2"]
    assert condition(setting) == "appId eq 'c''1'"
    marked = setting.world.perform(marked_applications(setting.client, marked_by("it's-")[0], setting.world.clock + 10))
    assert (len(marked.items), marked.is_complete) == (2, True)
    assert condition(setting) == "startswith(displayName,'it''s-')"


def add(setting: Setting, *replies: Reply) -> Any:
    setting.cloud.script(f"POST {OBJECT_PATH}/addPassword", *replies)
    program = add_password(setting.client, "o-1", display_name="p", starts_at=START - 60, ends_at=START + 60)
    return setting.world.perform(program)


@pytest.mark.parametrize("tags", [("a",), ()])
def test_tags_and_audience_of_an_application_are_replaced(tags: tuple[str, ...]) -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {OBJECT_PATH}", reply(204))
    setting.world.perform(describe_application(setting.client, "o-1", NAME, Description(tags=tags)))
    assert bodies(setting, OBJECT_PATH) == [{"tags": list(tags), "signInAudience": "AzureADMyOrg"}]


def test_an_application_with_a_prefix_and_a_reference_is_tagged_with_its_unique_name() -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", reply(201, shown(uniqueName=NAME)))
    ensure(setting, tags=("a",), display_name_prefix="team ", is_tagged=True, service_management_reference="r-1")
    (body,) = bodies(setting, KEY_PATH)
    assert (body["displayName"], body["tags"], body["serviceManagementReference"]) == (
        f"team {NAME}",
        ["a", NAME],
        "r-1",
    )


def test_a_reference_is_sent_only_where_there_is_or_was_one() -> None:
    setting = Setting()
    for reference, had_reference in (("r-1", False), ("", True), ("", False)):
        setting.cloud.script(f"PATCH {OBJECT_PATH}", reply(204))
        description = Description(service_management_reference=reference)
        change = describe_application(setting.client, "o-1", NAME, description, had_reference=had_reference)
        setting.world.perform(change)
    sent = [body.get("serviceManagementReference", "nothing") for body in bodies(setting, OBJECT_PATH)]
    assert sent == ["r-1", None, "nothing"]


@pytest.mark.parametrize("answer", [reply(204), error(404)])
def test_the_audience_of_an_application_is_changed_where_there_is_one(answer: Any) -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {OBJECT_PATH}", answer)
    setting.world.perform(change_audience(setting.client, "o-1", "AzureADMyOrg"))
    assert bodies(setting, OBJECT_PATH) == [{"signInAudience": "AzureADMyOrg"}]


def test_a_password_is_added() -> None:
    setting = Setting()
    answer = {"keyId": "k-1", "secretText": "c4n4ry", "endDateTime": "2023-11-14T22:14:19Z"}
    added = add(setting, reply(200, answer))
    assert (added.key_id, added.secret.reveal(), added.ends_at) == ("k-1", "c4n4ry", START + 59)
    assert "c4n4ry" not in repr(added)
    wanted = {"displayName": "p", "startDateTime": "2023-11-14T22:12:20Z", "endDateTime": "2023-11-14T22:14:20Z"}
    assert bodies(setting, f"{OBJECT_PATH}/addPassword") == [{"passwordCredential": wanted}]


def test_a_password_without_an_end_has_the_one_that_was_asked_for() -> None:
    assert add(Setting(), reply(200, {"keyId": "k-1", "secretText": "s", "endDateTime": None})).ends_at == START + 60


@pytest.mark.parametrize("lost", [unreachable(), error(500), reply(200, {"keyId": "k-1"})])
def test_a_password_that_may_have_been_added_is_not_added_again(lost: Reply) -> None:
    setting = Setting()
    with pytest.raises(ProviderAmbiguous):
        add(setting, lost)
    assert len(setting.cloud.asked(f"{OBJECT_PATH}/addPassword")) == 1


@pytest.mark.parametrize("refusals", [1, 2])
def test_a_lost_password_that_cannot_be_removed_at_once_is_removed_before_another_is_added(refusals: int) -> None:
    """Otherwise no record would list it."""
    setting = Setting()
    lost = shown(passwordCredentials=[{"keyId": "k-1", "displayName": NAME}])
    setting.cloud.script(f"GET {OBJECT_PATH}", *(1 + refusals) * [reply(200, lost)])
    setting.cloud.script(f"POST {OBJECT_PATH}/removePassword", *refusals * [error(409)], reply(204))
    setting.cloud.script(
        f"POST {OBJECT_PATH}/addPassword", unreachable(), reply(200, {"keyId": "k-2", "secretText": "s"})
    )
    made = make_password(setting.client, "o-1", name=NAME, starts_at=0.0, ends_at=1.0)
    assert setting.world.perform(made).key_id == "k-2"
    changes = [path for path in setting.cloud.paths if "Password" in path]
    assert changes == [
        f"{OBJECT_PATH}/{what}" for what in ("addPassword", *(1 + refusals) * ["removePassword"], "addPassword")
    ]


def remove(setting: Setting, *replies: Reply) -> bool:
    setting.cloud.script(f"POST {OBJECT_PATH}/removePassword", *replies)
    return setting.world.perform(remove_password(setting.client, "o-1", "k-1"))


def test_a_password_is_removed() -> None:
    setting = Setting()
    assert remove(setting, reply(204))
    assert bodies(setting, f"{OBJECT_PATH}/removePassword") == [{"keyId": "k-1"}]


def test_no_application_no_password() -> None:
    assert not remove(Setting(), ABSENT)


@pytest.mark.parametrize("application", [ABSENT, reply(200, shown(passwordCredentials=[{"keyId": "k-2"}]))])
def test_whether_a_password_is_gone_is_read_from_its_application(application: Reply) -> None:
    """The first try may have removed it, and its answer may have been lost.

    Source: `deleteAppPassword` of hashicorp/vault-plugin-secrets-azure: "No password credential found with keyId".
    """
    setting = Setting()
    setting.cloud.script(f"GET {OBJECT_PATH}", application)
    assert not remove(setting, unreachable(), error(400, "Request_BadRequest"))


def test_a_password_that_stays_is_a_problem() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {OBJECT_PATH}", reply(200, shown(passwordCredentials=[{"keyId": "k-1"}])))
    with pytest.raises(ProviderProblem):
        remove(setting, error(400, "Request_BadRequest"))


def test_a_removal_waits_for_other_changes_of_the_application() -> None:
    assert remove(Setting(), *2 * [error(409, "Directory_ConcurrencyViolation")], reply(204))


def test_a_conflict_that_does_not_pass_is_a_problem() -> None:
    with pytest.raises(ProviderProblem):
        remove(Setting(), error(409, "Directory_ConcurrencyViolation"))


@pytest.mark.parametrize("answer, removed", [(reply(204), True), (ABSENT, False)])
def test_deletion_and_purge_tell_whether_there_was_something(answer: Reply, removed: bool) -> None:
    setting = Setting()
    setting.cloud.script(f"DELETE {OBJECT_PATH}", answer)
    setting.cloud.script("DELETE /v1.0/directory/deletedItems/o-1", answer)
    assert setting.world.perform(delete_application(setting.client, "o-1")) is removed
    assert setting.world.perform(purge(setting.client, "o-1")) is removed
