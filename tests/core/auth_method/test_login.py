"""Login: the whole story, against the simulated cloud."""

from __future__ import annotations

from typing import Any

import pytest

from ..service_world import ServiceWorld

LOGIN = "auth/cloud/login"


def refused(world: ServiceWorld, body: dict[str, object], address: str = "192.0.2.1") -> tuple[int, str]:
    return world.code("PUT", LOGIN, body, "", address)


def test_a_machine_gets_a_token_with_the_settings_of_its_role() -> None:
    world = ServiceWorld()
    machine = world.furnish(token_policies="dev", token_ttl="1h")
    told = world.must("PUT", LOGIN, world.credentials(machine), token="")
    auth = told["auth"]
    assert told["data"] is None
    assert (auth["policies"], auth["lease_duration"], auth["renewable"]) == (["default", "dev"], 3600, True)
    assert (auth["token_type"], auth["orphan"], auth["num_uses"]) == ("service", True, 0)
    seen = world.look_up(auth["client_token"])
    assert (seen["path"], seen["role"], seen["accessor"]) == ("auth/cloud/login", "dev", auth["accessor"])
    assert seen["display_name"] == f"cloud-{machine['principals'][0]}"


def test_the_metadata_are_verified_facts() -> None:
    world = ServiceWorld()
    machine = world.furnish()
    metadata = world.log_in(machine)["metadata"]
    assert metadata["role"] == "dev"
    assert metadata["subscription_id"] == machine["subscription"]
    assert metadata["resource_group_name"] == machine["resource_group"]
    assert metadata["vm_name"] == machine["name"]


def test_the_token_of_a_request_is_of_no_interest() -> None:
    world = ServiceWorld()
    machine = world.furnish()
    assert world.ask("POST", LOGIN, world.credentials(machine), "unknown")[0] == 200


@pytest.mark.parametrize("missing", ["role", "jwt", "subscription_id", "resource_group_name"])
def test_required_fields(missing: str) -> None:
    world = ServiceWorld()
    body = world.credentials(world.furnish(), **{missing: ""})
    assert refused(world, body) == (400, "field_required")


def test_without_a_configuration_nobody_logs_in() -> None:
    world = ServiceWorld()
    body = world.credentials(world.furnish())
    world.must("DELETE", "auth/cloud/config")
    assert refused(world, body) == (400, "config_missing")


def test_a_text_that_is_no_token_is_told_from_one_that_is_not_signed_well() -> None:
    world = ServiceWorld()
    body = world.credentials(world.furnish())
    jwt = str(body["jwt"])
    assert refused(world, {**body, "jwt": "x"}) == (400, "jwt_malformed")
    head, _, signature = jwt.rpartition(".")
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    assert refused(world, {**body, "jwt": f"{head}.{flipped}"}) == (403, "login_refused")


def test_nothing_is_said_about_roles_before_the_signature_has_held() -> None:
    world = ServiceWorld()
    body = world.credentials(world.furnish(), role="nobody")
    assert refused(world, body) == (400, "role_not_found")
    head, _, signature = str(body["jwt"]).rpartition(".")
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    assert refused(world, {**body, "jwt": f"{head}.{flipped}"}) == (403, "login_refused")


@pytest.mark.parametrize(
    "role, change, code",
    [
        ({"token_bound_cidrs": "10.0.0.0/8"}, {}, "source_address_refused"),
        ({"max_jwt_exp": 1}, {}, "jwt_expires_too_late"),
        ({"bound_locations": "elsewhere"}, {}, "bound_location_mismatch"),
        ({"bound_resource_groups": "elsewhere"}, {}, "bound_resource_group_mismatch"),
        ({"bound_service_principal_ids": "somebody"}, {}, "bound_service_principal_mismatch"),
        ({}, {"vm_name": "another"}, "vm_name_mismatch"),
        ({}, {"resource_group_name": "another"}, "resource_group_mismatch"),
        ({}, {"subscription_id": "00000000-0000-0000-0000-000000000000"}, "subscription_mismatch"),
    ],
)
def test_a_refusal_names_the_check_that_failed_and_no_value(
    role: dict[str, Any], change: dict[str, str], code: str
) -> None:
    world = ServiceWorld()
    body = world.credentials(world.furnish(**role), **change)
    assert refused(world, body) == (403, code)
    assert not any(value.encode() in world.last.body for value in (*map(str, role.values()), *change.values()))


def test_a_jwt_for_another_audience_is_refused() -> None:
    world = ServiceWorld()
    body = world.credentials(world.furnish())
    world.must("POST", "auth/cloud/config", {"resource": "https://elsewhere"})
    assert refused(world, body) == (403, "jwt_audience_mismatch")


def test_a_jwt_that_has_expired_is_refused() -> None:
    world = ServiceWorld()
    body = world.credentials(world.furnish())
    world.advance(10 * 24 * 3600)
    assert refused(world, body) == (403, "jwt_expired")


def test_the_mount_may_force_batch_tokens() -> None:
    world = ServiceWorld()
    machine = world.furnish(token_ttl=60)
    world.must("POST", "sys/auth/cloud/tune", {"token_type": "batch"})
    before = world.keys("token/")
    auth = world.log_in(machine)
    assert (auth["token_type"], auth["accessor"], auth["renewable"], auth["lease_duration"]) == ("batch", "", False, 60)
    assert world.keys("token/") == before
    assert world.look_up(auth["client_token"])["meta"] == auth["metadata"]


def test_a_token_is_tied_to_where_its_role_is_bound() -> None:
    world = ServiceWorld()
    machine = world.furnish(token_bound_cidrs="192.0.2.0/24")
    token = world.log_in(machine)["client_token"]
    assert world.is_good(token)
    assert world.code("GET", "auth/token/lookup-self", None, token, "10.0.0.1") == (403, "permission_denied")


def test_without_client_secret_and_platform_identity_a_login_that_needs_the_provider_says_so() -> None:
    world = ServiceWorld()
    body = world.credentials(world.furnish(bound_locations="westus2"))
    world.must("POST", "auth/cloud/config", {"client_secret": ""})
    assert refused(world, body) == (503, "platform_identity_unavailable")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("change", ["role", "config"])
def test_a_login_rests_on_role_and_configuration_to_the_end(seed: int, change: str) -> None:
    """Whatever the order: a role or configuration that is gone when the token would come to be gives none."""
    world = ServiceWorld(seed)
    machine = world.furnish()
    login = world.spawn(world.asking("POST", LOGIN, world.credentials(machine), ""))
    path = "auth/cloud/role/dev" if change == "role" else "auth/cloud/config"
    deletion = world.spawn(world.asking("DELETE", path))
    world.settle()
    assert deletion.result().status == 204
    if login.result().status == 200:
        assert world.last_commit(login.name) < world.last_commit(deletion.name)
    else:
        assert login.result().status == 400
