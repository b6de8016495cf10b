"""Creating tokens with tokens."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.errors import Code
from tests.installation import ROOT, Installation
from tests.tokens import create_token, is_valid, look_up_self, new_token, write_policy

CREATE = "auth/token/create"


def test_a_child_has_everything_that_was_requested() -> None:
    world = Installation()
    write_policy(world, "dev")
    reply = world.must(
        "POST",
        CREATE,
        {"policies": ["DEV"], "meta": {"a": "b"}, "ttl": "1h", "display_name": "ci", "num_uses": 5, "renewable": False},
    ).body
    auth = reply["auth"]
    assert reply["data"] is None
    assert reply["warnings"] is None
    assert auth == {
        "client_token": auth["client_token"],
        "accessor": auth["accessor"],
        "policies": ["default", "dev"],
        "token_policies": ["default", "dev"],
        "metadata": {"a": "b"},
        "lease_duration": 3600,
        "renewable": False,
        "entity_id": "",
        "token_type": "service",
        "orphan": False,
        "mfa_requirement": None,
        "num_uses": 5,
    }
    assert look_up_self(world, auth["client_token"])["display_name"] == "token-ci"


def test_a_child_has_by_default_its_parents_policies_and_the_ttl_of_the_mount() -> None:
    world = Installation()
    write_policy(world, "maker", (CREATE, ["update"]))
    auth = create_token(world, new_token(world, policies=["maker"]))
    assert auth["policies"] == ["default", "maker"]
    assert (auth["lease_duration"], auth["renewable"], auth["metadata"]) == (2_764_800, True, None)


@pytest.mark.parametrize(
    "most, more",
    [
        ({"meta": {str(number): "x" for number in range(64)}}, {"meta": {str(number): "x" for number in range(65)}}),
        ({"meta": {"n" * 512: "v" * 512}}, {"meta": {"n": "v" * 513}}),
        ({"meta": ["n=" + "v" * 512]}, {"meta": [f"{'n' * 513}=v"]}),
        ({"policies": [f"p{number}" for number in range(256)]}, {"policies": [f"p{number}" for number in range(257)]}),
    ],
)
def test_what_each_use_of_a_token_reads_and_records_is_bounded(most: dict[str, Any], more: dict[str, Any]) -> None:
    """A token with a megabyte of metadata would have each of its requests write megabytes to each audit device."""
    world = Installation()
    assert is_valid(world, new_token(world, **most))
    assert world.refused("POST", CREATE, more) == (400, "field_invalid")


@pytest.mark.parametrize("name", ["ttl", "lease"])
def test_the_old_name_of_the_life_is_understood(name: str) -> None:
    assert create_token(Installation(), policies=["default"], **{name: "90s"})["lease_duration"] == 90


def test_a_life_beyond_the_maximum_is_capped_with_a_warning() -> None:
    reply = Installation(max_lease_ttl=100).must("POST", CREATE, {"policies": ["default"], "ttl": 101}).body
    assert reply["auth"]["lease_duration"] == 100
    assert len(reply["warnings"]) == 1


def test_a_policy_that_does_not_exist_causes_a_warning() -> None:
    reply = Installation().must("POST", CREATE, {"policies": ["nobody", "default"]}).body
    assert reply["warnings"] == ['Policy "nobody" does not exist']


def test_root_creates_root_that_never_expires() -> None:
    world = Installation()
    auth = create_token(world)
    assert (auth["policies"], auth["lease_duration"], auth["renewable"]) == (["root"], 0, False)
    assert look_up_self(world, auth["client_token"])["expire_time"] is None


def test_an_expiring_root_token_creates_none_that_does_not_expire() -> None:
    world = Installation()
    root = new_token(world, ttl="1h")
    assert world.refused("POST", CREATE, {}, root) == (400, "ttl_exceeds_max")
    assert create_token(world, root, ttl="2h")["lease_duration"] == 7200


@pytest.mark.parametrize("fields", [{"ttl": 60}, {"period": 60}, {"explicit_max_ttl": 60}])
def test_a_root_token_can_be_made_to_expire(fields: dict[str, object]) -> None:
    auth = create_token(Installation(), ROOT, "create", **fields)
    assert (auth["policies"], auth["lease_duration"], auth["renewable"]) == (["root"], 60, True)


@pytest.mark.parametrize("fields", [{"id": "mine"}, {"no_parent": True}, {"period": "1h"}])
@pytest.mark.parametrize("path", ["create", "create-orphan", "create/web"])
def test_some_fields_need_sudo_at_the_path(fields: dict[str, object], path: str) -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/web", {})
    write_policy(world, "maker", (f"auth/token/{path}", ["update"]))
    write_policy(world, "sudoer", (f"auth/token/{path}", ["update", "sudo"]))
    makers = {name: new_token(world, policies=[name]) for name in ("maker", "sudoer")}
    assert world.refused("POST", f"auth/token/{path}", fields, makers["maker"]) == (400, "token_sudo_required")
    create_token(world, makers["sudoer"], path, **fields)


def test_a_child_cannot_have_more_policies_than_its_parent_without_sudo() -> None:
    world = Installation()
    write_policy(world, "maker", (CREATE, ["update"]))
    maker = new_token(world, policies=["maker"])
    assert world.refused("POST", CREATE, {"policies": ["other"]}, maker) == (400, "policy_not_subset")
    assert world.refused("POST", CREATE, {"policies": ["root"]}, maker) == (400, "policy_not_subset")


def test_an_orphan_outlives_its_maker_and_a_child_does_not() -> None:
    world = Installation()
    write_policy(world, "maker", ("auth/token/*", ["update", "sudo"]))
    world.must("POST", "auth/token/roles/orphans", {"orphan": True})
    maker = new_token(world, policies=["maker"])
    orphans = [
        create_token(world, maker, no_parent=True),
        create_token(world, maker, "create-orphan"),
        create_token(world, maker, "create/orphans"),
    ]
    child = create_token(world, maker)
    assert [auth["orphan"] for auth in (*orphans, child)] == [True, True, True, False]
    world.must("POST", "auth/token/revoke", {"token": maker})
    assert [is_valid(world, auth["client_token"]) for auth in (*orphans, child)] == [True, True, True, False]


@pytest.mark.parametrize("path", ["create", "create-orphan", "create/orphans"])
def test_what_a_bound_token_makes_is_bound_as_it_is(path: str) -> None:
    """An orphan too: else a stolen token would be good everywhere, by way of one that it makes."""
    world = Installation()
    world.must("POST", "auth/token/roles/bound", {"token_bound_cidrs": "10.0.0.0/8"})
    world.must("POST", "auth/token/roles/orphans", {"orphan": True})
    write_policy(world, "maker", ("auth/token/*", ["create", "update", "sudo"]))
    maker = create_token(world, at="create/bound", policies=["maker", "default"])["client_token"]
    made = world.must("POST", f"auth/token/{path}", {}, maker, "10.0.0.1").auth["client_token"]
    answers = [world.ask("GET", "auth/token/lookup-self", None, made, at).status for at in ("10.0.0.2", "192.0.2.1")]
    assert answers == [200, 403]


def test_a_child_is_bound_to_the_addresses_that_both_its_parent_and_its_role_allow() -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/here", {"token_bound_cidrs": "127.0.0.1/32"})
    world.must("POST", "auth/token/roles/anywhere", {"token_bound_cidrs": "0.0.0.0/0"})
    world.must("POST", "auth/token/roles/elsewhere", {"token_bound_cidrs": "192.0.2.0/24"})
    write_policy(world, "maker", ("auth/token/*", ["create", "update", "sudo"]))
    maker = create_token(world, at="create/here", policies=["maker", "default"])["client_token"]
    child = world.must("POST", "auth/token/create/anywhere", {}, maker, "127.0.0.1").auth["client_token"]
    looked_up = [
        world.ask("GET", "auth/token/lookup-self", None, child, at).status for at in ("127.0.0.1", "192.0.2.1")
    ]
    assert looked_up == [200, 403]
    assert world.refused("POST", "auth/token/create/elsewhere", {}, maker, "127.0.0.1") == (400, "field_invalid")


@pytest.mark.parametrize("is_orphan", [False, True])
def test_a_role_decides_whether_its_tokens_are_orphans_whatever_the_request_says(is_orphan: bool) -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/tasks", {"orphan": is_orphan})
    write_policy(world, "maker", ("auth/token/create/tasks", ["update", "sudo"]))
    parent = new_token(world, policies=["maker"])
    reply = world.must("POST", "auth/token/create/tasks", {"no_parent": True}, parent)
    assert reply.auth["orphan"] is is_orphan
    assert any("no_parent" in warning for warning in reply.body["warnings"] or ()) is not is_orphan
    world.must("POST", "auth/token/revoke", {"token": parent})
    assert is_valid(world, reply.auth["client_token"]) is is_orphan


def test_every_caller_who_may_use_the_path_can_create_an_orphan() -> None:
    world = Installation()
    write_policy(world, "maker", ("auth/token/create-orphan", ["update"]))
    assert create_token(world, new_token(world, policies=["maker"]), "create-orphan")["orphan"]


def test_a_token_with_limited_uses_cannot_have_children() -> None:
    world = Installation()
    for uses in (1, 2):
        token = new_token(world, num_uses=uses)
        assert world.refused("POST", CREATE, {}, token) == (400, "token_restricted")


def test_a_text_can_be_chosen() -> None:
    world = Installation()
    assert create_token(world, id="my-own-token")["client_token"] == "my-own-token"
    assert look_up_self(world, "my-own-token")["id"] == "my-own-token"


@pytest.mark.parametrize("chosen", ["with.dot", "cs.x", "cb.x", "with blank", "ü", "x" * 129, "root"])
def test_a_text_that_cannot_be_chosen(chosen: str) -> None:
    """It would look like one of ours, or is in use."""
    assert Installation().refused("POST", CREATE, {"id": chosen}) == (400, "field_invalid")


def test_a_chosen_text_can_be_used_again_when_all_dependants_are_gone() -> None:
    """Its children must not become those of the next token with this text."""
    world = Installation()
    child = new_token(world, new_token(world, id="mine"))
    world.must("POST", "auth/token/revoke", {"token": "mine"})
    assert world.refused("POST", CREATE, {"id": "mine"}) == (400, "field_invalid")
    world.pass_time(2)
    new_token(world, id="mine")
    assert not is_valid(world, child)


@pytest.mark.parametrize("seed", range(4))
def test_a_text_is_given_once_however_many_ask(seed: int) -> None:
    world = Installation(seed)
    tasks = [world.spawn(world.asking("POST", CREATE, {"id": "mine"})) for _ in range(3)]
    world.settle()
    assert sorted(task.result().status for task in tasks) == [200, 400, 400]


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "default"},
        {"ttl": "soon"},
        {"ttl": -1},
        {"num_uses": -1},
        {"meta": "x"},
        {"renewable": "maybe"},
        {"policies": {"a": 1}},
    ],
)
def test_requests_that_make_no_sense_are_refused(fields: dict[str, object]) -> None:
    assert Installation().refused("POST", CREATE, fields) == (400, "field_invalid")


def test_unknown_fields_cause_a_warning() -> None:
    reply = Installation().must("POST", CREATE, {"tll": 1}).body
    assert reply["warnings"] == ["Endpoint ignored these unrecognized parameters: [tll]"]


def test_a_role_overrides_the_request() -> None:
    world = Installation()
    rules = {
        "allowed_policies": "dev",
        "token_explicit_max_ttl": 100,
        "token_num_uses": 3,
        "token_bound_cidrs": "192.0.2.0/24",
        "renewable": False,
        "path_suffix": "edge",
        "token_type": "service",
        "token_no_default_policy": True,
    }
    world.must("POST", "auth/token/roles/web", rules)
    auth = create_token(world, at="create/Web", explicit_max_ttl=200, num_uses=9, type="batch")
    assert (auth["policies"], auth["lease_duration"], auth["num_uses"]) == (["dev"], 100, 3)
    assert (auth["renewable"], auth["token_type"]) == (False, "service")
    reply = world.must("POST", "auth/token/lookup", {"token": auth["client_token"]}).data
    assert (reply["role"], reply["path"], reply["explicit_max_ttl"]) == ("web", "auth/token/create/web/edge", 100)
    assert reply["bound_cidrs"] == ["192.0.2.0/24"]


def test_a_request_can_be_stricter_than_the_role() -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/web", {"token_explicit_max_ttl": 100, "token_num_uses": 3, "token_period": 50})
    auth = create_token(world, at="create/web", explicit_max_ttl=10, num_uses=2, period=5)
    assert (auth["lease_duration"], auth["num_uses"]) == (5, 2)


def test_a_role_makes_periodic_tokens_without_sudo() -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/web", {"token_period": 50})
    write_policy(world, "maker", ("auth/token/create/web", ["update"]))
    auth = create_token(world, new_token(world, policies=["maker"]), "create/web")
    assert auth["lease_duration"] == 50


def test_a_role_that_does_not_exist_is_refused() -> None:
    assert Installation().refused("POST", "auth/token/create/nobody", {}) == (400, "role_not_found")


def test_a_child_is_bound_to_where_its_parent_is() -> None:
    """Otherwise a child or an orphan would be a way around the restriction."""
    world = Installation()
    world.must("POST", "auth/token/roles/bound", {"token_bound_cidrs": "192.0.2.0/24"})
    parent = create_token(world, at="create/bound")["client_token"]
    for fields in ({}, {"no_parent": True}):
        token = new_token(world, parent, **fields)
        answers = [
            world.ask("GET", "auth/token/lookup-self", None, token, at).status for at in ("192.0.2.1", "10.0.0.1")
        ]
        assert answers == [200, 403]


def test_the_root_token_has_children_like_any_other() -> None:
    world = Installation()
    child = new_token(world, ROOT)
    world.must("POST", "auth/token/revoke-self")
    assert not is_valid(world, child)


@pytest.mark.parametrize("alias, answer", [("", 200), (None, 200), ("web", 400)])
def test_an_entity_alias_is_nothing_while_it_is_empty(alias: str | None, answer: int) -> None:
    """Existing clients always send the field."""
    reply = Installation().ask("POST", CREATE, {"policies": ["default"], "entity_alias": alias})
    assert reply.status == answer
    assert reply.status == 400 or reply.body["warnings"] is None


@pytest.mark.parametrize("policies", [["default"], ["default", "default"], []])
def test_no_default_policy_leaves_default_out_even_where_it_is_listed(policies: list[str]) -> None:
    world = Installation()
    parent = new_token(world, policies=["default", "maker"])
    write_policy(world, "maker", (CREATE, ["update"]))
    assert "default" not in create_token(world, parent, policies=policies, no_default_policy=True)["policies"]
    world.must("POST", "auth/token/roles/r", {"token_no_default_policy": True, "allowed_policies": ["default", "x"]})
    assert "default" not in create_token(world, at="create/r", policies=policies)["policies"]


def test_a_lease_and_a_child_are_refused_to_a_token_of_few_uses_in_their_own_words() -> None:
    assert "lease" in Code.TOKEN_USED_UP.text
    assert "lease" not in Code.TOKEN_RESTRICTED.text
