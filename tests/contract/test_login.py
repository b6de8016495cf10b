"""The login, its refusals and its answer, row by row."""

from __future__ import annotations

import pytest

from tests.installation import Installation
from tests.logins import RESOURCE

from .logins import ROLE, configured, form, log_in, machine, refused


@pytest.fixture
def service() -> Installation:
    return configured(token_ttl=600, token_policies="app")


@pytest.mark.contract("login: response", "endpoint: POST auth/cloud/login", "authentication: login needs no token")
def test_the_answer(service: Installation) -> None:
    """The `auth` object has the token, its accessor, its policies, its life in seconds, and whether it renews."""
    auth = log_in(service, form(service, machine(service, "vm"))).auth
    assert auth["token_policies"] == ["app", "default"]
    assert (auth["lease_duration"], auth["renewable"]) == (600, True)
    assert service.ask("GET", "auth/token/lookup-self", token=auth["client_token"]).data["accessor"] == auth["accessor"]


@pytest.mark.contract("login: role", "login: jwt")
@pytest.mark.parametrize("field", ["role", "jwt"])
def test_required_fields(service: Installation, field: str) -> None:
    fields = form(service, machine(service, "vm"))
    del fields[field]
    assert refused(service, fields) == (400, "field_required")


@pytest.mark.contract("login: subscription_id", "login: resource_group_name")
@pytest.mark.parametrize("field", ["subscription_id", "resource_group_name"])
@pytest.mark.parametrize("bound", ["bound_subscription_ids", "bound_resource_groups", "bound_locations"])
def test_fields_that_a_role_for_machines_requires(service: Installation, field: str, bound: str) -> None:
    """A role that binds principals or groups alone needs neither: then the signed claim names the machine."""
    fields = form(service, machine(service, "vm"))
    expected = {"bound_subscription_ids": service.scene["subscriptions"], "bound_resource_groups": "prod"}
    service.must("POST", ROLE, {"bound_subscription_ids": "", bound: expected.get(bound, "westus2")})
    absent = {name: value for name, value in fields.items() if name != field}
    for fewer in (absent, {**fields, field: ""}):
        assert refused(service, fewer) == (400, "machine_required")
    service.must("POST", ROLE, {"bound_service_principal_ids": "*", bound: ""})
    assert log_in(service, absent).status == 200


@pytest.mark.contract("login: signature, then constraints")
def test_the_signature_comes_first(service: Installation) -> None:
    """Until it is verified, the answer does not depend on the role or on the other checks."""
    fields = form(service, machine(service, "vm"))
    forged = fields["jwt"][:-8] + "AAAAAAAA"
    for changes in ({}, {"role": "nobody"}, {"resource_group_name": "other"}):
        assert refused(service, {**fields, **changes, "jwt": forged}) == (403, "login_refused")
    assert refused(service, {**fields, "role": "nobody"}) == (400, "role_not_found")
    assert refused(service, {**fields, "resource_group_name": "other"}) == (403, "resource_group_mismatch")
    assert refused(service, {**fields, "jwt": "nonsense"}) == (400, "jwt_malformed")


@pytest.mark.contract("authentication: audience is the resource")
def test_the_audience_is_the_resource(service: Installation) -> None:
    fields = form(service, machine(service, "vm"))
    service.must("POST", "auth/cloud/config", {"resource": RESOURCE.rstrip("/")})
    assert refused(service, fields) == (403, "jwt_audience_mismatch")


@pytest.mark.contract("login: vm_name")
def test_vm_name(service: Installation) -> None:
    """It must be the machine that the token names, and counts only without `vmss_name`."""
    virtual_machine = machine(service, "vm")
    name = virtual_machine["resource_id"].rpartition("/")[2]
    assert log_in(service, form(service, virtual_machine, vm_name=name.upper())).status == 200
    assert refused(service, form(service, virtual_machine, vm_name=f"{name}2")) == (403, "vm_name_mismatch")
    assert refused(service, form(service, virtual_machine, vm_name=name[:-1])) == (403, "vm_name_mismatch")


