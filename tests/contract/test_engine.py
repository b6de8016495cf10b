"""The secrets engine's configuration, roles and credentials, row by row."""

from __future__ import annotations

import msgspec
import pytest

from cloudid_core import Secret
from tests.engines import NO_ID, engine_config, grants
from tests.installation import Installation

CONFIG = "cloud/config"
ROLE = "cloud/roles/web"
DAY = 86_400


@pytest.fixture
def bare() -> Installation:
    return Installation()


@pytest.fixture
def service(bare: Installation) -> Installation:
    """A configured engine."""
    bare.must("POST", CONFIG, engine_config(bare))
    return bare


def reader(installation: Installation, **changes: str) -> str:
    """The `azure_roles` of a role, as a text."""
    return msgspec.json.encode([{**grants(installation)[0], **changes}]).decode()


@pytest.mark.contract("engine config: subscription_id", "engine config: tenant_id", "endpoint: POST cloud/config")
@pytest.mark.parametrize("missing", ["subscription_id", "tenant_id"])
def test_subscription_and_tenant_are_required(bare: Installation, missing: str) -> None:
    fields = engine_config(bare)
    assert bare.refused("POST", CONFIG, {k: v for k, v in fields.items() if k != missing}) == (400, "field_required")
    assert bare.ask("POST", CONFIG, fields).status == 204


@pytest.mark.read_back("engine config: client_id", "engine config: environment")
@pytest.mark.contract("engine config: client_secret", "engine config: read", "endpoint: GET cloud/config")
def test_the_secret_is_not_read_back(service: Installation) -> None:
    """Everything else is; an empty environment is the public cloud; without a configuration all is empty."""
    shown = service.must("GET", CONFIG).data
    written = engine_config(service)
    assert "client_secret" not in shown
    assert {name: shown[name] for name in ("subscription_id", "tenant_id", "client_id", "environment")} == {
        **{name: value for name, value in written.items() if name != "client_secret"},
        "environment": "",
    }
    assert Installation().must("GET", CONFIG).data["tenant_id"] == ""


@pytest.mark.read_back("engine config: root_password_ttl")
@pytest.mark.contract(
    "engine config: identity_token_audience", "engine config: identity_token_ttl", "engine config: rotation fields"
)
def test_other_fields_of_the_configuration(service: Installation) -> None:
    shown = service.must("GET", CONFIG).data
    assert (shown["identity_token_ttl"], shown["root_password_ttl"]) == (3600, 182 * DAY)
    assert service.refused("POST", CONFIG, {"identity_token_audience": "api://exchange"}) == (400, "fields_exclusive")
    service.must("POST", CONFIG, {"root_password_ttl": "90d", "rotation_period": 3600})
    shown = service.must("GET", CONFIG).data
    assert (shown["root_password_ttl"], shown["rotation_period"]) == (90 * DAY, 3600)
    assert service.refused("POST", CONFIG, {"rotation_schedule": "0 3 * * *"}) == (400, "rotation_conflict")
    assert "rotation_window_conflict" in service.refused("POST", CONFIG, {"rotation_window": 3600})


@pytest.mark.contract("engine config: environment variables override", "auth config: environment variables")
def test_environment_variables(bare: Installation) -> None:
    """They override what is stored, in both components; a read shows what is stored."""
    fields = engine_config(bare)
    environment = {f"CLOUD_{name.upper()}": Secret(value) for name, value in fields.items()}
    environment["CLOUD_AD_RESOURCE"] = Secret("https://management.azure.com/")
    bare.restart(environment=environment)
    bare.must("POST", CONFIG, {"tenant_id": "wrong", "client_secret": "wrong"})
    assert bare.must("GET", CONFIG).data["tenant_id"] == "wrong"
    bare.must("POST", ROLE, {"azure_roles": reader(bare)})
    assert bare.ask("GET", "cloud/creds/web").status == 200
    bare.must("POST", "auth/cloud/config", {})
    assert bare.must("GET", "auth/cloud/config").data["tenant_id"] == ""


