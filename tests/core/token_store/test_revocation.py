"""Revoking tokens."""

from __future__ import annotations

import pytest

from tests.installation import Installation
from tests.tokens import create_token, is_valid, new_token, write_policy


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_token_can_revoke_itself(method: str) -> None:
    world = Installation()
    token = new_token(world, policies=["default"])
    assert world.ask(method, "auth/token/revoke-self", None, token).status == 204
    assert world.refused("GET", "auth/token/lookup-self", token=token) == (403, "permission_denied")


def test_the_last_use_of_a_token_can_revoke_it() -> None:
    world = Installation()
    token = new_token(world, policies=["default"], num_uses=1)
    assert world.ask("POST", "auth/token/revoke-self", None, token).status == 204


def test_a_token_is_revoked_by_its_text() -> None:
    world = Installation()
    token = new_token(world)
    assert world.ask("PUT", "auth/token/revoke", {"token": token}).status == 204
    assert not is_valid(world, token)


def test_a_token_is_revoked_by_its_accessor() -> None:
    world = Installation()
    auth = create_token(world)
    assert world.ask("POST", "auth/token/revoke-accessor", {"accessor": auth["accessor"]}).status == 204
    assert not is_valid(world, auth["client_token"])


def test_revoking_an_unknown_token_succeeds() -> None:
    world = Installation()
    assert world.ask("POST", "auth/token/revoke", {"token": "unknown"}).status == 204
    reply = world.ask("POST", "auth/token/revoke-accessor", {"accessor": "unknown"})
    assert (reply.status, reply.body["warnings"]) == (200, ["no token with this accessor was found"])


def test_an_expired_token_can_be_revoked() -> None:
    world = Installation()
    token = new_token(world, ttl=10)
    world.advance(10)
    world.must("POST", "auth/token/revoke", {"token": token})
    assert len(world.keys("token/")) == 1


@pytest.mark.parametrize("path", ["revoke", "revoke-orphan", "revoke-accessor"])
def test_a_token_must_be_named(path: str) -> None:
    assert Installation().refused("POST", f"auth/token/{path}", {}) == (400, "field_required")


def test_orphans_are_made_only_with_sudo() -> None:
    world = Installation()
    write_policy(world, "revoker", ("auth/token/revoke-orphan", ["update"]))
    write_policy(world, "sudoer", ("auth/token/revoke-orphan", ["update", "sudo"]))
    victim = new_token(world)
    path, body = "auth/token/revoke-orphan", {"token": victim}
    assert world.refused("POST", path, body, new_token(world, policies=["revoker"])) == (400, "token_sudo_required")
    assert is_valid(world, victim)
    assert world.ask("POST", path, body, new_token(world, policies=["sudoer"])).status == 204
    assert not is_valid(world, victim)


def test_a_token_that_leaves_orphans_must_exist() -> None:
    assert Installation().refused("POST", "auth/token/revoke-orphan", {"token": "x"}) == (400, "token_not_found")


def test_a_token_that_has_left_orphans_is_unknown() -> None:
    """Although its entry may still be there."""
    world = Installation()
    auth = create_token(world)
    new_token(world, auth["client_token"])
    world.must("POST", "auth/token/revoke-orphan", {"token": auth["client_token"]})
    assert world.refused("POST", "auth/token/revoke-orphan", {"token": auth["client_token"]}) == (
        400,
        "token_not_found",
    )
    assert world.ask("POST", "auth/token/lookup-accessor", {"accessor": auth["accessor"]}).status == 400
    assert world.ask("POST", "auth/token/revoke-accessor", {"accessor": auth["accessor"]}).status == 204
