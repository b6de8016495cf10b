"""Login: the whole story, against the simulated cloud."""

from __future__ import annotations

from typing import Any

import jwt
import pytest
from attrs import evolve

from cloudid_core.auth_method.config import Config
from cloudid_core.effects import CallProvider
from cloudid_core.events import MachineClaimIgnored, RequestAnswered
from cloudid_core.provider.signing_keys import REST
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_servers.provider_simulator.identity.tokens import MAX_GROUPS
from tests.installation import HOME, Installation, Refusal
from tests.logins import configure_logins, log_in, login_form
from tests.tokens import is_valid, look_up_self

LOGIN = "auth/cloud/login"
ROLE = "auth/cloud/role/dev"


def refused(world: Installation, body: dict[str, object], address: str = HOME) -> Refusal:
    return world.refused("PUT", LOGIN, body, "", address)


def test_a_machine_gets_a_token_with_the_settings_of_its_role() -> None:
    world = Installation()
    machine = configure_logins(world, token_policies="dev", token_ttl="1h")
    told = world.must("PUT", LOGIN, login_form(world, machine), token="").body
    auth = told["auth"]
    assert told["data"] is None
    assert (auth["policies"], auth["lease_duration"], auth["renewable"]) == (["default", "dev"], 3600, True)
    assert (auth["token_type"], auth["orphan"], auth["num_uses"]) == ("service", True, 0)
    seen = look_up_self(world, auth["client_token"])
    assert (seen["path"], seen["role"], seen["accessor"]) == ("auth/cloud/login", "dev", auth["accessor"])
    assert seen["display_name"] == f"cloud-{machine['principals'][0]}"


@pytest.mark.parametrize("listed, given", [("dev", ["dev"]), ("dev,default", ["default", "dev"]), ("", [])])
def test_a_role_without_the_default_policy_gives_it_where_it_is_listed(listed: str, given: list[str]) -> None:
    """It is not added; existing services take nothing away either."""
    world = Installation()
    machine = configure_logins(world, token_policies=listed, token_no_default_policy=True)
    assert log_in(world, machine)["policies"] == given


def test_the_metadata_are_verified_facts() -> None:
    world = Installation()
    machine = configure_logins(world)
    metadata = log_in(world, machine)["metadata"]
    assert metadata["role"] == "dev"
    assert metadata["subscription_id"] == machine["subscription"]
    assert metadata["resource_group_name"] == machine["resource_group"]
    assert metadata["vm_name"] == machine["name"]


def test_the_token_of_a_request_is_of_no_interest() -> None:
    world = Installation()
    machine = configure_logins(world)
    assert world.ask("POST", LOGIN, login_form(world, machine), "unknown").status == 200


@pytest.mark.parametrize("missing", ["role", "jwt"])
def test_required_fields(missing: str) -> None:
    world = Installation()
    body = login_form(world, configure_logins(world), **{missing: ""})
    assert refused(world, body) == (400, "field_required")


@pytest.mark.parametrize("missing", ["subscription_id", "resource_group_name"])
def test_a_role_that_binds_machines_wants_their_place_and_tells_so_after_the_signature(missing: str) -> None:
    world = Installation()
    machine = configure_logins(world)
    body = login_form(world, machine, **{missing: ""})
    refusal = world.ask("PUT", LOGIN, body, "")
    assert (refusal.status, refusal.codes) == (400, ["machine_required"])
    assert missing in refusal.body["errors"][0]
    assert refused(world, {**body, "jwt": f"{body['jwt'][:-8]}AAAAAAAA"}) == (403, "login_refused")
    assert requests_to(world, "/arm/") == 0


def test_role_and_jwt_are_enough_where_no_machine_is_bound() -> None:
    """What else is said must agree with the signed claim, and the metadata have what the claim says."""
    world = Installation()
    machine = configure_logins(world, bound_subscription_ids="", bound_service_principal_ids="*")
    whole = login_form(world, machine)
    body = {"role": "dev", "jwt": whole["jwt"]}
    metadata = world.must("POST", LOGIN, body, "").auth["metadata"]
    assert metadata["vm_name"] == machine["name"]
    assert metadata["subscription_id"] == machine["subscription"]
    for name in ("subscription_id", "resource_group_name", "vm_name"):
        assert world.must("POST", LOGIN, {**body, name: whole[name]}, "").auth
    assert refused(world, {**body, "subscription_id": machine["principals"][0]}) == (403, "subscription_mismatch")
    assert refused(world, {**body, "resource_group_name": "other"}) == (403, "resource_group_mismatch")
    assert refused(world, {**body, "vm_name": "other"}) == (403, "vm_name_mismatch")
    assert refused(world, {**body, "resource_id": machine["resource_id"] + "2"}) == (403, "resource_id_mismatch")