@pytest.mark.contract("endpoint: DELETE cloud/config")
def test_a_config_with_live_leases_is_kept(service: Installation) -> None:
    """What would strand leases needs force."""
    service.must("POST", ROLE, {"azure_roles": reader(service)})
    service.must("GET", "cloud/creds/web")
    assert service.ask("DELETE", CONFIG).status == 409
    assert service.ask("DELETE", f"{CONFIG}?force=true").status == 204
    assert service.must("GET", CONFIG).data["tenant_id"] == ""


@pytest.mark.contract(
    "engine role: azure_roles",
    "endpoint: POST cloud/roles/:name",
    "endpoint: LIST cloud/roles",
)
def test_azure_roles(service: Installation) -> None:
    """JSON as text or as an array, with names that are looked up at their scope; unknown members are refused."""
    assert service.ask("LIST", "cloud/roles").status == 404
    service.must("POST", ROLE, {"azure_roles": reader(service)})
    shown = service.must("GET", ROLE).data["azure_roles"]
    assert shown[0]["role_name"] == "Reader"
    assert "/roleDefinitions/" in shown[0]["role_id"]
    service.must("POST", ROLE, {"azure_roles": shown})
    assert service.must("GET", ROLE).data["azure_roles"] == shown
    assert service.must("LIST", "cloud/roles").data == {"keys": ["web"]}
    for bad in ("not json", "[1]", '{"a": 1}', reader(service, colour="red"), reader(service, scope="nowhere")):
        assert service.refused("POST", ROLE, {"azure_roles": bad}) == (400, "field_invalid")


@pytest.mark.contract(
    "engine role: azure_roles by role_name or role_id",
    "engine role: references must exist",
)
def test_azure_roles_by_id(service: Installation) -> None:
    """An id alone is enough, with or without the scope before it; a name or an id is needed, and so is a scope."""
    definition = next(
        one for one in service.simulator.world.role_definitions.values() if one.role_name == "Contributor"
    )
    short = f"/providers/Microsoft.Authorization/roleDefinitions/{definition.guid}"
    scope = grants(service)[0]["scope"]
    for role_id in (short, f"{scope}{short}"):
        service.must("POST", ROLE, {"azure_roles": [{"role_id": role_id, "scope": scope}]})
        (shown,) = service.must("GET", ROLE).data["azure_roles"]
        assert (shown["role_name"], shown["scope"]) == ("Contributor", scope)
        assert shown["role_id"].endswith(short)
        credentials = service.must("GET", "cloud/creds/web").data
        principal = service.simulator.world.directory.principal_of(credentials["client_id"])
        assert principal is not None
        assigned = [
            (assignment.definition, assignment.scope)
            for assignment in service.simulator.world.role_assignments.table.all()
            if assignment.principal_id == principal.id
        ]
        assert assigned == [(definition.guid, scope)]
    for incomplete in ({"scope": scope}, {"role_id": short}, {"role_name": "Contributor"}):
        assert service.refused("POST", ROLE, {"azure_roles": [incomplete]}) == (400, "field_invalid")
    unknown = short.replace(definition.guid, NO_ID)
    for role_id in (unknown, definition.guid):
        assert service.refused("POST", ROLE, {"azure_roles": [{"role_id": role_id, "scope": scope}]}) == (
            400,
            "reference_not_found",
        )


@pytest.mark.contract("engine role: azure_groups")
def test_azure_groups(service: Installation) -> None:
    group = service.scene["groups"][0]
    by_name = msgspec.json.encode([{"group_name": group["display_name"]}]).decode()
    service.must("POST", ROLE, {"azure_roles": reader(service), "azure_groups": by_name})
    expected = [{"group_name": group["display_name"], "object_id": group["id"]}]
    assert service.must("GET", ROLE).data["azure_groups"] == expected
    unknown = msgspec.json.encode([{"group_name": "nobody"}]).decode()
    assert service.refused("POST", ROLE, {"azure_groups": unknown}) == (400, "reference_not_found")


