"""Each bound of a role admits one login and refuses another."""

from __future__ import annotations

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


def test_every_list_that_is_set_must_match() -> None:
    """Lists are combined by AND, the entries of one by OR."""
    service = configured(bound_locations=["westeurope", "nowhere"], bound_resource_groups=["prod"])
    assert log_in(service, form(service, named(service, "web"))).status == 200
    service.must("POST", ROLE, {"bound_resource_groups": ["other"]})
    assert refused(service, form(service, named(service, "web"))) == (403, "bound_resource_group_mismatch")