def test_a_pod_and_a_function_name_no_machine_and_need_not() -> None:
    """Their tokens have no claim about one."""
    world = Installation()
    machine = configure_logins(world, bound_subscription_ids="", bound_service_principal_ids="*")
    claims = {name: value for name, value in claims_of(world, machine).items() if not name.startswith("xms_")}
    token = world.cloud("POST", "/simulator/tokens", {"claims": claims})["token"]
    metadata = world.must("POST", LOGIN, {"role": "dev", "jwt": token}, "").auth["metadata"]
    assert set(metadata) == {"app_id", "jwt_type", "role", "tenant_id"}
    world.must("POST", ROLE, {"bound_subscription_ids": machine["subscription"]})
    assert refused(world, {"role": "dev", "jwt": token}) == (400, "machine_required")


def test_without_a_configuration_nobody_logs_in() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world))
    world.must("DELETE", "auth/cloud/config")
    assert refused(world, body) == (400, "config_missing")


def test_a_text_that_is_no_token_is_told_from_one_that_is_not_signed_well() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world))
    jwt = str(body["jwt"])
    assert refused(world, {**body, "jwt": "x"}) == (400, "jwt_malformed")
    head, _, signature = jwt.rpartition(".")
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    assert refused(world, {**body, "jwt": f"{head}.{flipped}"}) == (403, "login_refused")


def told_machine(world: Installation) -> tuple[str, str]:
    """The machine that the event of the last request names."""
    told = world.events[-1]
    assert isinstance(told, RequestAnswered)
    return told.principal_id, told.resource_id.lower()


def test_the_machine_is_told_whether_it_is_admitted_or_not() -> None:
    world = Installation()
    machine = configure_logins(world)
    body, named = login_form(world, machine), (machine["principals"][0], machine["resource_id"].lower())
    world.must("PUT", LOGIN, body, token="")
    assert told_machine(world) == named
    world.must("POST", ROLE, {"bound_locations": "nowhere"})
    assert refused(world, body) == (403, "bound_location_mismatch")
    assert told_machine(world) == named
    world.advance(120)
    world.fail("arm", status=403, code="AuthorizationFailed")
    assert refused(world, body) == (502, "provider_permission_denied")
    assert told_machine(world) == named
    assert refused(world, {**body, "role": "nobody"}) == (400, "role_not_found")
    assert told_machine(world) == named
    world.must("POST", "auth/cloud/explain", body)
    assert told_machine(world) == ("", ""), "an operator asked, no machine"


def test_a_token_that_names_no_machine_is_told_by_its_principal() -> None:
    world = Installation()
    machine = configure_logins(world, bound_subscription_ids="", bound_service_principal_ids="somebody")
    claims = {name: value for name, value in claims_of(world, machine).items() if not name.startswith("xms_")}
    token = world.cloud("POST", "/simulator/tokens", {"claims": claims})["token"]
    assert refused(world, {"role": "dev", "jwt": token}) == (403, "bound_service_principal_mismatch")
    assert told_machine(world) == (machine["principals"][0], "")


@pytest.mark.parametrize("role", ["dev", "nobody"])
def test_no_machine_is_told_before_the_signature_has_held(role: str) -> None:
    """Anybody can write the claims of any machine."""
    world = Installation()
    body = login_form(world, configure_logins(world), role=role)
    head, claims, signature = str(body["jwt"]).split(".")
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    forged = jwt.encode(claims_of(world, world.scene["machines"][0]), "k" * 32, "HS256", {"kid": "made up"})
    unsigned = jwt.encode(claims_of(world, world.scene["machines"][0]), "", "none")
    for token in (f"{head}.{claims}.{flipped}", f"{head}.{claims}.", forged, unsigned, "x"):
        assert refused(world, {**body, "jwt": token})[1] in ("login_refused", "jwt_malformed")
        assert told_machine(world) == ("", "")


def test_a_signed_token_that_lacks_a_claim_is_told_by_nothing() -> None:
    world = Installation()
    machine = configure_logins(world)
    claims = {name: value for name, value in claims_of(world, machine).items() if name != "tid"}
    token = world.cloud("POST", "/simulator/tokens", {"claims": claims})["token"]
    assert refused(world, login_form(world, machine, jwt=token)) == (403, "jwt_claim_missing")
    assert told_machine(world) == ("", "")