@pytest.mark.contract(
    "engine role: references must exist",
    "engine role: application_object_id, azure_roles, directory_roles or app_roles",
)
def test_what_a_role_refers_to_exists(service: Installation) -> None:
    """It has roles or an application, and the provider knows them."""
    reply = service.ask("POST", ROLE, {"ttl": 60})
    assert (reply.status, reply.codes) == (400, ["field_required"])
    assert '"directory_roles" or "app_roles"' in reply.body["errors"][0]
    assert service.refused("POST", ROLE, {"azure_roles": reader(service, role_name="Nobody")}) == (
        400,
        "reference_not_found",
    )
    unknown = "00000000-0000-4000-8000-000000000000"
    assert service.refused("POST", ROLE, {"application_object_id": unknown}) == (400, "reference_not_found")


@pytest.mark.contract("engine role: application_object_id")
def test_an_existing_application(service: Installation) -> None:
    """Its credentials are a password of it; it may not be the engine's own."""
    own, other = service.scene["applications"][:2]
    refused = service.ask("POST", ROLE, {"application_object_id": own["object_id"]})
    assert (refused.status, refused.body["codes"]) == (403, ["self_target"])
    service.must("POST", ROLE, {"application_object_id": other["object_id"]})
    assert service.must("GET", "cloud/creds/web").data["client_id"] == other["client_id"]
    for flag in ("persist_app", "permanently_delete"):
        assert service.refused("POST", ROLE, {flag: True}) == (400, "fields_exclusive")


@pytest.mark.contract("engine role: persist_app")
def test_a_persisted_application(service: Installation) -> None:
    """All credentials of the role are passwords of one application, which goes with the role."""
    service.must("POST", ROLE, {"azure_roles": reader(service), "persist_app": True})
    first, second = (service.must("GET", "cloud/creds/web").data for _ in range(2))
    assert first["client_id"] == second["client_id"]
    assert first["client_secret"] != second["client_secret"]
    service.must("DELETE", ROLE)
    service.converge()
    assert not service.accepts(first["client_id"], first["client_secret"])


@pytest.mark.contract("engine role: ttl", "engine role: max_ttl", "engine role: explicit_max_ttl")
def test_lifetimes(service: Installation) -> None:
    """Seconds or suffixed; none may exceed a longer one that is set; the lease gets the TTL."""
    service.must(
        "POST", ROLE, {"azure_roles": reader(service), "ttl": "10m", "max_ttl": 1200, "explicit_max_ttl": "1h"}
    )
    shown = service.must("GET", ROLE).data
    assert (shown["ttl"], shown["max_ttl"], shown["explicit_max_ttl"]) == (600, 1200, 3600)
    for fields in ({"ttl": 1201}, {"max_ttl": 3601}, {"explicit_max_ttl": 599}):
        assert set(service.refused("POST", ROLE, fields)) == {400, "ttl_exceeds_max"}
    assert service.must("GET", "cloud/creds/web").body["lease_duration"] == 600


@pytest.mark.read_back("engine role: permanently_delete", "engine role: tags", "engine role: sign_in_audience")
def test_properties_of_applications(service: Installation) -> None:
    """They reach the provider; both spellings of an audience are accepted; a purge leaves nothing in the bin."""
    fields = {"permanently_delete": True, "tags": "b, a,b", "sign_in_audience": "CloudADMyOrg"}
    service.must("POST", ROLE, {"azure_roles": reader(service), **fields})
    shown = service.must("GET", ROLE).data
    assert (shown["permanently_delete"], shown["sign_in_audience"]) == (True, "CloudADMyOrg")
    assert shown["tags"] == ["b", "a", "b"]
    lease_id = service.must("GET", "cloud/creds/web").body["lease_id"]
    service.must("PUT", "sys/leases/revoke", {"lease_id": lease_id})
    service.converge()
    assert service.alive() == service.soft_deleted() == []
    service.must("POST", ROLE, {"sign_in_audience": "AzureADMultipleOrgs"})
    assert service.refused("POST", ROLE, {"sign_in_audience": "Everybody"}) == (400, "field_invalid")
    assert service.refused("POST", ROLE, {"tags": "with blank"}) == (400, "field_invalid")


