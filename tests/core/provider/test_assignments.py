"""Role assignments."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.errors import ProviderProblem
from cloudid_core.provider.assignments import (
    RoleDefinition,
    assign,
    assignment_path,
    definition_by_id,
    definition_id,
    definitions_by_name,
    scope,
    unassign,
)

from .cloud import ARM, Reply, Setting, error, reply, unreachable

GUID = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
SUBSCRIPTION = f"/subscriptions/{GUID}"
MACHINE = f"{SUBSCRIPTION}/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m"
DEFINITIONS = "/providers/Microsoft.Authorization/roleDefinitions"
READER = f"{SUBSCRIPTION}{DEFINITIONS}/{GUID}"
PATH = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleAssignments/{GUID}"
SHOWN = {"id": READER, "name": GUID, "properties": {"roleName": "Reader", "type": "BuiltInRole"}}


@pytest.mark.parametrize(
    "text",
    [
        SUBSCRIPTION,
        SUBSCRIPTION.replace("subscriptions", "SUBSCRIPTIONS"),
        f"{SUBSCRIPTION}/resourceGroups/my-group_(1)",
        MACHINE,
        f"{MACHINE}/extensions/e",
        "/",
        f"{SUBSCRIPTION}/providers/Microsoft.Security/pricings/VirtualMachines",
        f"{SUBSCRIPTION}/providers/Microsoft.Web/locations/westus/managedApis/sql",
        f"{MACHINE}/providers/Microsoft.Insights/diagnosticSettings/d",
        f"{SUBSCRIPTION}/resourceGroups/Gruppe-ä/providers/Microsoft.Web/sites/shop",
        "/providers/Microsoft.Management/managementGroups/my.group",
        "/providers/Microsoft.Capacity/reservationOrders/order",
        "/providers/Microsoft.Capacity",
        "/providers/Microsoft.BillingBenefits",
    ],
)
def test_scopes_are_taken_as_they_are(text: str) -> None:
    """Source: "Understand scope for Azure RBAC", section on the formats of scopes; "Role Assignments - Create"."""
    assert scope(text) == text


@pytest.mark.parametrize("text", [SUBSCRIPTION, f"{SUBSCRIPTION}/resourceGroups/g", MACHINE])
def test_a_slash_at_the_end_is_not_kept(text: str) -> None:
    assert scope(f"{text}/") == text


def test_the_paths_at_the_root_scope_have_no_empty_segment() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {DEFINITIONS}", reply(200, {"value": [SHOWN]}))
    assert setting.world.perform(definitions_by_name(setting.client, "/", "Reader")) == [
        RoleDefinition(READER, "Reader")
    ]
    assert assignment_path("/", GUID) == f"/providers/Microsoft.Authorization/roleAssignments/{GUID}"


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        "//",
        "/subscriptions",
        "/subscriptions/not-a-guid",
        f"{SUBSCRIPTION}//",
        f"{SUBSCRIPTION}/\n",
        f"{SUBSCRIPTION}\n",
        SUBSCRIPTION[1:],
        f"{SUBSCRIPTION}/resourceGroups",
        f"{SUBSCRIPTION}/resourceGroups/",
        f"{SUBSCRIPTION}/providers/Microsoft.Security",
        f"{SUBSCRIPTION}/providers/Microsoft.Security/pricings",
        f"{MACHINE}/providers/Microsoft.Insights/diagnosticSettings",
        "/resourceGroups/g/providers/Microsoft.Web/sites/shop",
        "/providers/Microsoft.Management/managementGroups/",
        "/providers",
        "/providers/",
        "/providers/Microsoft.Capacity/reservationOrders",
        "/providers/Microsoft.Capacity/..",
        MACHINE + "/extensions/e" * 200,
        f"{SUBSCRIPTION}/resourceGroups/..",
        f"{SUBSCRIPTION}/resourceGroups/a?b",
        f"{SUBSCRIPTION}/resourceGroups/g/providers",
        f"{MACHINE}/..",
        f"{MACHINE}?x=1",
        f"//management.test{SUBSCRIPTION}",
        "/providers/Microsoft.Management/managementGroups/..",
        "/providers/Microsoft.Management/managementGroups/a/b",
        "/providers/Microsoft.Management/managementGroups/" + "g" * 91,
    ],
)
def test_anything_else_is_no_scope(text: object) -> None:
    with pytest.raises(ValueError, match='must be "/" or the id'):
        scope(text)


@given(st.text(alphabet="/.?#%\\ \n'a", max_size=12))
def test_no_tail_changes_what_a_scope_is_about(tail: str) -> None:
    """What is accepted has neither relative nor empty segments, nor anything that starts a query."""
    for base in (SUBSCRIPTION, f"{SUBSCRIPTION}/resourceGroups/g", MACHINE):
        try:
            accepted = scope(base + tail)
        except ValueError:
            continue
        assert not set("?#%\\\n") & set(accepted)
        assert {"", ".", ".."}.isdisjoint(accepted.split("/")[1:])


@pytest.mark.parametrize("at", ["", SUBSCRIPTION, "/providers/Microsoft.Management/managementGroups/g"])
def test_definition_ids_are_taken_as_they_are(at: str) -> None:
    text = f"{at}{DEFINITIONS.upper()}/{GUID}"
    assert definition_id(text) == text


@pytest.mark.parametrize(
    "text",
    [
        None,
        GUID,
        f"{DEFINITIONS}/Reader",
        f"{DEFINITIONS}/{GUID}/",
        f"/subscriptions/..{DEFINITIONS}/{GUID}",
        f"/x{DEFINITIONS}/{GUID}",
        f"{SUBSCRIPTION}/{DEFINITIONS}/{GUID}",
        f"/{DEFINITIONS}/{GUID}",
        PATH,
    ],
)
def test_anything_else_is_no_definition_id(text: object) -> None:
    with pytest.raises(ValueError, match="must be the id of a role definition"):
        definition_id(text)


def test_a_definition_is_known_by_the_name_that_people_use() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {READER}", reply(200, SHOWN), error(404, "RoleDefinitionDoesNotExist"))
    found = [setting.world.perform(definition_by_id(setting.client, READER)) for _ in range(2)]
    assert found == [RoleDefinition(READER, "Reader"), None]


def test_what_is_no_definition_id_is_not_asked_for() -> None:
    setting = Setting()
    assert setting.world.perform(definition_by_id(setting.client, "/../..")) is None
    assert setting.cloud.requests == []


def test_definitions_are_looked_up_at_the_scope() -> None:
    setting = Setting()
    listing = f"{MACHINE}{DEFINITIONS}"
    following = f"{ARM}{listing}?page=2"
    setting.cloud.script(
        f"GET {listing}", reply(200, {"value": [SHOWN], "nextLink": following}), reply(200, {"value": [SHOWN]})
    )
    found = setting.world.perform(definitions_by_name(setting.client, MACHINE, "Bob's Reader"))
    assert found == [RoleDefinition(READER, "Reader")] * 2
    query = dict(parse_qsl(urlsplit(setting.cloud.asked(listing)[0].url).query))
    assert query == {"$filter": "roleName eq 'Bob''s Reader'", "api-version": "2022-04-01"}


def test_a_scope_that_is_not_there_has_no_definitions() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {SUBSCRIPTION}{DEFINITIONS}", error(404, "SubscriptionNotFound"))
    assert setting.world.perform(definitions_by_name(setting.client, SUBSCRIPTION, "Reader")) == []


def test_a_denied_look_up_is_a_problem() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {SUBSCRIPTION}{DEFINITIONS}", error(403, "AuthorizationFailed"))
    setting.cloud.script(f"GET {READER}", error(403, "AuthorizationFailed"))
    with pytest.raises(ProviderProblem):
        setting.world.perform(definitions_by_name(setting.client, SUBSCRIPTION, "Reader"))
    with pytest.raises(ProviderProblem):
        setting.world.perform(definition_by_id(setting.client, READER))


def put(setting: Setting, *replies: Reply) -> str:
    setting.cloud.script(f"PUT {PATH}", *replies)
    return setting.world.perform(assign(setting.client, assignment_path(SUBSCRIPTION, GUID), READER, "p-1"))


def test_an_assignment_says_that_it_is_for_a_service_principal() -> None:
    setting = Setting()
    put(setting, reply(201, {}))
    properties = {"roleDefinitionId": READER, "principalId": "p-1", "principalType": "ServicePrincipal"}
    assert json.loads(setting.cloud.requests[-1].body) == {"properties": properties}


def shown_assignment(path: str, definition: str = READER, scope: str = SUBSCRIPTION) -> dict[str, Any]:
    return {"id": path, "properties": {"roleDefinitionId": definition, "scope": scope}}


@pytest.mark.parametrize("again", [reply(200, {}), error(409, "RoleAssignmentExists")])
def test_an_assignment_whose_answer_was_lost_is_made_again(again: Reply) -> None:
    setting = Setting()
    setting.cloud.script(f"GET {PATH}", reply(200, shown_assignment(PATH)))
    assert put(setting, unreachable(), again) == PATH
    assert len([each for each in setting.cloud.requests if each.method == "PUT"]) == 2


def test_an_assignment_that_exists_under_another_id_is_looked_up() -> None:
    setting, other = Setting(), assignment_path(SUBSCRIPTION, GUID.replace("0", "1"))
    listed = [
        shown_assignment("/below", scope=f"{SUBSCRIPTION}/resourceGroups/web"),
        shown_assignment("/other-definition", definition="00000000-0000-4000-8000-000000000001"),
        shown_assignment(other, definition=READER.upper(), scope=SUBSCRIPTION.upper()),
    ]
    setting.cloud.script(f"GET {PATH}", error(404, "RoleAssignmentNotFound"))
    setting.cloud.script(f"GET {PATH.rpartition('/')[0]}", reply(200, {"value": listed}))
    assert put(setting, error(409, "RoleAssignmentExists")) == other
    assert "principalId%20eq%20%27p-1%27" in setting.cloud.requests[-1].url


def test_an_assignment_that_exists_and_does_not_show_is_a_problem() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {PATH}", error(404, "RoleAssignmentNotFound"))
    setting.cloud.script(f"GET {PATH.rpartition('/')[0]}", reply(200, {"value": []}))
    with pytest.raises(ProviderProblem):
        put(setting, error(409, "RoleAssignmentExists"))


@pytest.mark.parametrize("answer", [error(409, "Conflict"), error(400, "PrincipalNotFound"), error(400)])
def test_any_other_refusal_is_a_problem(answer: Reply) -> None:
    with pytest.raises(ProviderProblem):
        put(Setting(), answer)


@pytest.mark.parametrize(
    "answer, removed", [(reply(200, {}), True), (reply(204), False), (error(404, "ScopeNotFound"), False)]
)
def test_removal_tells_whether_there_was_an_assignment(answer: Reply, removed: bool) -> None:
    setting = Setting()
    setting.cloud.script(f"DELETE {PATH}", answer)
    assert setting.world.perform(unassign(setting.client, PATH)) is removed


def test_a_denied_removal_is_a_problem() -> None:
    setting = Setting()
    setting.cloud.script(f"DELETE {PATH}", error(403, "AuthorizationFailed"))
    with pytest.raises(ProviderProblem):
        setting.world.perform(unassign(setting.client, PATH))
