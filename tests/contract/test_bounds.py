"""Each bound of a role admits one login and refuses another."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest

from tests.installation import Installation

from .logins import ROLE, configured, form, log_in, named, refused

NO_ID = "00000000-0000-4000-8000-000000000000"


def admits(bound: str, value: object, admitted: str, other: str, code: str) -> Installation:
    """Check that a role with this bound alone admits one machine, and refuses the other with the bound's code."""
    service = configured(**{"bound_subscription_ids": [], bound: value})
    assert log_in(service, form(service, named(service, admitted))).status == 200
    assert refused(service, form(service, named(service, other))) == (403, code)
    return service


def world() -> dict[str, Any]:
    shown: dict[str, Any] = Installation().scene
    return shown


@pytest.mark.contract("auth role: bound_service_principal_ids")
def test_a_service_principal() -> None:
    """Case does not matter; `"*"` alone admits any principal of the tenant."""
    principal = named(Installation(), "web")["principals"][0].upper()
    service = admits(
        "bound_service_principal_ids", [NO_ID, principal], "web", "web2", "bound_service_principal_mismatch"
    )
    service.must("POST", ROLE, {"bound_service_principal_ids": "*"})
    assert log_in(service, form(service, named(service, "web2"))).status == 200


@pytest.mark.contract("auth role: bound_group_ids")
def test_a_group() -> None:
    """The token's `groups` claim counts, nested groups included."""
    groups = {group["display_name"]: group["id"] for group in world()["groups"]}
    admits("bound_group_ids", groups["web-machines"], "web", "web2", "bound_group_mismatch")
    admits("bound_group_ids", groups["all-machines"], "web", "web2", "bound_group_mismatch")


@pytest.mark.contract("auth role: bound_group_ids")
def test_a_group_of_a_principal_in_too_many_groups() -> None:
    """The token then holds a link in place of the groups, and the service asks the directory."""
    service = configured()
    many = service.cloud(
        "POST", "/simulator/machines", {"name": "joiner", "groups": [f"group-{number}" for number in range(250)]}
    )
    groups = {g["display_name"]: g["id"] for g in service.scene["groups"]}
    for group, status in (("group-249", 200), ("web-machines", 403)):
        service.must("POST", ROLE, {"bound_subscription_ids": [], "bound_group_ids": groups[group]})
        assert log_in(service, form(service, many)).status == status


@pytest.mark.contract("auth role: bound_locations")
def test_a_location() -> None:
    """The provider says where a machine is. Blanks and case do not matter."""
    admits("bound_locations", "West Europe", "web", "vm-system", "bound_location_mismatch")


@pytest.mark.contract("auth role: bound_subscription_ids")
def test_a_subscription() -> None:
    admits("bound_subscription_ids", world()["subscriptions"][0], "web", "web-abroad", "bound_subscription_mismatch")


@pytest.mark.contract("auth role: bound_resource_groups")
def test_a_resource_group() -> None:
    """A group whose name only starts alike is another one."""
    admits("bound_resource_groups", "PROD", "web", "web-evil", "bound_resource_group_mismatch")


@pytest.mark.contract("auth role: bound_scale_sets")
@pytest.mark.parametrize(
    ("admitted", "other"), [("fleet-uniform", "fleet-flexible"), ("fleet-flexible", "fleet-uniform")]
)
def test_a_scale_set(admitted: str, other: str) -> None:
    """Uniform: the token names the set; flexible: the provider says which set the machine belongs to."""
    name = named(Installation(), admitted)["scale_set"]
    service = admits("bound_scale_sets", name, admitted, other, "bound_scale_set_mismatch")
    assert refused(service, form(service, named(service, "web"))) == (403, "bound_scale_set_mismatch")