@pytest.mark.contract("endpoint: GET cloud/creds/:name")
def test_credentials_work_until_their_lease_ends(service: Installation) -> None:
    """A client id and a secret that the provider accepts, under a lease; afterwards nothing is left."""
    service.must("POST", ROLE, {"azure_roles": reader(service), "ttl": 600})
    reply = service.must("GET", "cloud/creds/web")
    assert set(reply.data) == {"client_id", "client_secret", "tenant_id", "subscription_id"}
    assert (reply.body["lease_duration"], reply.body["renewable"]) == (600, True)
    assert service.accepts(**reply.data)
    service.advance(601)
    service.converge()
    assert not service.accepts(**reply.data)
    assert service.alive() == []
    unknown = service.ask("GET", "cloud/creds/nobody")
    assert (unknown.status, unknown.codes) == (400, ["role_not_found"])


@pytest.mark.contract("endpoint: DELETE cloud/roles/:name", "error: deleting an unknown role of the engine is 404")
def test_deleting_a_role(service: Installation) -> None:
    service.must("POST", ROLE, {"azure_roles": reader(service)})
    assert [service.ask("DELETE", ROLE).status for _ in range(2)] == [204, 404]


@pytest.mark.contract(
    "endpoint: POST cloud/rotate-root",
    "endpoint: POST auth/cloud/rotate-root",
    "error: a new root secret may be refused for a while",
)
@pytest.mark.parametrize("mount", ["cloud", "auth/cloud"])
def test_rotation(bare: Installation, mount: str) -> None:
    """The service goes on with a secret that only it knows, even where the provider takes a while to accept it."""
    fields = {"resource": "https://management.azure.com/"} if mount == "auth/cloud" else {}
    old = engine_config(bare)
    bare.must("POST", f"{mount}/config", {**old, **fields})
    bare.behave(delays={"sign_in": [5, 20]})
    reply = bare.ask("POST", f"{mount}/rotate-root")
    assert reply.status == 204
    bare.converge()
    bare.advance(60)
    assert bare.must("GET", f"{mount}/rotation").data["last_rotation"]
    assert not bare.accepts(old["client_id"], old["client_secret"])


@pytest.mark.contract("authentication: token header", "authentication: policies decide")
def test_tokens_and_policies(service: Installation) -> None:
    """Every operation needs a token whose policies allow it."""
    service.must("POST", ROLE, {"azure_roles": reader(service)})
    policy = 'path "cloud/creds/web" { capabilities = ["read"] }'
    service.must("PUT", "sys/policies/acl/app", {"policy": policy})
    token = service.must("POST", "auth/token/create", {"policies": ["app"]}).auth["client_token"]
    assert service.ask("GET", "cloud/creds/web", token=token).status == 200
    for path in ("cloud/roles/web", CONFIG):
        assert [service.ask("GET", path, token=shown).status for shown in (token, "", "nonsense")] == [403] * 3


@pytest.mark.contract("endpoint: any other mount path")
def test_components_can_be_mounted_anywhere(bare: Installation) -> None:
    """Several of each, at any path."""
    for kind, path in (("sys/mounts", "deep/er/engine"), ("sys/auth", "machines")):
        bare.must("POST", f"{kind}/{path}", {"type": "cloud"})
    bare.must("POST", "deep/er/engine/config", engine_config(bare))
    assert bare.must("GET", "deep/er/engine/config").data["client_id"]
    assert bare.must("GET", CONFIG).data["client_id"] == ""
    bare.must("POST", "auth/machines/role/web", {"bound_locations": "westus2"})
    assert bare.must("LIST", "auth/machines/role").data == {"keys": ["web"]}
