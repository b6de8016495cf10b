"""The auth method's configuration and roles, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.installation import Installation

CONFIG = "auth/cloud/config"
ROLE = "auth/cloud/role/web"
REQUIRED = {"tenant_id": "tenant", "resource": "https://management.azure.com/"}
BOUND = {"bound_locations": ["westus2"]}


@pytest.fixture
def service() -> Installation:
    return Installation()


def written(service: Installation, path: str, fields: dict[str, Any], **others: Any) -> Any:
    """What a read shows of fields after a write that has to succeed."""
    service.must("POST", path, {**fields, **others})
    shown = service.must("GET", path).data
    return {name: shown[name] for name in fields}


@pytest.mark.contract("auth config: tenant_id", "auth config: resource")
@pytest.mark.parametrize("missing", REQUIRED)
def test_tenant_and_resource_are_required(service: Installation, missing: str) -> None:
    assert service.refused("POST", CONFIG, {k: v for k, v in REQUIRED.items() if k != missing}) == (
        400,
        "field_required",
    )
    assert written(service, CONFIG, REQUIRED) == REQUIRED


@pytest.mark.read_back("auth config: environment")
def test_environment_is_one_of_four(service: Installation) -> None:
    """Public by default; case and the vendor's spelling are accepted and read back as written; others are refused."""
    service.must("POST", CONFIG, REQUIRED)
    assert service.must("GET", CONFIG).data["environment"] == "CloudPublicCloud"
    for name in ("CloudUSGovernmentCloud", "CloudChinaCloud", "CloudGermanCloud", "AZUREPUBLICCLOUD"):
        assert written(service, CONFIG, {"environment": name}) == {"environment": name}
    assert service.refused("POST", CONFIG, {"environment": "MoonCloud"}) == (400, "field_invalid")


@pytest.mark.read_back("auth config: client_id", "auth config: client_secret")
@pytest.mark.contract(
    "auth config: read returns client_secret",
    "endpoint: POST auth/cloud/config",
    "endpoint: GET auth/cloud/config",
)
def test_credentials_read_back(service: Installation) -> None:
    """A read returns what is stored, the client secret included; a write answers 204."""
    assert service.ask("POST", CONFIG, REQUIRED).status == 204
    assert service.must("GET", CONFIG).data["client_secret"] == ""
    fields = {"client_id": "id", "client_secret": "s3cr3t"}
    assert written(service, CONFIG, fields) == fields


@pytest.mark.contract(
    "auth config: identity_token_audience",
    "auth config: identity_token_ttl",
    "authentication: client secret or identity token",
    "limit: identity_token_ttl",
)
def test_an_identity_token_excludes_a_client_secret(service: Installation) -> None:
    """Both are stored and read back, but not together; an hour is the default lifetime."""
    fields = {"identity_token_audience": "api://exchange", "identity_token_ttl": 600}
    service.must("POST", CONFIG, REQUIRED)
    assert service.must("GET", CONFIG).data["identity_token_ttl"] == 3600
    assert written(service, CONFIG, fields) == fields
    assert service.refused("POST", CONFIG, {"client_secret": "x"}) == (400, "fields_exclusive")
    service.must("POST", CONFIG, {"client_secret": "x", "identity_token_audience": ""})


@pytest.mark.read_back("auth config: max_retries", "auth config: retry_delay", "auth config: max_retry_delay")
def test_retry_settings(service: Installation) -> None:
    """Three retries from four seconds up to a minute; pauses read back as integer seconds."""
    service.must("POST", CONFIG, REQUIRED)
    shown = service.must("GET", CONFIG).data
    assert (shown["max_retries"], shown["retry_delay"], shown["max_retry_delay"]) == (3, 4, 60)
    fields = {"max_retries": 0, "retry_delay": "5s", "max_retry_delay": "2m"}
    assert written(service, CONFIG, fields) == {"max_retries": 0, "retry_delay": 5, "max_retry_delay": 120}
    assert service.refused("POST", CONFIG, {"retry_delay": "500ms"}) == (400, "field_invalid")
    assert service.refused("POST", CONFIG, {"max_retries": 21}) == (400, "field_invalid")