def test_machines_with_identities_of_their_own_need_no_principal_listed() -> None:
    """A bound scale set is enough: the provider says that the machine is in it and carries the token's principal."""
    service = configured(bound_subscription_ids=[], bound_scale_sets=["Autoscaled"])
    own = {"kind": "vmss_flexible", "identities": {"system_assigned": True}}
    sets = {"first": "autoscaled", "second": "autoscaled", "third": "autoscaled2"}
    made = [
        service.cloud("POST", "/simulator/machines", {"name": name, "scale_set": scale_set, **own})
        for name, scale_set in sets.items()
    ]
    assert len({one["principals"][0] for one in made}) == 3
    forms = [form(service, one) for one in made]
    assert [log_in(service, fields).status for fields in forms] == [200, 200, 403]
    assert refused(service, forms[2]) == (403, "bound_scale_set_mismatch")
    other = service.cloud("POST", "/simulator/tokens", {"claims": {**claims_of(forms[0]), "oid": NO_ID, "sub": NO_ID}})
    assert refused(service, {**forms[0], "jwt": other["token"]}) == (403, "machine_identity_mismatch")


def claims_of(fields: dict[str, str]) -> dict[str, Any]:
    claims: dict[str, Any] = json.loads(urlsafe_b64decode(fields["jwt"].split(".")[1] + "=="))
    return claims


@pytest.mark.contract("auth role: bound_identity_ids")
def test_a_user_assigned_identity() -> None:
    """The token names the identity by its resource id. No machine is needed, and the provider is not asked."""
    service = configured(bound_subscription_ids=[], bound_service_principal_ids="*")
    for name in ("bearer", "sharer"):
        assigned = {"system_assigned": False, "user_assigned": ["worker"]}
        service.cloud("POST", "/simulator/machines", {"name": name, "identities": assigned})
    (worker,) = [one["resource_id"] for one in service.scene["identities"] if one["name"] == "worker"]
    service.must("POST", ROLE, {"bound_service_principal_ids": [], "bound_identity_ids": worker.upper()})
    service.cloud("POST", "/simulator/faults", [{"match": {"family": "arm"}, "times": None, "action": {"status": 503}}])
    for name in ("bearer", "sharer"):
        jwt = form(service, named(service, name))["jwt"]
        assert log_in(service, {"role": "web", "jwt": jwt}).status == 200
    for other in ("vm-user", "vm-system"):
        assert refused(service, form(service, named(service, other))) == (403, "bound_identity_mismatch")
    service.must("POST", ROLE, {"bound_identity_ids": [f"{worker}2", worker[:-1]]})
    assert refused(service, form(service, named(service, "bearer"))) == (403, "bound_identity_mismatch")


@pytest.mark.contract("auth role: bound_vm_ids")
def test_a_virtual_machine_that_is_made_anew_is_another_one() -> None:
    """The provider says which machine it is now: a name is used again, and so may an identity be, the id never is."""
    service = configured()
    identities = {"system_assigned": False, "user_assigned": ["worker"]}
    made = service.cloud("POST", "/simulator/machines", {"name": "pet", "identities": identities})
    vm_id = vm_id_of(service, "pet")
    service.must("POST", ROLE, {"bound_subscription_ids": [], "bound_vm_ids": vm_id.upper()})
    assert log_in(service, form(service, made)).status == 200
    for other in ("web", "fleet-uniform"):
        assert refused(service, form(service, named(service, other))) == (403, "bound_vm_id_mismatch")
    service.cloud("DELETE", "/simulator/machines/pet")
    anew = service.cloud("POST", "/simulator/machines", {"name": "pet", "identities": identities})
    service.advance(61.0)  # `fact_max_age`
    assert (anew["resource_id"], anew["principals"]) == (made["resource_id"], made["principals"])
    assert refused(service, form(service, anew)) == (403, "bound_vm_id_mismatch")
    service.must("POST", ROLE, {"bound_vm_ids": vm_id_of(service, "pet")})
    assert log_in(service, form(service, anew)).status == 200


def vm_id_of(service: Installation, name: str) -> str:
    """What the machine's own metadata service says."""
    shown = service.cloud("GET", f"/machines/{name}/metadata/instance?api-version=2021-02-01")
    return str(shown["compute"]["vmId"])


def test_every_list_that_is_set_must_match() -> None:
    """Lists are combined by AND, the entries of one by OR."""
    service = configured(bound_locations=["westeurope", "nowhere"], bound_resource_groups=["prod"])
    assert log_in(service, form(service, named(service, "web"))).status == 200
    service.must("POST", ROLE, {"bound_resource_groups": ["other"]})
    assert refused(service, form(service, named(service, "web"))) == (403, "bound_resource_group_mismatch")
