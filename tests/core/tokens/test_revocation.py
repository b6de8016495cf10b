"""Revoking tokens."""

from __future__ import annotations

import pytest

from ..service_world import ServiceWorld


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_token_can_revoke_itself(method: str) -> None:
    world = ServiceWorld()
    token = world.child(policies=["default"])
    assert world.ask(method, "auth/token/revoke-self", None, token) == (204, None)
    assert world.code("GET", "auth/token/lookup-self", token=token) == (403, "permission_denied")


def test_the_last_use_of_a_token_can_revoke_it() -> None:
    world = ServiceWorld()
    token = world.child(policies=["default"], num_uses=1)
    assert world.ask("POST", "auth/token/revoke-self", None, token) == (204, None)


def test_a_token_is_revoked_by_its_text() -> None:
    world = ServiceWorld()
    token = world.child()
    assert world.ask("PUT", "auth/token/revoke", {"token": token}) == (204, None)
    assert not world.is_good(token)


def test_a_token_is_revoked_by_its_accessor() -> None:
    world = ServiceWorld()
    auth = world.create()
    assert world.ask("POST", "auth/token/revoke-accessor", {"accessor": auth["accessor"]}) == (204, None)
    assert not world.is_good(auth["client_token"])


def test_revoking_an_unknown_token_succeeds() -> None:
    world = ServiceWorld()
    assert world.ask("POST", "auth/token/revoke", {"token": "unknown"}) == (204, None)
    status, reply = world.ask("POST", "auth/token/revoke-accessor", {"accessor": "unknown"})
    assert (status, reply["warnings"]) == (200, ["no token with this accessor was found"])


def test_an_expired_token_can_be_revoked() -> None:
    world = ServiceWorld()
    token = world.child(ttl=10)
    world.advance(10)
    world.must("POST", "auth/token/revoke", {"token": token})
    assert len(world.keys("token/")) == 1


@pytest.mark.parametrize("path", ["revoke", "revoke-orphan", "revoke-accessor"])
def test_a_token_must_be_named(path: str) -> None:
    assert ServiceWorld().code("POST", f"auth/token/{path}", {}) == (400, "field_required")


def test_orphans_are_made_only_with_sudo() -> None:
    world = ServiceWorld()
    world.policy("revoker", ("auth/token/revoke-orphan", ["update"]))
    world.policy("sudoer", ("auth/token/revoke-orphan", ["update", "sudo"]))
    victim = world.child()
    path, body = "auth/token/revoke-orphan", {"token": victim}
    assert world.code("POST", path, body, world.child(policies=["revoker"])) == (400, "token_sudo_required")
    assert world.is_good(victim)
    assert world.ask("POST", path, body, world.child(policies=["sudoer"])) == (204, None)
    assert not world.is_good(victim)


def test_a_token_that_leaves_orphans_must_exist() -> None:
    assert ServiceWorld().code("POST", "auth/token/revoke-orphan", {"token": "x"}) == (400, "token_not_found")


def test_a_token_that_has_left_orphans_is_unknown() -> None:
    """Although its entry may still be there."""
    world = ServiceWorld()
    auth = world.create()
    world.child(auth["client_token"])
    world.must("POST", "auth/token/revoke-orphan", {"token": auth["client_token"]})
    assert world.code("POST", "auth/token/revoke-orphan", {"token": auth["client_token"]}) == (400, "token_not_found")
    assert world.code("POST", "auth/token/lookup-accessor", {"accessor": auth["accessor"]})[0] == 400
    assert world.ask("POST", "auth/token/revoke-accessor", {"accessor": auth["accessor"]})[0] == 204