@pytest.mark.contract("login: vmss_name")
@pytest.mark.parametrize("kind", ["vmss_uniform", "vmss_flexible"])
def test_vmss_name(service: Installation, kind: str) -> None:
    """Uniform: the token names the set; flexible: the provider says to which set the machine belongs."""
    member = machine(service, kind)
    name = member["resource_id"].rpartition("/")[2]
    assert log_in(service, form(service, member, vmss_name=name)).status == 200
    assert log_in(service, form(service, member, vmss_name=name, vm_name="ignored")).status == 200
    assert refused(service, form(service, member, vmss_name=f"{name}2")) == (403, "vmss_name_mismatch")


@pytest.mark.contract("login: resource_id")
def test_resource_id(service: Installation) -> None:
    """Any resource by its full id; ignored where a machine or a set is named."""
    resource = machine(service, "resource")
    resource_id = resource["resource_id"]
    assert log_in(service, form(service, resource, resource_id=resource_id)).status == 200
    assert refused(service, form(service, resource, resource_id=f"{resource_id}2")) == (403, "resource_id_mismatch")
    assert refused(service, form(service, resource, resource_id="nonsense")) == (400, "field_invalid")
    virtual_machine = machine(service, "vm")
    name = virtual_machine["resource_id"].rpartition("/")[2]
    assert log_in(service, form(service, virtual_machine, vm_name=name, resource_id=resource_id)).status == 200


@pytest.mark.contract("login: vm_name and resource_id are ignored beside vmss_name, resource_id beside vm_name")
@pytest.mark.parametrize("ignored", ["right", "wrong", "malformed"])
@pytest.mark.parametrize(
    ("kind", "named_by", "others"),
    [
        ("vm", "vm_name", ["resource_id"]),
        ("vmss_uniform", "vmss_name", ["vm_name"]),
        ("vmss_uniform", "vmss_name", ["resource_id"]),
        ("vmss_flexible", "vmss_name", ["vm_name", "resource_id"]),
    ],
)
def test_the_first_name_of_a_machine_counts(
    service: Installation, kind: str, named_by: str, others: list[str], ignored: str
) -> None:
    """Whatever else the form says is neither compared nor checked."""
    member = machine(service, kind)
    resource_id = member["resource_id"]
    name = resource_id.rpartition("/")[2]
    values = {
        "right": {"vm_name": name, "resource_id": resource_id},
        "wrong": {"vm_name": f"{name}2", "resource_id": machine(service, "resource")["resource_id"]},
        "malformed": {"vm_name": "a/b", "resource_id": "nonsense"},
    }[ignored]
    fields = {other: values[other] for other in others}
    assert log_in(service, form(service, member, **fields, **{named_by: name})).status == 200
    mismatch = refused(service, form(service, member, **fields, **{named_by: f"{name}2"}))
    assert mismatch == (403, f"{named_by}_mismatch")


@pytest.mark.contract("endpoint: DELETE auth/cloud/config")
def test_without_a_configuration_there_is_no_login(service: Installation) -> None:
    fields = form(service, machine(service, "vm"))
    assert log_in(service, fields).status == 200
    service.must("DELETE", "auth/cloud/config")
    assert refused(service, fields) == (400, "config_missing")


@pytest.mark.contract("error: provider operations are retried")
def test_provider_operations_are_retried(service: Installation) -> None:
    """As often as the configuration says, and then it is an error."""
    service.fail("arm", times=2, status=503)
    assert log_in(service, form(service, machine(service, "vm"))).status == 200
    service.must("POST", "auth/cloud/config", {"max_retries": 0})
    service.advance(120)
    service.fail("arm", times=1, status=503)
    assert refused(service, form(service, machine(service, "vm"))) == (503, "provider_failed")
