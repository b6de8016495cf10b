"""The check of permissions: what the credential has, what it lacks, and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_servers.provider_simulator.world.access import permit
from tests.engines import SecretsEngine, engine_config, engine_with_roles
from tests.installation import Installation
from tests.logins import configure_logins


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
