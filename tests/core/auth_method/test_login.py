"""Login: the whole story, against the simulated cloud."""

from __future__ import annotations

from typing import Any

import jwt
import pytest
from attrs import evolve

from cloudid_core.auth_method.config import Config
from cloudid_core.effects import CallProvider
from cloudid_core.events import MachineClaimIgnored
from cloudid_core.provider.signing_keys import REST
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from servers.provider_simulator.identity.tokens import MAX_GROUPS

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


def requests_to(world: ServiceWorld, path: str) -> int:
    """How many requests went to addresses of the provider that contain a text."""
    asked = [effect for _, effect in world.trace if isinstance(effect, CallProvider)]
    return sum(path in call.request.url for call in asked)


@pytest.mark.parametrize("remove_old", [False, True])
def test_a_login_under_a_key_that_the_tenant_just_began_to_use_is_admitted(remove_old: bool) -> None:
    """The keys are fetched once more, and once only however many logins come."""
    world = ServiceWorld()
    machine = world.furnish()
    before = world.credentials(machine)
    world.log_in(machine)
    world.advance(REST)
    fetched = requests_to(world, "/discovery/v2.0/keys")
    world.sim("/simulator/keys/rotate", {"remove_old": remove_old})
    for _ in range(3):
        assert world.log_in(machine)["metadata"]["vm_name"] == machine["name"]
    assert requests_to(world, "/discovery/v2.0/keys") == fetched + 1
    status, _ = world.ask("POST", LOGIN, before, "")
    assert status == (403 if remove_old else 200)


def test_a_login_under_a_key_that_nobody_publishes_is_refused() -> None:
    world = ServiceWorld()
    machine = world.furnish()
    world.log_in(machine)
    other = ServiceWorld()
    other.sim("/simulator/keys/rotate", {})
    foreign = other.credentials(other.furnish())
    for _ in range(2):
        assert refused(world, foreign) == (403, "login_refused")
        world.advance(REST)


def test_a_login_with_more_groups_than_its_token_holds_is_decided_by_the_directory() -> None:
    world = ServiceWorld()
    names = [f"team-{number}" for number in range(MAX_GROUPS + 1)]
    crowd = world.sim("/simulator/machines", {"name": "crowd", "groups": names})
    groups = {group["display_name"]: group["id"] for group in world.sim("/simulator/world")["groups"]}
    world.furnish(bound_group_ids=groups["team-200"], bound_subscription_ids=crowd["subscription"])
    assert "groups" not in claims_of(world, crowd)
    assert world.log_in(crowd)["metadata"]["vm_name"] == "crowd"
    assert requests_to(world, "/getMemberGroups") == 1
    world.must("POST", "auth/cloud/role/dev", {"bound_group_ids": groups["cloud-admins"]})
    assert refused(world, world.credentials(crowd)) == (403, "bound_group_mismatch")


def test_a_login_of_a_principal_that_the_directory_does_not_know_is_refused() -> None:
    world = ServiceWorld()
    crowd = world.sim("/simulator/machines", {"name": "crowd", "groups": [f"t{n}" for n in range(MAX_GROUPS + 1)]})
    world.furnish(bound_group_ids="anything", bound_subscription_ids=crowd["subscription"])
    gone = {"match": {"path": "/graph/v1.0/directoryObjects/"}, "times": None, "action": {"status": 404, "code": "x"}}
    world.sim("/simulator/faults", [gone])
    assert refused(world, world.credentials(crowd)) == (403, "groups_unavailable")


def claims_of(world: ServiceWorld, machine: Any) -> Any:
    return jwt.decode(str(world.credentials(machine)["jwt"]), options={"verify_signature": False})


def test_a_machine_claim_that_is_no_machines_id_counts_as_none_and_is_told() -> None:
    """A role that binds principals only admits; nothing of the form is believed, or sent to the provider."""
    world = ServiceWorld()
    machine = world.furnish(bound_subscription_ids="", bound_service_principal_ids="*")
    extension = f"{machine['resource_id']}/providers/Microsoft.GuestConfiguration/guestConfigurationAssignments/a"
    claims = {**claims_of(world, machine), "xms_az_rid": extension}
    body = world.credentials(machine, jwt=world.sim("/simulator/tokens", {"claims": claims})["token"])
    metadata = world.must("POST", LOGIN, body, "")["auth"]["metadata"]
    assert set(metadata) == {"app_id", "role"}
    assert requests_to(world, "/arm/") == 0
    ignored = [event for event in world.events if isinstance(event, MachineClaimIgnored)]
    assert [(event.claim, event.role) for event in ignored] == [("xms_az_rid", "dev")]
    assert refused(world, {**body, "resource_group_name": "other"}) == (403, "resource_group_mismatch")
    world.must("POST", "auth/cloud/role/dev", {"bound_subscription_ids": machine["subscription"]})
    assert refused(world, body) == (403, "machine_claim_missing")


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


def store_tenant(world: ServiceWorld, tenant: str) -> None:
    """Store a tenant as an earlier version did, which took any text."""
    mount = next(mount for mount in world.mounts if mount.path == "auth/cloud")
    context = world.service.context
    found = world.perform(context.records.find(keys.config(mount.id), Config))
    assert found is not None
    broken = evolve(found.record, tenant_id=tenant)
    world.perform(context.records.commit(Changes(found.expected, {found.key: broken})))


@pytest.mark.parametrize("tenant", ["..", ".", "a/b", "a b", "\u00e9", "x" * 300])
def test_a_tenant_that_is_no_longer_accepted_is_an_error_of_the_configuration(tenant: str) -> None:
    """It was stored by an earlier version. Logins name the field, and call nothing; a new value repairs them."""
    world = ServiceWorld()
    machine = world.furnish()
    right = world.must("GET", "auth/cloud/config")["data"]["tenant_id"]
    store_tenant(world, tenant)
    before = len(world.trace)
    assert refused(world, world.credentials(machine)) == (400, "config_invalid")
    assert b'\\"tenant_id\\"' in world.last.body
    assert not any(isinstance(effect, CallProvider) for _, effect in world.trace[before:])
    world.must("POST", "auth/cloud/config", {"tenant_id": right})
    assert world.log_in(machine)