@pytest.mark.contract(
    "auth config: rotation_period",
    "auth config: rotation_schedule",
    "auth config: rotation_window",
    "auth config: disable_automated_rotation",
    "auth config: period or schedule, not both",
    "limit: rotation_period",
    "limit: rotation_window",
)
def test_rotation_settings(service: Installation) -> None:
    """Nothing by default; at least five seconds or an hour; period and schedule exclude each other after merging."""
    service.must("POST", CONFIG, REQUIRED)
    shown = service.must("GET", CONFIG).data
    assert (shown["rotation_period"], shown["rotation_schedule"], shown["rotation_window"]) == (0, "", 0)
    assert shown["disable_automated_rotation"] is False
    assert service.refused("POST", CONFIG, {"rotation_period": 4}) == (400, "field_invalid")
    assert service.refused("POST", CONFIG, {"rotation_schedule": "@daily"}) == (400, "field_invalid")
    fields = {"rotation_schedule": "0 3 * * 1", "rotation_window": 3600, "disable_automated_rotation": True}
    assert written(service, CONFIG, fields) == fields
    assert service.refused("POST", CONFIG, {"rotation_window": 3599}) == (400, "field_invalid")
    assert "rotation_conflict" in service.refused("POST", CONFIG, {"rotation_period": 60})
    service.must("POST", CONFIG, {"rotation_schedule": "", "rotation_window": 0})
    assert written(service, CONFIG, {"rotation_period": 5}) == {"rotation_period": 5}


@pytest.mark.contract("endpoint: DELETE auth/cloud/config")
def test_a_deleted_config_is_gone(service: Installation) -> None:
    """Its credentials too; deleting it again is a success."""
    service.must("POST", CONFIG, REQUIRED)
    assert [service.ask("DELETE", CONFIG).status for _ in range(2)] == [204, 204]
    assert service.ask("GET", CONFIG).status == 404


@pytest.mark.contract(
    "auth role: name",
    "endpoint: POST auth/cloud/role/:name",
    "endpoint: GET auth/cloud/role/:name",
    "endpoint: LIST auth/cloud/role",
    "endpoint: DELETE auth/cloud/role/:name",
)
def test_a_role_has_a_name(service: Installation) -> None:
    """Names are case-insensitive and kept in lower case; a list of nothing is 404."""
    assert service.ask("LIST", "auth/cloud/role").status == 404
    service.must("POST", "auth/cloud/role/Web-1", BOUND)
    assert service.must("LIST", "auth/cloud/role").data == {"keys": ["web-1"]}
    assert service.ask("GET", "auth/cloud/role/WEB-1").status == 200
    assert service.ask("POST", "auth/cloud/role/-bad", BOUND).status == 400
    assert [service.ask("DELETE", "auth/cloud/role/web-1").status for _ in range(2)] == [204, 204]
    assert service.ask("GET", "auth/cloud/role/web-1").status == 404


@pytest.mark.read_back(
    "auth role: bound_service_principal_ids",
    "auth role: bound_group_ids",
    "auth role: bound_locations",
    "auth role: bound_subscription_ids",
    "auth role: bound_resource_groups",
    "auth role: bound_scale_sets",
)
@pytest.mark.parametrize(
    "bound",
    [
        "bound_service_principal_ids",
        "bound_group_ids",
        "bound_locations",
        "bound_subscription_ids",
        "bound_resource_groups",
        "bound_scale_sets",
    ],
)
def test_each_bound_alone_makes_a_role(service: Installation, bound: str) -> None:
    """Lists or comma-separated texts; unset reads back empty; a role without any bound is refused."""
    assert service.refused("POST", ROLE, {bound: []}) == (400, "role_unbound")
    service.must("POST", ROLE, {bound: "a, b"})
    shown = service.must("GET", ROLE).data
    bounds = {name: value for name, value in shown.items() if name.startswith("bound_") and value}
    assert bounds == {bound: ["a", "b"], "bound_token_types": ["app"]}
    assert service.refused("POST", ROLE, {bound: ["a", "*"]}) == (400, "field_invalid")