def test_nothing_is_said_about_roles_before_the_signature_has_held() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world), role="nobody")
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
    world = Installation()
    body = login_form(world, configure_logins(world, **role), **change)
    reply = world.ask("PUT", LOGIN, body, "")
    assert (reply.status, reply.codes) == (403, [code])
    assert not any(value.encode() in reply.response.body for value in (*map(str, role.values()), *change.values()))


def test_a_jwt_for_another_audience_is_refused() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world))
    world.must("POST", "auth/cloud/config", {"resource": "https://elsewhere"})
    assert refused(world, body) == (403, "jwt_audience_mismatch")


def test_a_jwt_that_has_expired_is_refused() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world))
    world.advance(10 * 24 * 3600)
    assert refused(world, body) == (403, "jwt_expired")


def test_the_mount_may_force_batch_tokens() -> None:
    world = Installation()
    machine = configure_logins(world, token_ttl=60)
    world.must("POST", "sys/auth/cloud/tune", {"token_type": "batch"})
    before = world.keys("token/")
    auth = log_in(world, machine)
    assert (auth["token_type"], auth["accessor"], auth["renewable"], auth["lease_duration"]) == ("batch", "", False, 60)
    assert world.keys("token/") == before
    assert look_up_self(world, auth["client_token"])["meta"] == auth["metadata"]


@pytest.mark.parametrize("written", ["192.0.2.0/24", "192.0.2.77/24", "192.0.2.1", "::ffff:192.0.2.1"])
def test_a_token_is_tied_to_where_its_role_is_bound(written: str) -> None:
    world = Installation()
    machine = configure_logins(world, token_bound_cidrs=written)
    token = log_in(world, machine)["client_token"]
    assert is_valid(world, token)
    assert world.refused("GET", "auth/token/lookup-self", None, token, "10.0.0.1") == (403, "permission_denied")


def test_without_client_secret_and_platform_identity_a_login_that_needs_the_provider_says_so() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world, bound_locations="westus2"))
    world.must("POST", "auth/cloud/config", {"client_secret": ""})
    assert refused(world, body) == (503, "platform_identity_unavailable")


def requests_to(world: Installation, path: str) -> int:
    """How many requests went to addresses of the provider that contain a text."""
    asked = [effect for _, effect in world.trace if isinstance(effect, CallProvider)]
    return sum(path in call.request.url for call in asked)


@pytest.mark.parametrize("remove_old", [False, True])
def test_a_login_under_a_key_that_the_tenant_just_began_to_use_is_admitted(remove_old: bool) -> None:
    """The keys are fetched once more, and once only however many logins come."""
    world = Installation()
    machine = configure_logins(world)
    before = login_form(world, machine)
    log_in(world, machine)
    world.advance(REST)
    fetched = requests_to(world, "/discovery/v2.0/keys")
    world.cloud("POST", "/simulator/keys/rotate", {"remove_old": remove_old})
    for _ in range(3):
        assert log_in(world, machine)["metadata"]["vm_name"] == machine["name"]
    assert requests_to(world, "/discovery/v2.0/keys") == fetched + 1
    assert world.ask("POST", LOGIN, before, "").status == (403 if remove_old else 200)


def test_a_login_under_a_key_that_nobody_publishes_is_refused() -> None:
    world = Installation()
    machine = configure_logins(world)
    log_in(world, machine)
    other = Installation()
    other.cloud("POST", "/simulator/keys/rotate", {})
    foreign = login_form(other, configure_logins(other))
    for _ in range(2):
        assert refused(world, foreign) == (403, "login_refused")
        world.advance(REST)


def test_a_login_with_more_groups_than_its_token_holds_is_decided_by_the_directory() -> None:
    world = Installation()
    names = [f"team-{number}" for number in range(MAX_GROUPS + 1)]
    crowd = world.cloud("POST", "/simulator/machines", {"name": "crowd", "groups": names})
    groups = {group["display_name"]: group["id"] for group in world.scene["groups"]}
    configure_logins(world, bound_group_ids=groups["team-200"], bound_subscription_ids=crowd["subscription"])
    assert "groups" not in claims_of(world, crowd)
    assert log_in(world, crowd)["metadata"]["vm_name"] == "crowd"
    assert requests_to(world, "/getMemberGroups") == 1
    world.must("POST", "auth/cloud/role/dev", {"bound_group_ids": groups["cloud-admins"]})
    assert refused(world, login_form(world, crowd)) == (403, "bound_group_mismatch")


