"""Role definitions and role assignments."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.effects import HttpResponse
from cloudid_servers.provider_simulator.arm.conventions import action_of
from cloudid_servers.provider_simulator.engine.requests import Call

from ..cloud import BASE, MANAGEMENT, Cloud, claims_of, code_of, read

AUTHORIZATION = "/providers/Microsoft.Authorization"
READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
ONE = "11111111-1111-4111-8111-111111111111"
TWO = "22222222-2222-4222-8222-222222222222"
MANAGED = "/providers/Microsoft.Management/managementGroups/contoso"


def definitions(cloud: Cloud, scope: str, name: str) -> list[Any]:
    condition = {"$filter": f"roleName eq '{name}'"}
    return list(read(cloud.arm(f"{scope}{AUTHORIZATION}/roleDefinitions", **condition), 200)["value"])


def path_of(scope: str, guid: str = ONE) -> str:
    return f"{scope}{AUTHORIZATION}/roleAssignments/{guid}"


def put(cloud: Cloud, scope: str, principal: str, guid: str = ONE, role: str = READER, **fields: Any) -> HttpResponse:
    properties = {"roleDefinitionId": f"{AUTHORIZATION}/roleDefinitions/{role}", "principalId": principal, **fields}
    return cloud.ask_arm("PUT", path_of(scope, guid), {"properties": properties})


@pytest.fixture
def principal(cloud: Cloud) -> str:
    return str(cloud.principal(cloud.application())["id"])


def test_a_definition_is_found_by_the_name_that_people_know(cloud: Cloud) -> None:
    [found] = definitions(cloud, cloud.subscription, "storage blob data reader")
    assert found["properties"]["roleName"] == "Storage Blob Data Reader"
    assert found["id"] == f"{cloud.subscription}{AUTHORIZATION}/roleDefinitions/{found['name']}"
    assert read(cloud.arm(found["id"]), 200) == found
    assert read(cloud.arm(f"{AUTHORIZATION}/roleDefinitions/{found['name']}"), 200)["name"] == found["name"]
    assert [each["name"] for each in definitions(cloud, MANAGED, "Reader")] == [READER]
    assert definitions(cloud, f"{cloud.subscription}/resourceGroups/prod", "No such role") == []


def test_two_definitions_share_a_name_where_both_can_be_assigned(cloud: Cloud) -> None:
    first, second = definitions(cloud, f"{cloud.subscription}/resourceGroups/prod", "Deployer")
    other = f"/subscriptions/{cloud.world['subscriptions'][1]}"
    [only] = definitions(cloud, other, "Deployer")
    assert (first["name"] != second["name"], only["name"]) == (True, second["name"])
    assert code_of(cloud.arm(f"{other}{AUTHORIZATION}/roleDefinitions/{first['name']}"), 404) == (
        "RoleDefinitionDoesNotExist"
    )


def test_definitions_are_listed_in_pages(cloud: Cloud) -> None:
    link, found = f"{cloud.subscription}{AUTHORIZATION}/roleDefinitions", []
    token = "0"
    while token:
        answer = read(cloud.arm(link, **{"$skiptoken": token}), 200)
        found += [each["name"] for each in answer["value"]]
        token = answer.get("nextLink", "").rpartition("=")[2]
        assert not token or answer["nextLink"].startswith(f"{BASE}/arm{cloud.subscription}/")
    assert len(found) == len(set(found)) == 11


def test_an_assignment_is_made_once_under_an_id_of_the_clients_choice(cloud: Cloud, principal: str) -> None:
    made = read(put(cloud, cloud.subscription, principal, principalType="ServicePrincipal"), 201)
    assert (made["name"], made["id"]) == (ONE, path_of(cloud.subscription))
    assert made["properties"]["scope"] == cloud.subscription
    assert made["properties"]["roleDefinitionId"].startswith(f"{cloud.subscription}{AUTHORIZATION}")
    assert read(put(cloud, cloud.subscription, principal), 200) == made
    assert read(cloud.arm(path_of(cloud.subscription)), 200) == made
    assert code_of(put(cloud, cloud.subscription, principal, TWO), 409) == "RoleAssignmentExists"
    group = f"{cloud.subscription}/resourceGroups/prod"
    assert put(cloud, group, principal, TWO).status == 201
    other = cloud.machine("web")["principals"][0]
    assert code_of(put(cloud, cloud.subscription, other), 400) == "RoleAssignmentUpdateNotPermitted"


def test_a_deleted_assignment_can_be_deleted_again(cloud: Cloud, principal: str) -> None:
    made = read(put(cloud, cloud.subscription, principal), 201)
    assert read(cloud.ask_arm("DELETE", path_of(cloud.subscription)), 200) == made
    assert cloud.ask_arm("DELETE", path_of(cloud.subscription)).status == 204
    assert code_of(cloud.arm(path_of(cloud.subscription)), 404) == "RoleAssignmentNotFound"
    assert put(cloud, cloud.subscription, principal, TWO).status == 201


def test_an_assignment_survives_its_principal(cloud: Cloud, principal: str) -> None:
    put(cloud, cloud.subscription, principal)
    assert cloud.graph("DELETE", f"/servicePrincipals/{principal}").status == 204
    assert read(cloud.arm(path_of(cloud.subscription)), 200)["properties"]["principalId"] == principal


def test_assignments_are_listed_by_scope_and_principal(cloud: Cloud, principal: str) -> None:
    group = f"{cloud.subscription}/resourceGroups/prod"
    put(cloud, group, principal)
    put(cloud, MANAGED, cloud.machine("web")["principals"][0], TWO)
    ours = claims_of(cloud.access_token())["oid"]

    def listed(scope: str, **query: str) -> list[str]:
        found = read(cloud.arm(f"{scope}{AUTHORIZATION}/roleAssignments", **query), 200)["value"]
        return [each["name"] for each in found if each["properties"]["principalId"] != ours]

    assert listed(cloud.subscription) == [ONE, TWO]
    assert listed(cloud.subscription, **{"$filter": "atScope()"}) == [TWO]
    assert listed(cloud.subscription, **{"$filter": f"principalId eq '{principal}'"}) == [ONE]
    assert listed(cloud.subscription, **{"$filter": f"atScope() and principalId eq '{principal}'"}) == []
    assert listed(group, **{"$filter": f"atScope() and principalId eq '{principal}'"}) == [ONE]
    assert cloud.arm(f"{group}{AUTHORIZATION}/roleAssignments", **{"$filter": "atScope() or"}).status == 400
    assert listed(f"{cloud.subscription}/resourceGroups/batch") == [TWO]


@pytest.mark.parametrize(
    "fields, guid, status, code",
    [
        ({"principalId": TWO}, ONE, 400, "PrincipalNotFound"),
        ({"principalType": "User"}, ONE, 400, "UnmatchedPrincipalType"),
        ({"roleDefinitionId": f"{AUTHORIZATION}/roleDefinitions/{TWO}"}, ONE, 404, "RoleDefinitionDoesNotExist"),
        ({"roleDefinitionId": "Reader"}, ONE, 400, "InvalidRoleDefinitionId"),
        ({"colour": "red"}, ONE, 400, "BadRequest"),
        ({}, "one", 400, "InvalidRoleAssignmentId"),
    ],
)
def test_bad_assignments_are_refused(
    cloud: Cloud, principal: str, fields: dict[str, Any], guid: str, status: int, code: str
) -> None:
    fields = {"principal": principal, **fields}
    properties = {
        "roleDefinitionId": f"{AUTHORIZATION}/roleDefinitions/{READER}",
        "principalId": fields.pop("principal"),
    }
    answer = cloud.ask_arm("PUT", path_of(cloud.subscription, guid), {"properties": {**properties, **fields}})
    assert code_of(answer, status) == code
    assert list(cloud.simulator.world.role_assignments.of(principal)) == []


@pytest.mark.parametrize(
    "scope, status, code",
    [
        (f"/subscriptions/{ONE}", 404, "SubscriptionNotFound"),
        ("/resourceGroups/x", 400, "InvalidScope"),
        ("/providers/Microsoft.Management/managementGroups/other", 404, "ManagementGroupNotFound"),
    ],
)
def test_scopes_must_be_there(cloud: Cloud, principal: str, scope: str, status: int, code: str) -> None:
    assert code_of(put(cloud, scope, principal), status) == code
    assert code_of(put(cloud, f"{cloud.subscription}/resourceGroups/x", principal), 404) == "ResourceGroupNotFound"


def test_a_resource_is_a_scope(cloud: Cloud, principal: str) -> None:
    resource = cloud.machine("web")["resource_id"]
    assert put(cloud, resource, principal).status == 201
    assert cloud.ask_arm("DELETE", path_of(resource.upper()).replace("ROLEASS", "roleAss")).status == 200


def test_only_writers_assign(cloud: Cloud, principal: str) -> None:
    stranger = cloud.stranger(f"{MANAGEMENT}/.default")
    cloud.create("reader", reader=True)
    reader = read(cloud.machine_token("reader"), 200)["access_token"]
    for token in (stranger, reader):
        for method in ("PUT", "DELETE"):
            answer = cloud.ask_arm(method, path_of(cloud.subscription), {}, token)
            assert code_of(answer, 403) == "AuthorizationFailed"


@pytest.mark.parametrize("scope", ["", "/", "{subscription}/", "{subscription}/providers/Microsoft.Web/x/y"])
def test_the_root_a_trailing_slash_and_resources_of_a_subscription_are_scopes(
    cloud: Cloud, principal: str, scope: str
) -> None:
    scope = scope.format(subscription=cloud.subscription)
    made = read(put(cloud, scope, principal), 201)
    assert made["properties"]["scope"] == (scope.rstrip("/") or "/")
    assert made["id"] == path_of(scope.rstrip("/"))
    assert read(cloud.arm(made["id"]), 200) == made
    listed = read(cloud.arm(f"{scope}{AUTHORIZATION}/roleAssignments"), 200)["value"]
    assert made["id"] in [each["id"] for each in listed]
    assert cloud.ask_arm("DELETE", path_of(scope)).status == 200


def test_assignments_of_a_principal_may_include_those_of_its_groups(cloud: Cloud) -> None:
    group = next(each["id"] for each in cloud.world["groups"] if each["display_name"] == "all-machines")
    [web] = cloud.machine("web")["principals"]
    put(cloud, cloud.subscription, group)
    path = f"{cloud.subscription}{AUTHORIZATION}/roleAssignments"
    counts = [
        len(read(cloud.arm(path, **{"$filter": condition}), 200)["value"])
        for condition in (f"assignedTo('{web}')", f"principalId eq '{web}'")
    ]
    assert counts == [1, 0]


def test_a_caller_is_told_its_permissions_at_a_scope(cloud: Cloud) -> None:
    told = read(cloud.arm(f"{cloud.subscription}{AUTHORIZATION}/permissions"), 200)["value"]
    assert told[0] == {"actions": ["*"], "notActions": [], "dataActions": [], "notDataActions": []}


CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
MACHINES = "9980e02c-c2be-4d73-94e8-173b1dc7cf3c"
"""The role of those who administer virtual machines, and read what is assigned."""

PROD = "{subscription}/resourceGroups/prod"
WEB = f"{PROD}/providers/Microsoft.Compute/virtualMachines/web"


@pytest.mark.parametrize(
    "role, at, allowed, denied",
    [
        (READER, "{subscription}", ["{subscription}", "{subscription}/providers", WEB], ["{other}"]),
        (
            READER,
            "{subscription}/resourceGroups/prod",
            [WEB],
            ["{subscription}", "{subscription}/resourceGroups/batch"],
        ),
        (READER, MANAGED, ["{subscription}", "{other}", MANAGED], [f"{AUTHORIZATION}/roleDefinitions"]),
        (MACHINES, "{subscription}", [WEB, f"{WEB}{AUTHORIZATION}/permissions"], ["{subscription}/resources"]),
        (READER, WEB, [WEB, f"{WEB}{AUTHORIZATION}/permissions"], [f"{PROD}/resources"]),
    ],
)
def test_a_principal_may_do_what_its_roles_grant(
    cloud: Cloud, role: str, at: str, allowed: list[str], denied: list[str]
) -> None:
    """At the scope of the assignment and below it, until the assignment is deleted."""
    first, second = (f"/subscriptions/{each}" for each in cloud.world["subscriptions"])
    at, *paths = (path.format(subscription=first, other=second) for path in (at, *allowed, *denied))
    stranger = cloud.stranger(f"{MANAGEMENT}/.default")
    assert {cloud.arm(path, stranger).status for path in paths} == {403}
    assert put(cloud, at, claims_of(stranger)["oid"], role=role).status == 201
    assert [cloud.arm(path, stranger).status for path in paths] == [200] * len(allowed) + [403] * len(denied)
    assert cloud.ask_arm("DELETE", path_of(at)).status == 200
    assert {cloud.arm(path, stranger).status for path in paths} == {403}


def test_who_may_change_resources_may_not_assign_roles_by_that(cloud: Cloud, principal: str) -> None:
    stranger = cloud.stranger(f"{MANAGEMENT}/.default")
    assert put(cloud, cloud.subscription, claims_of(stranger)["oid"], role=CONTRIBUTOR).status == 201
    for method in ("PUT", "DELETE"):
        answer = cloud.ask_arm(method, path_of(cloud.subscription, TWO), {}, stranger)
        assert code_of(answer, 403) == "AuthorizationFailed"
    [told] = read(cloud.arm(f"{cloud.subscription}{AUTHORIZATION}/permissions", stranger), 200)["value"]
    assert told["actions"] == ["*"]
    assert told["notActions"] == ["Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write"]


def test_the_roles_of_a_group_are_those_of_its_members(cloud: Cloud) -> None:
    group = next(each["id"] for each in cloud.world["groups"] if each["display_name"] == "all-machines")
    token = read(cloud.machine_token("web"), 200)["access_token"]
    assert cloud.arm(cloud.subscription, token).status == 403
    put(cloud, cloud.subscription, group)
    assert cloud.arm(cloud.subscription, token).status == 200


def test_roles_take_effect_as_late_as_the_resource_manager_learns_of_them(cloud: Cloud) -> None:
    stranger = cloud.stranger(f"{MANAGEMENT}/.default")
    cloud.behave(delays={"assignments": 10})
    put(cloud, cloud.subscription, claims_of(stranger)["oid"])
    assert cloud.arm(cloud.subscription, stranger).status == 403
    cloud.wait(10)
    assert cloud.arm(cloud.subscription, stranger).status == 200


def test_anybody_sees_the_subscriptions_that_are_open_to_them(cloud: Cloud) -> None:
    stranger = cloud.stranger(f"{MANAGEMENT}/.default")
    assert read(cloud.arm("/subscriptions", stranger), 200)["value"] == []
    put(cloud, cloud.subscription, claims_of(stranger)["oid"])
    assert [each["id"] for each in read(cloud.arm("/subscriptions", stranger), 200)["value"]] == [cloud.subscription]


@pytest.mark.parametrize(
    "method, path, action, scope",
    [
        ("GET", "/subscriptions/s", "Microsoft.Resources/subscriptions/read", "/subscriptions/s"),
        (
            "HEAD",
            "/subscriptions/s/resourceGroups/g",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "/subscriptions/s/resourceGroups/g",
        ),
        (
            "GET",
            "/subscriptions/s/providers/Microsoft.Web",
            "Microsoft.Resources/subscriptions/providers/read",
            "/subscriptions/s/providers/Microsoft.Web",
        ),
        (
            "GET",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m/instanceView",
            "Microsoft.Compute/virtualMachines/instanceView/read",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m/instanceView",
        ),
        ("PUT", path_of("/subscriptions/s"), "Microsoft.Authorization/roleAssignments/write", "/subscriptions/s"),
        ("DELETE", path_of(""), "Microsoft.Authorization/roleAssignments/delete", "/"),
    ],
)
def test_every_request_is_an_action_at_a_scope(method: str, path: str, action: str, scope: str) -> None:
    assert action_of(Call(method, f"/arm{path}", {}, {}, b"")) == (action, scope)


def custom(cloud: Cloud, guid: str = ONE, **properties: Any) -> HttpResponse:
    role: dict[str, Any] = {"roleName": "machine reader", "assignableScopes": [cloud.subscription]}
    role["permissions"] = [{"actions": ["Microsoft.Compute/virtualMachines/read"]}]
    path = f"{cloud.subscription}{AUTHORIZATION}/roleDefinitions/{guid}"
    return cloud.ask_arm("PUT", path, {"properties": {**role, **properties}})


def test_a_custom_role_grants_its_actions_and_no_others(cloud: Cloud) -> None:
    assert read(custom(cloud), 201)["properties"]["type"] == "CustomRole"
    application = cloud.application()
    read(put(cloud, cloud.subscription, cloud.principal(application)["id"], TWO, role=ONE), 201)
    secret = cloud.password(f"/applications/{application['id']}")["secretText"]
    token = cloud.access_token(client_id=application["appId"], client_secret=secret)
    machine = cloud.machine("web")["resource_id"]
    assert cloud.arm(machine, token).status == 200
    assert cloud.arm(f"{cloud.subscription}{AUTHORIZATION}/permissions", token).status == 403


@pytest.mark.parametrize(
    "properties", [{"permissions": []}, {"assignableScopes": "/"}, {"permissions": [{"actions": [1]}]}, {"more": 1}]
)
def test_a_custom_role_must_be_whole(cloud: Cloud, properties: Any) -> None:
    assert custom(cloud, **properties).status == 400
    assert custom(cloud, guid="no-guid").status == 400


def test_two_roles_of_one_name_are_refused_but_one_can_be_changed(cloud: Cloud) -> None:
    assert [custom(cloud).status, custom(cloud).status, custom(cloud, TWO).status] == [201, 201, 409]


def test_a_resource_provider_is_a_scope_that_covers_its_own_resources_only(cloud: Cloud, principal: str) -> None:
    capacity = "/providers/Microsoft.Capacity"
    order = f"{capacity}/reservationOrders/{ONE}"
    read(put(cloud, capacity, principal), 201)
    read(put(cloud, order, principal, TWO), 201)
    listing = f"{order}{AUTHORIZATION}/roleAssignments"
    condition = {"$filter": f"assignedTo('{principal}')"}
    assert len(read(cloud.arm(listing, **condition), 200)["value"]) == 2
    elsewhere = f"{cloud.subscription}{AUTHORIZATION}/roleAssignments"
    assert read(cloud.arm(elsewhere, **condition), 200)["value"] == []
