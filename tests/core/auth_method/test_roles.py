"""The roles of an authentication method."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.auth_method.roles import LISTS
from tests.installation import Installation
from tests.minting import IDENTITY, VM, VM_ID
from tests.tokens import new_token, write_policy

PATH = "auth/cloud/role/dev"
WRITTEN = {"bound_identity_ids": IDENTITY, "bound_vm_ids": VM_ID}
"""Entries of lists that do not take any text."""
BOUND: dict[str, Any] = {"bound_locations": ["westus2"]}
DEFAULTS: dict[str, Any] = {
    "token_ttl": 0,
    "token_max_ttl": 0,
    "max_ttl": 0,
    "token_policies": [],
    "token_bound_cidrs": [],
    "token_explicit_max_ttl": 0,
    "token_no_default_policy": False,
    "token_num_uses": 0,
    "token_period": 0,
    "token_type": "default",
    "bound_service_principal_ids": [],
    "bound_group_ids": [],
    "bound_locations": [],
    "bound_subscription_ids": [],
    "bound_resource_groups": [],
    "bound_scale_sets": [],
    "bound_identity_ids": [],
    "bound_vm_ids": [],
    "bound_token_types": ["app"],
    "max_jwt_exp": 0,
    "recheck_on_renewal": False,
}


def stored(world: Installation, path: str = PATH) -> Any:
    return world.must("GET", path).data


def test_a_role_is_written_read_listed_and_deleted() -> None:
    world = Installation()
    assert world.ask("GET", PATH).status == 404
    assert world.ask("LIST", "auth/cloud/role").status == 404
    assert world.ask("POST", PATH, BOUND).status == 204
    assert stored(world) == {**DEFAULTS, **BOUND}
    assert world.must("GET", "auth/cloud/role?list=true").data == {"keys": ["dev"]}
    assert world.ask("DELETE", PATH).status == 204
    assert world.ask("GET", PATH).status == 404
    assert world.ask("DELETE", PATH).status == 204


def test_names_have_no_case() -> None:
    world = Installation()
    world.must("POST", "auth/cloud/role/Dev", BOUND)
    assert stored(world, "auth/cloud/role/DEV")["bound_locations"] == ["westus2"]
    assert world.must("LIST", "auth/cloud/role").data["keys"] == ["dev"]


@pytest.mark.parametrize("name", ["-dev", "dev.", "d@v", "x" * 129])
def test_a_name_must_be_one(name: str) -> None:
    assert Installation().refused("POST", f"auth/cloud/role/{name}", BOUND) == (400, "name_invalid")


@pytest.mark.parametrize(
    "field, value, shown",
    [
        ("bound_service_principal_ids", "a, b", ["a", "b"]),
        ("bound_service_principal_ids", ["*"], ["*"]),
        ("bound_group_ids", ["G"], ["G"]),
        ("bound_locations", "West US 2", ["West US 2"]),
        ("bound_subscription_ids", ["s"], ["s"]),
        ("bound_resource_groups", ["r"], ["r"]),
        ("bound_scale_sets", ["v"], ["v"]),
        ("bound_identity_ids", [IDENTITY], [IDENTITY]),
        ("bound_vm_ids", VM_ID.upper(), [VM_ID.upper()]),
        ("bound_token_types", ["user"], ["user"]),
        ("bound_token_types", "App, User", ["App", "User"]),
        ("bound_token_types", None, ["app"]),
        ("token_ttl", "1h", 3600),
        ("token_max_ttl", 7200, 7200),
        ("token_policies", "dev,Ops", ["dev", "Ops"]),
        ("token_bound_cidrs", ["10.1.2.3"], ["10.1.2.3"]),
        ("token_explicit_max_ttl", "1d", 86400),
        ("token_no_default_policy", True, True),
        ("token_num_uses", 5, 5),
        ("token_period", "30m", 1800),
        ("token_type", "batch", "batch"),
        ("token_type", "", "default"),
        ("max_jwt_exp", 600, 600),
    ],
)
def test_every_field_reads_back_and_the_others_stay(field: str, value: object, shown: object) -> None:
    world = Installation()
    world.must("POST", PATH, BOUND)
    before = stored(world)
    world.must("POST", PATH, {field: value})
    old = {"max_ttl": shown} if field == "token_max_ttl" else {}  # it is always shown under both names
    assert stored(world) == {**before, field: shown, **old}


@pytest.mark.parametrize(
    "old, new, value",
    [("policies", "token_policies", ["dev"]), ("max_ttl", "token_max_ttl", 60), ("ttl", "token_ttl", 60)],
)
def test_deprecated_names_are_understood_and_read_back(old: str, new: str, value: object) -> None:
    world = Installation()
    world.must("POST", PATH, {**BOUND, old: value})
    assert (stored(world)[old], stored(world)[new]) == (value, value)


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"bound_locations": []}, "role_unbound"),
        ({"bound_locations": "*"}, "field_invalid"),
        ({"bound_resource_groups": ["dev-*"]}, "field_invalid"),
        ({"bound_service_principal_ids": ["*", "a"]}, "field_invalid"),
        ({"bound_service_principal_ids": {"a": 1}}, "field_invalid"),
        ({"bound_identity_ids": ["worker"]}, "field_invalid"),
        ({"bound_identity_ids": [IDENTITY, VM]}, "field_invalid"),
        ({"bound_identity_ids": [IDENTITY + "/"]}, "field_invalid"),
        ({"bound_identity_ids": ["*"]}, "field_invalid"),
        ({"bound_vm_ids": ["web"]}, "field_invalid"),
        ({"bound_vm_ids": [VM_ID, ""]}, "field_invalid"),
        ({"bound_token_types": []}, "field_invalid"),
        ({"bound_token_types": ""}, "field_invalid"),
        ({"bound_token_types": ["app", "device"]}, "field_invalid"),
        ({"bound_locations": [], "bound_token_types": "app"}, "role_unbound"),
        ({"token_policies": "root"}, "root_policy_refused"),
        ({"token_ttl": 2, "token_max_ttl": 1}, "ttl_exceeds_max"),
        ({"token_type": "batch", "token_num_uses": 1}, "fields_exclusive"),
        ({"token_type": "default-batch"}, "field_invalid"),
        ({"token_ttl": "1.5d"}, "field_invalid"),
        ({"token_bound_cidrs": "10.0.0.0/33"}, "field_invalid"),
    ],
)
def test_what_cannot_work_is_refused_and_changes_nothing(fields: dict[str, object], code: str) -> None:
    world = Installation()
    world.must("POST", PATH, BOUND)
    before = stored(world)
    assert world.refused("POST", PATH, fields) == (400, code)
    assert stored(world) == before


def test_a_role_that_binds_nothing_is_refused() -> None:
    assert Installation().refused("POST", PATH, {"token_policies": "dev"}) == (400, "role_unbound")


def test_a_maximum_above_that_of_the_mount_causes_a_warning() -> None:
    told = Installation(max_lease_ttl=100).must("POST", PATH, {**BOUND, "token_max_ttl": 101}).body
    assert len(told["warnings"]) == 1


def test_creating_and_changing_need_different_capabilities() -> None:
    world = Installation()
    write_policy(world, "changer", ("auth/cloud/role/*", ["update"]))
    changer = new_token(world, policies=["changer"])
    assert world.ask("POST", PATH, BOUND, changer).status == 403
    world.must("POST", PATH, BOUND)
    world.must("POST", PATH, BOUND, changer)


@pytest.mark.parametrize("seed", range(4))
def test_two_writes_at_once_lose_no_field(seed: int) -> None:
    world = Installation(seed)
    world.must("POST", PATH, BOUND)
    for fields in ({"token_ttl": 60}, {"token_num_uses": 7}):
        world.spawn(world.asking("POST", PATH, fields))
    world.settle()
    assert (stored(world)["token_ttl"], stored(world)["token_num_uses"]) == (60, 7)


def test_many_writers_of_one_role_are_all_served_and_lose_nothing() -> None:
    """Each writes a field of its own; after all of them the role has every field."""
    world = Installation()
    world.must("POST", PATH, BOUND)
    before = stored(world)
    fields: dict[str, object] = {bound: [WRITTEN.get(bound, bound)] for bound in LISTS}
    fields |= {"token_ttl": 1000, "token_max_ttl": 1001}
    writes = [{name: value} for name, value in fields.items()] * 5
    asked = [world.spawn(world.asking("POST", PATH, body)) for body in writes[:40]]
    world.settle()
    assert {task.result().status for task in asked} == {204}
    assert stored(world) == {**before, **fields, "max_ttl": 1001}


@pytest.mark.parametrize(
    "name, nearest",
    [
        ("bound_resource_group_names", "bound_resource_groups"),
        ("bound_location", "bound_locations"),
        ("Bound_Locations", "bound_locations"),
        ("bound_subscriptions", "bound_subscription_ids"),
        ("bound_" + "x" * 10_000, "bound_"),
    ],
)
def test_an_unknown_bound_with_a_value_is_refused_with_the_nearest_name(name: str, nearest: str) -> None:
    """A role without it would admit more than was asked for, and existing clients do not show warnings."""
    world = Installation()
    reply = world.ask("POST", "auth/cloud/role/web", {"bound_subscription_ids": "a", name: ["rg"]})
    assert (reply.status, reply.codes) == (400, ["field_invalid"])
    assert f'"{nearest}' in reply.body["errors"][0]
    assert f'"{name}"' not in reply.body["errors"][0], "a name that a request made up may be a secret"
    assert world.ask("GET", "auth/cloud/role/web").status == 404


@pytest.mark.parametrize("empty", ["", [], None])
def test_an_unknown_bound_without_a_value_restricts_nothing_and_is_warned_about(empty: object) -> None:
    world = Installation()
    reply = world.must("POST", "auth/cloud/role/web", {"bound_subscription_ids": "a", "bound_location": empty})
    assert "bound_location" in reply.body["warnings"][0]


def test_many_unknown_bounds_are_refused_in_bounded_work() -> None:
    body = {f"bound_{number}": "x" for number in range(1000)}
    reply = Installation().ask("POST", "auth/cloud/role/web", body)
    assert reply.status == 400
    assert len(reply.body["errors"]) <= 8


def test_other_writes_know_no_bound() -> None:
    reply = Installation().ask("POST", "sys/policies/acl/x", {"policy": "", "bound_locations": "x"})
    assert (reply.status, reply.codes) == (400, ["field_invalid"])
