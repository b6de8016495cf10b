"""Roles of the token store."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.token_store.roles import TokenRole
from tests.installation import Installation
from tests.tokens import new_token, write_policy

DEFAULTS = {
    "name": "web",
    "token_bound_cidrs": [],
    "token_explicit_max_ttl": 0,
    "token_no_default_policy": False,
    "token_num_uses": 0,
    "token_period": 0,
    "token_type": "default",
    "allowed_policies": [],
    "allowed_policies_glob": [],
    "disallowed_policies": [],
    "disallowed_policies_glob": [],
    "orphan": False,
    "renewable": True,
    "path_suffix": "",
    "allowed_entity_aliases": [],
    "period": 0,
    "explicit_max_ttl": 0,
}


def test_a_role_is_written_read_listed_and_deleted() -> None:
    world = Installation()
    assert world.ask("GET", "auth/token/roles/web").status == 404
    assert world.ask("LIST", "auth/token/roles").status == 404
    assert world.ask("POST", "auth/token/roles/Web", {}).status == 204
    assert world.must("GET", "auth/token/roles/web").data == DEFAULTS
    assert world.must("LIST", "auth/token/roles").data == {"keys": ["web"]}
    assert world.ask("DELETE", "auth/token/roles/WEB").status == 204
    assert world.ask("GET", "auth/token/roles/web").status == 404
    assert world.ask("DELETE", "auth/token/roles/web").status == 204


def test_every_field_reads_back_and_what_is_not_given_stays() -> None:
    world = Installation()
    fields: dict[str, Any] = {
        "allowed_policies": "B,a",
        "allowed_policies_glob": ["dev-*"],
        "disallowed_policies": ["c"],
        "disallowed_policies_glob": "*-admin",
        "orphan": True,
        "renewable": False,
        "path_suffix": "edge",
        "token_explicit_max_ttl": "1h",
        "token_period": "1m",
        "token_num_uses": 7,
        "token_bound_cidrs": "10.0.0.0/8",
        "token_type": "default-service",
        "token_no_default_policy": True,
    }
    world.must("POST", "auth/token/roles/web", fields)
    world.must("POST", "auth/token/roles/web", {"token_num_uses": 8})
    assert world.must("GET", "auth/token/roles/web").data == {
        **fields,
        "name": "web",
        "allowed_policies": ["B", "a"],
        "disallowed_policies_glob": ["*-admin"],
        "token_explicit_max_ttl": 3600,
        "token_period": 60,
        "token_num_uses": 8,
        "token_bound_cidrs": ["10.0.0.0/8"],
        "allowed_entity_aliases": [],
        "period": 0,
        "explicit_max_ttl": 0,
    }


def test_deprecated_names_are_accepted_and_read_back() -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/web", {"period": 60, "explicit_max_ttl": 90, "bound_cidrs": "10.0.0.0/8"})
    reply = world.must("GET", "auth/token/roles/web").data
    assert (reply["period"], reply["explicit_max_ttl"], reply["bound_cidrs"]) == (60, 90, ["10.0.0.0/8"])
    assert (reply["token_period"], reply["token_explicit_max_ttl"]) == (60, 90)


@pytest.mark.parametrize("token_type", ["service", "batch", "default", "default-service", "default-batch"])
def test_every_type_of_token_reads_back(token_type: str) -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/web", {"token_type": token_type})
    assert world.must("GET", "auth/token/roles/web").data["token_type"] == token_type


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"token_type": "other"}, "field_invalid"),
        ({"token_type": "batch", "token_period": 60}, "fields_exclusive"),
        ({"token_type": "batch", "token_num_uses": 1}, "fields_exclusive"),
        ({"token_type": "default-batch", "token_num_uses": 1}, "fields_exclusive"),
        ({"token_period": "10000h"}, "ttl_exceeds_max"),
        ({"path_suffix": "a/b"}, "field_invalid"),
        ({"path_suffix": ".."}, "field_invalid"),
        ({"path_suffix": "a\n"}, "field_invalid"),
        ({"token_bound_cidrs": "nowhere"}, "field_invalid"),
    ],
)
def test_fields_that_make_no_sense_are_refused(fields: dict[str, object], code: str) -> None:
    world = Installation()
    assert world.refused("POST", "auth/token/roles/web", fields) == (400, code)
    assert world.ask("GET", "auth/token/roles/web").status == 404


@pytest.mark.parametrize(
    "field, most",
    [
        ("allowed_policies", 256),
        ("disallowed_policies", 256),
        ("allowed_policies_glob", 64),
        ("disallowed_policies_glob", 64),
    ],
)
def test_a_role_lists_so_many_policies_at_most(field: str, most: int) -> None:
    """All are compared with all policies of each token that is created with it."""
    world = Installation()
    policies = [f"p{number}" for number in range(most + 1)]
    world.must("POST", "auth/token/roles/web", {field: policies[:most]})
    assert world.refused("POST", "auth/token/roles/web", {field: ",".join(policies)}) == (400, "field_invalid")


@pytest.mark.parametrize("aliases", ["", [], None, [""]])
def test_there_are_no_entities_whose_aliases_a_role_could_allow(aliases: object) -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/web", {"allowed_entity_aliases": aliases})
    reply = world.ask("POST", "auth/token/roles/web", {"allowed_entity_aliases": "a"})
    assert (reply.status, reply.body["codes"]) == (400, ["field_invalid"])
    assert '"allowed_entity_aliases"' in reply.body["errors"][0]


def test_policies_of_a_role_count_in_any_spelling() -> None:
    """And are read back in the one that was written."""
    world = Installation()
    written = {"allowed_policies": ["App", "Ops"], "disallowed_policies": ["OPS"], "disallowed_policies_glob": ["Adm*"]}
    world.must("POST", "auth/token/roles/web", written)
    assert written.items() <= world.must("GET", "auth/token/roles/web").data.items()
    made = world.must("POST", "auth/token/create/web", {"policies": ["app"]}).body["auth"]
    assert made["policies"] == ["app", "default"]
    for policy in ("ops", "admin", "ADMIN"):
        assert world.refused("POST", "auth/token/create/web", {"policies": [policy]}) == (400, "policy_not_subset")


def test_a_role_with_an_invalid_name_is_refused() -> None:
    assert Installation().refused("POST", "auth/token/roles/-x", {}) == (400, "name_invalid")


def test_creating_a_role_needs_another_capability_than_changing_it() -> None:
    world = Installation()
    write_policy(world, "creator", ("auth/token/roles/*", ["create"]))
    token = new_token(world, policies=["creator"])
    world.must("POST", "auth/token/roles/web", {}, token)
    assert world.ask("POST", "auth/token/roles/web", {}, token).status == 403


@pytest.mark.parametrize(
    "rules, allowed, denied",
    [
        ({}, ["a", "default"], []),
        ({"allowed_policies": ("a",)}, ["a", "default"], ["b"]),
        ({"allowed_policies_glob": ("dev-*",)}, ["dev-", "dev-x", "default"], ["dev", "a-dev-x"]),
        ({"allowed_policies_glob": ("*-dev-*",)}, ["a-dev-b", "-dev-"], ["dev", "a-dev"]),
        ({"allowed_policies_glob": ("d?v", "[ab]")}, ["d?v", "[ab]"], ["dev", "a"]),
        ({"disallowed_policies": ("a", "default")}, ["b"], ["a", "default"]),
        ({"disallowed_policies_glob": ("*",)}, [], ["a", "default"]),
        ({"allowed_policies": ("a", "b"), "disallowed_policies": ("b",)}, ["a"], ["b"]),
    ],
)
def test_a_role_allows_policies(rules: dict[str, Any], allowed: list[str], denied: list[str]) -> None:
    role = TokenRole(**rules)
    assert [policy for policy in allowed + denied if role.allows(policy)] == allowed
    assert role.rules_policies is bool(rules)