def test_a_login_of_a_principal_that_the_directory_does_not_know_is_refused() -> None:
    world = Installation()
    crowd = world.cloud(
        "POST", "/simulator/machines", {"name": "crowd", "groups": [f"t{n}" for n in range(MAX_GROUPS + 1)]}
    )
    configure_logins(world, bound_group_ids="anything", bound_subscription_ids=crowd["subscription"])
    world.fail(path="/graph/v1.0/directoryObjects/", status=404, code="x")
    assert refused(world, login_form(world, crowd)) == (403, "groups_unavailable")


def claims_of(world: Installation, machine: Any) -> Any:
    return jwt.decode(str(login_form(world, machine)["jwt"]), options={"verify_signature": False})


def test_a_person_logs_in_only_where_the_role_says_so() -> None:
    """A member of a bound group with a token for a person: refused after the signature, by a code that names the field.

    The kind of an admitted token is in the metadata of the service token.
    """
    world = Installation()
    machine = configure_logins(world, bound_subscription_ids="", bound_service_principal_ids="*")
    claims = {**claims_of(world, machine), "scp": "user_impersonation", "idtyp": "user"}
    person = world.cloud("POST", "/simulator/tokens", {"claims": claims})["token"]
    body = {**login_form(world, machine), "jwt": person}
    refusal = world.ask("POST", LOGIN, body, "")
    assert (refusal.status, refusal.codes) == (403, ["bound_token_type_mismatch"])
    assert "bound_token_types" in refusal.body["errors"][0]
    forged = {**body, "jwt": f"{person[:-8]}AAAAAAAA"}
    assert world.refused("POST", LOGIN, forged, "") == (403, "login_refused")
    world.must("POST", ROLE, {"bound_token_types": ["user"]})
    assert world.must("POST", LOGIN, body, "").auth["metadata"]["jwt_type"] == "user"
    assert world.refused("POST", LOGIN, login_form(world, machine), "") == (403, "bound_token_type_mismatch")
    world.must("POST", ROLE, {"bound_token_types": ["app", "user"]})
    assert world.must("POST", LOGIN, body, "").auth["metadata"]["jwt_type"] == "user"
    assert log_in(world, machine)["metadata"]["jwt_type"] == "app"


def test_a_machine_claim_that_is_no_machines_id_counts_as_none_and_is_told() -> None:
    """A role that binds principals only admits; nothing of the form is believed, or sent to the provider."""
    world = Installation()
    machine = configure_logins(world, bound_subscription_ids="", bound_service_principal_ids="*")
    extension = f"{machine['resource_id']}/providers/Microsoft.GuestConfiguration/guestConfigurationAssignments/a"
    claims = {**claims_of(world, machine), "xms_az_rid": extension}
    body = login_form(world, machine, jwt=world.cloud("POST", "/simulator/tokens", {"claims": claims})["token"])
    metadata = world.must("POST", LOGIN, body, "").auth["metadata"]
    assert set(metadata) == {"app_id", "jwt_type", "role", "tenant_id"}
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
    world = Installation(seed)
    machine = configure_logins(world)
    login = world.spawn(world.asking("POST", LOGIN, login_form(world, machine), ""))
    path = "auth/cloud/role/dev" if change == "role" else "auth/cloud/config"
    deletion = world.spawn(world.asking("DELETE", path))
    world.settle()
    assert deletion.result().status == 204
    if login.result().status == 200:
        assert world.last_commit(login.name) < world.last_commit(deletion.name)
    else:
        assert login.result().status == 400


def store_tenant(world: Installation, tenant: str) -> None:
    """Store a tenant as an earlier version did, which took any text."""
    mount = world.mount("auth/cloud")
    context = world.context
    found = world.perform(context.records.find(keys.config(mount.id), Config))
    assert found is not None
    broken = evolve(found.record, tenant_id=tenant)
    world.perform(context.records.commit(Changes(found.expected, {found.key: broken})))


@pytest.mark.parametrize("tenant", ["..", ".", "a/b", "a b", "\u00e9", "x" * 300])
def test_a_tenant_that_is_no_longer_accepted_is_an_error_of_the_configuration(tenant: str) -> None:
    """It was stored by an earlier version. Logins name the field, and call nothing; a new value repairs them."""
    world = Installation()
    machine = configure_logins(world)
    right = world.must("GET", "auth/cloud/config").data["tenant_id"]
    store_tenant(world, tenant)
    before = len(world.trace)
    reply = world.ask("PUT", LOGIN, login_form(world, machine), "")
    assert (reply.status, reply.codes) == (400, ["config_invalid"])
    assert '"tenant_id"' in reply.body["errors"][0]
    assert not any(isinstance(effect, CallProvider) for _, effect in world.trace[before:])
    world.must("POST", "auth/cloud/config", {"tenant_id": right})
    assert log_in(world, machine)
