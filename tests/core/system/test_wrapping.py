"""The routes of wrapping: an answer is shown once, to the holder of the token."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cloudid_core.catalog import CATALOG
from cloudid_core.messages.operations import METHODS
from cloudid_core.mounts import mount_table
from cloudid_core.tokens.encoding import LENGTH
from tests.installation import ROOT, Installation
from tests.tokens import is_valid, new_token, write_policy

UNWRAP = "sys/wrapping/unwrap"
INVALID = (400, "wrapping_token_invalid")


def wrap(world: Installation, body: object, ttl: str = "60", token: str = ROOT) -> Any:
    return world.must("POST", "sys/wrapping/wrap", body, token, x_service_wrap_ttl=ttl).body["wrap_info"]


def test_no_name_in_a_wrapped_body_is_unknown() -> None:
    """An answer that warned of each of them could not be told from the body."""
    world = Installation()
    token = wrap(world, {"any": 1, "thing": 2})["token"]
    assert world.must("POST", UNWRAP, {"token": token}).body["warnings"] is None


def test_a_body_is_wrapped_and_shown_once() -> None:
    world = Installation()
    token = wrap(world, {"secret": "c4n4ry"})["token"]
    assert len(token) == LENGTH
    assert world.must("POST", UNWRAP, {"token": token}).data == {"secret": "c4n4ry"}
    for _ in range(2):
        reply = world.ask("POST", UNWRAP, {"token": token})
        assert (reply.status, reply.code) == INVALID
        assert reply.body["errors"] == ["wrapping token is not valid or does not exist"]


def test_a_wrapping_token_can_be_the_token_of_the_request() -> None:
    world = Installation()
    assert world.must("PUT", UNWRAP, None, wrap(world, {"a": 1})["token"]).data == {"a": 1}


def test_an_unwrapped_answer_has_the_envelope_of_the_original() -> None:
    world = Installation()
    write_policy(world, "reader", ("a", ["read"]))
    info = world.ask("GET", "sys/policies/acl/reader", x_service_wrap_ttl="1m").body["wrap_info"]
    assert info["creation_path"] == "sys/policies/acl/reader"
    shown, plain = world.must("POST", UNWRAP, {"token": info["token"]}), world.must("GET", "sys/policies/acl/reader")
    assert shown.body["request_id"]
    assert {**shown.body, "request_id": ""} == {**plain.body, "request_id": ""}
    assert shown.response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("route", ["unwrap", "lookup", "rewrap"])
@pytest.mark.parametrize("token", ["", "cs." + "0" * 64, "root", "x" * 5000, "ü"])
def test_a_token_that_is_no_wrapping_token_is_refused(route: str, token: str) -> None:
    world = Installation()
    assert world.refused("POST", f"sys/wrapping/{route}", {"token": token}, token="") == INVALID
    assert is_valid(world, ROOT)


def test_a_token_that_has_expired_is_not_valid() -> None:
    world = Installation()
    token = wrap(world, {"a": 1}, "10")["token"]
    world.advance(10)
    for route in ("unwrap", "lookup", "rewrap"):
        assert world.refused("POST", f"sys/wrapping/{route}", {"token": token}) == INVALID
    world.pass_time(3)
    assert not world.keys("wrapped/")


def test_a_look_up_tells_where_an_answer_is_from_and_leaves_it() -> None:
    """It needs no other token."""
    world = Installation()
    info = wrap(world, {"a": 1})
    for _ in range(2):
        told = world.must("POST", "sys/wrapping/lookup", {"token": info["token"]}, token="").data
        assert told == {
            "creation_ttl": 60,
            "creation_time": info["creation_time"],
            "creation_path": "sys/wrapping/wrap",
        }
    assert world.must("POST", UNWRAP, {"token": info["token"]}).data == {"a": 1}


def test_a_new_token_takes_the_place_of_the_old_one() -> None:
    world = Installation()
    old = wrap(world, {"a": 1})["token"]
    world.advance(59)
    new = world.must("POST", "sys/wrapping/rewrap", {"token": old}).body["wrap_info"]
    assert (new["ttl"], new["creation_path"]) == (60, "sys/wrapping/wrap")
    assert world.refused("POST", UNWRAP, {"token": old}) == INVALID
    world.advance(59)
    assert world.must("POST", UNWRAP, {"token": new["token"]}).data == {"a": 1}


def test_what_was_wrapped_again_still_ends_by_itself() -> None:
    world = Installation()
    response = world.ask("POST", "auth/token/create", {"ttl": "1h"}, x_service_wrap_ttl="60")
    old = response.body["wrap_info"]
    world.advance(50)
    world.must("POST", "sys/wrapping/rewrap", {"token": old["token"]})
    world.advance(50)
    world.pass_time(3)
    by_accessor = {"accessor": old["wrapped_accessor"]}
    world.must("POST", "auth/token/lookup-accessor", by_accessor)
    world.advance(20)
    world.pass_time(3)
    assert world.ask("POST", "auth/token/lookup-accessor", by_accessor).status >= 400
    assert not world.keys("child/")
    assert not [key for key in world.keys("due/") if "signing-key" not in key]


def test_a_wrapping_token_opens_nothing_else_and_is_not_used_up_by_trying() -> None:
    world = Installation()
    token = wrap(world, {"a": 1})["token"]
    for path in ("auth/token/lookup-self", "sys/policies/acl/default"):
        assert world.refused("GET", path, token=token) == (403, "permission_denied")
    assert world.must("POST", UNWRAP, {"token": token}).data == {"a": 1}


def test_wrapping_without_a_time_is_refused() -> None:
    assert Installation().refused("POST", "sys/wrapping/wrap", {"a": 1}) == (400, "malformed_request")


@pytest.mark.parametrize(
    "limits, ttl, status",
    [
        ({"min_wrapping_ttl": "1m"}, "", 403),
        ({"min_wrapping_ttl": "1m"}, "30", 403),
        ({"min_wrapping_ttl": "1m"}, "60", 200),
        ({"max_wrapping_ttl": "1m"}, "61", 403),
        ({"max_wrapping_ttl": "1m"}, "60", 200),
        ({"max_wrapping_ttl": "1m"}, "", 403),
        ({}, "60", 200),
    ],
)
def test_a_policy_limits_the_wrapping_time(limits: dict[str, str], ttl: str, status: int) -> None:
    """Under either limit an answer must be wrapped."""
    world = Installation()
    rule = {"path": {"sys/policies/acl/default": {"capabilities": ["read"], **limits}}}
    world.must("POST", "sys/policies/acl/wrapping", {"policy": msgspec.json.encode(rule).decode()})
    token = new_token(world, policies=["wrapping"])
    assert world.ask("GET", "sys/policies/acl/default", token=token, x_service_wrap_ttl=ttl).status == status


def test_refusals_and_empty_answers_are_not_wrapped() -> None:
    world = Installation()
    for method, path, status in (
        ("GET", "sys/policies/acl/nothing", 404),
        ("DELETE", "sys/policies/acl/nothing", 204),
        ("GET", "sys/health", 400),
    ):
        reply = world.ask(method, path, x_service_wrap_ttl="60")
        assert (reply.status, b"wrap_info" in reply.response.body) == (status, False)
    assert not world.keys("wrapped/")


def public_routes(world: Installation) -> list[tuple[str, str]]:
    """Method and path of every route that needs no token, but for those whose answers are tokens."""
    mounts = world.perform(mount_table(world.context.records)).record
    return [
        (METHODS[route.operation][0], f"{mount.path}/{route.path}")
        for mount in mounts.live
        for route in CATALOG.of(mount).routes.routes
        if route.public and not route.gives_token
    ]


def test_a_public_route_wraps_nothing_for_those_without_a_good_token() -> None:
    """Otherwise anybody could fill the store."""
    world = Installation()
    wrapping_token = wrap(world, {"a": 1})["token"]
    before = world.keys("")
    routes = public_routes(world)
    assert ("POST", "sys/wrapping/lookup") in routes
    for method, path in routes:
        for token in ("", "guess", wrapping_token):
            reply = world.ask(method, path, {"token": wrapping_token}, token, x_vault_wrap_ttl="60")
            assert (path, reply.status, reply.code) == (path, 400, "wrapping_not_allowed")
    assert world.keys("") == before


def test_a_public_route_is_wrapped_for_a_good_token() -> None:
    world = Installation()
    described = wrap(world, {"a": 1})
    info = world.must("POST", "sys/wrapping/lookup", {"token": described["token"]}, x_vault_wrap_ttl="60").body
    told = world.must("POST", UNWRAP, {"token": info["wrap_info"]["token"]}, token="").data
    assert told["creation_path"] == "sys/wrapping/wrap"


def test_what_is_wrapped_is_sealed() -> None:
    world = Installation()
    wrap(world, {"a": "c4n4ry"})
    [key] = world.keys("wrapped/")
    entry = world.store.read(key)
    assert entry is not None
    assert b"c4n4ry" not in entry.value


@pytest.mark.parametrize(
    "path", ["sys/seal-status", "sys/health", "sys/leader", "sys/init", "sys/metrics", "sys/internal/specs/openapi"]
)
def test_an_answer_without_an_envelope_cannot_be_wrapped_and_that_is_said(path: str) -> None:
    """Otherwise a caller who asked for a wrapped answer would get a bare one."""
    world = Installation()
    before = world.keys("")
    assert world.refused("GET", path, x_vault_wrap_ttl="60") == (400, "wrapping_not_allowed")
    assert world.keys("") == before