def test_the_wildcard_stands_alone(service: Installation) -> None:
    """`"*"` says on purpose that any principal of the tenant will do."""
    assert written(service, ROLE, {"bound_service_principal_ids": ["*"]}) == {"bound_service_principal_ids": ["*"]}


@pytest.mark.read_back(
    "auth role: token_ttl",
    "auth role: token_max_ttl",
    "auth role: token_explicit_max_ttl",
    "auth role: token_period",
    "auth role: max_jwt_exp",
)
@pytest.mark.parametrize(
    "field", ["token_ttl", "token_max_ttl", "token_explicit_max_ttl", "token_period", "max_jwt_exp"]
)
def test_durations_read_back_in_seconds(service: Installation, field: str) -> None:
    """Numbers and suffixed texts; zero by default; negatives refused."""
    service.must("POST", ROLE, BOUND)
    assert service.must("GET", ROLE).data[field] == 0
    for text, seconds in ((90, 90), ("90", 90), ("90m", 5400), ("1d", 86400)):
        service.must("POST", ROLE, {field: text})
        assert service.must("GET", ROLE).data[field] == seconds
    assert service.refused("POST", ROLE, {field: -1}) == (400, "field_invalid")


@pytest.mark.read_back("auth role: token_policies", "auth role: policies", "auth role: max_ttl")
def test_old_spellings(service: Installation) -> None:
    """An old spelling sets the new field and is repeated by reads; a new one given beside it wins and clears it."""
    service.must("POST", ROLE, {**BOUND, "policies": "B, a", "max_ttl": 60})
    shown = service.must("GET", ROLE).data
    assert (shown["token_policies"], shown["policies"]) == (["B", "a"], ["B", "a"])
    assert (shown["token_max_ttl"], shown["max_ttl"]) == (60, 60)
    service.must("POST", ROLE, {"policies": "old", "token_policies": ["new"]})
    shown = service.must("GET", ROLE).data
    assert shown["token_policies"] == ["new"]
    assert "policies" not in shown


@pytest.mark.read_back("auth role: token_bound_cidrs")
def test_cidr_blocks(service: Installation) -> None:
    """A bare address is a block of one; nonsense is refused, and so is a stray comma."""
    fields = {"token_bound_cidrs": "10.0.0.0/8,192.0.2.1"}
    service.must("POST", ROLE, {**BOUND, **fields})
    assert service.must("GET", ROLE).data["token_bound_cidrs"] == ["10.0.0.0/8", "192.0.2.1"]
    for bad in ("somewhere", "10.0.0.0/8,"):
        assert service.refused("POST", ROLE, {"token_bound_cidrs": bad}) == (400, "field_invalid")


@pytest.mark.read_back("auth role: token_no_default_policy", "auth role: token_num_uses", "auth role: token_type")
def test_kinds_of_tokens(service: Installation) -> None:
    """Service or batch or the mount's default; a batch token has neither period nor uses."""
    service.must("POST", ROLE, BOUND)
    shown = service.must("GET", ROLE).data
    assert (shown["token_no_default_policy"], shown["token_num_uses"], shown["token_type"]) == (False, 0, "default")
    fields = {"token_no_default_policy": True, "token_num_uses": 3, "token_type": "service"}
    assert written(service, ROLE, fields) == fields
    assert service.refused("POST", ROLE, {"token_type": "batch"}) == (400, "fields_exclusive")
    assert service.refused("POST", ROLE, {"token_type": "default-batch"}) == (400, "field_invalid")
    assert service.refused("POST", ROLE, {"token_num_uses": -1}) == (400, "field_invalid")
