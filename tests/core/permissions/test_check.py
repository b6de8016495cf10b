"""The check of permissions: what the credential has, what it lacks, and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.effects import Sleep
from cloudid_core.errors import Code
from cloudid_core.permissions import check
from cloudid_servers.provider_simulator.world.access import permit
from tests.engines import SecretsEngine, engine_config, engine_with_roles
from tests.installation import Installation
from tests.logins import configure_logins, login_config


def missing(data: Any) -> set[tuple[str, str]]:
    return {(each["any_of"][0], each["scope"]) for each in data["missing"]}


def root_principal(world: SecretsEngine) -> str:
    client_id = engine_config(world)["client_id"]
    principal = world.simulator.world.directory.principal_of(client_id)
    assert principal is not None
    return principal.id


def test_a_credential_that_may_do_everything_lacks_nothing() -> None:
    world = engine_with_roles()
    data = world.must("GET", "cloud/permissions").data
    assert data["missing"] == []
    assert "Application.ReadWrite.All" in data["directory"]
    assert data["scopes"]
    assert all(feature["granted"] for feature in data["features"])


def test_what_is_missing_is_named_with_its_scope() -> None:
    world = engine_with_roles()
    permit(world.simulator.world, root_principal(world), reading=True, writing=False)
    data = world.must("GET", "cloud/permissions?scope=/subscriptions/" + engine_config(world)["subscription_id"]).data
    scope = f"/subscriptions/{engine_config(world)['subscription_id']}"
    assert missing(data) == {
        ("Application.ReadWrite.OwnedBy", ""),
        ("Application.ReadWrite.All", ""),
        ("GroupMember.ReadWrite.All", ""),
        ("RoleManagement.ReadWrite.Directory", ""),
        ("AppRoleAssignment.ReadWrite.All", ""),
        ("Microsoft.Authorization/roleAssignments/write", scope),
        ("Microsoft.Authorization/roleAssignments/delete", scope),
    }
    granted = {feature["feature"]: feature["granted"] for feature in data["features"]}
    assert (granted["reconcile"], granted["roles with azure_roles"]) == (True, False)


def test_the_resource_manager_is_asked_where_roles_make_assignments() -> None:
    world = engine_with_roles()
    subscription = engine_config(world)["subscription_id"]
    assert world.must("GET", "cloud/permissions").data["scopes"] == [f"/subscriptions/{subscription}"]
    scope = f"/subscriptions/{subscription}/resourceGroups/prod"
    role = {"azure_roles": [{"role_name": "Reader", "scope": scope}]}
    world.must("POST", "cloud/roles/narrow", role)
    assert scope in world.must("GET", "cloud/permissions").data["scopes"]


def test_a_provider_that_does_not_answer_leaves_it_open() -> None:
    world = engine_with_roles()
    world.fail("arm", path=".*/permissions", status=404, code="SubscriptionNotFound")
    reply = world.must("GET", "cloud/permissions")
    assert reply.data["missing"] == []
    assert {feature["feature"]: feature["granted"] for feature in reply.data["features"]}[
        "roles with azure_roles"
    ] is None
    assert "/subscriptions/" in reply.body["warnings"][0]


def features(data: Any) -> dict[str, Any]:
    return {feature["feature"]: feature for feature in data["features"]}


@pytest.mark.parametrize("path", ["cloud", "auth/cloud"])
def test_what_was_not_asked_is_unknown_and_why_is_told(path: str) -> None:
    """Without roles a method has no scope to ask at, and a wrong secret gets no answer anywhere."""
    world = Installation()
    config = login_config(world) if path != "cloud" else engine_config(world)
    world.must("POST", f"{path}/config", {**config, "client_secret": "wrong"})
    reply = world.must("GET", f"{path}/permissions")
    for feature in reply.data["features"]:
        assert feature["granted"] is None or not feature["needs"]
        for need in feature["needs"]:
            assert need["granted"] is None
            assert ("AADSTS7000215" if need["api"] == "directory" or need["scope"] else "do not name a scope") in need[
                "reason"
            ]
    assert all("AADSTS7000215" in warning for warning in reply.body["warnings"])
    assert reply.data["missing"] == []


def test_what_is_known_has_no_reason() -> None:
    needs = [need for feature in engine_with_permissions()["features"] for need in feature["needs"]]
    assert {need["reason"] for need in needs} == {""}


def engine_with_permissions() -> Any:
    return engine_with_roles().must("GET", "cloud/permissions").data


def test_scopes_that_were_left_out_leave_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MOST_SCOPES", 1)
    world = engine_with_roles()
    subscription = engine_config(world)["subscription_id"]
    scope = f"/subscriptions/{subscription}/resourceGroups/prod"
    world.must("POST", "cloud/roles/narrow", {"azure_roles": [{"role_name": "Reader", "scope": scope}]})
    reply = world.must("GET", "cloud/permissions")
    role = features(reply.data)["roles with azure_roles"]
    assert role["granted"] is None
    assert "scopes that were not checked: 1" in {need["reason"] for need in role["needs"]}
    assert reply.body["warnings"] == ["scopes that were not checked: 1"]


def test_other_requests_are_answered_between_two_roles_whose_scopes_are_looked_for() -> None:
    world = Installation()
    configure_logins(world)
    for number in range(3):
        world.must("POST", f"auth/cloud/role/r{number}", {"bound_subscription_ids": ["a", f"b{number}"]})
    since = len(world.trace)
    assert len(world.must("GET", "auth/cloud/permissions").data["scopes"]) == 5
    assert sum(isinstance(effect, Sleep) for _, effect in world.trace[since:]) == 4


MAY_READ = 'path "cloud/permissions" {{ capabilities = ["read"] }} path "cloud/config" {{ capabilities = ["{may}"] }}'


@pytest.mark.parametrize("may", ["read", "update"])
def test_the_code_of_the_provider_is_for_those_who_may_read_the_configuration(may: str) -> None:
    world = engine_with_roles()
    world.must("PUT", "sys/policies/acl/some", {"policy": MAY_READ.format(may=may)})
    token = world.must("POST", "auth/token/create", {"policies": ["some"]}).auth["client_token"]
    world.must("POST", "cloud/config", {"client_secret": "wrong"})
    reply = world.must("GET", "cloud/permissions", token=token)
    assert (b"AADSTS7000215" in reply.response.body) == (may == "read")
    assert Code.PROVIDER_SECRET_REFUSED.text in reply.body["warnings"][0]


def test_a_credential_that_may_not_even_ask_has_nothing_there() -> None:
    world = engine_with_roles()
    principal = root_principal(world)
    permit(world.simulator.world, principal, reading=False, writing=False)
    data = world.must("GET", "cloud/permissions").data
    assert data["directory"] == []
    assert all(feature["granted"] is False for feature in data["features"])


@pytest.mark.parametrize("scope", ["nonsense", "/subscriptions/x", "/subscriptions/../y"])
def test_a_text_that_is_no_scope_is_refused(scope: str) -> None:
    assert engine_with_roles().refused("GET", f"cloud/permissions?scope={scope}") == (400, "field_invalid")


def test_the_authentication_method_looks_at_the_subscriptions_that_its_roles_bind() -> None:
    world = Installation()
    machine = configure_logins(world)
    data = world.must("GET", "auth/cloud/permissions").data
    assert data["scopes"] == [f"/subscriptions/{machine['subscription']}"]
    assert data["missing"] == []
    assert data["features"][0] == {"feature": "login with any token", "granted": True, "needs": []}


def test_it_needs_a_configuration() -> None:
    world = Installation()
    assert world.refused("GET", "auth/cloud/permissions") == (400, "config_missing")


def test_no_access_token_is_in_the_answer_or_in_an_event() -> None:
    world = engine_with_roles()
    reply = world.must("GET", "cloud/permissions")
    assert b"eyJ" not in reply.response.body
    assert "eyJ" not in repr(world.events)
