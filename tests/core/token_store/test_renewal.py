"""Renewing tokens: what counts is what holds now."""

from __future__ import annotations

from typing import Any

import pytest

from tests.installation import ROOT, Installation
from tests.logins import configure_logins, log_in
from tests.tokens import create_token, is_valid, look_up_self, new_token

RENEW = "auth/token/renew-self"


def renewed(world: Installation, token: str, increment: object = None) -> Any:
    """The answer to a renewal by the token itself."""
    return world.must("PUT", RENEW, {"increment": increment}, token).body


def test_a_renewal_returns_the_token_and_its_new_ttl() -> None:
    world = Installation()
    created = create_token(world, ttl="1h", policies=["default"])
    world.advance(1000)
    reply = renewed(world, created["client_token"])
    assert reply["auth"] == created
    assert reply["warnings"] is None
    assert look_up_self(world, created["client_token"])["ttl"] == 3600


@pytest.mark.parametrize("increment, ttl", [(0, 3600), (None, 3600), ("", 3600), ("10m", 600), (7200, 7200)])
def test_the_increment_is_counted_from_now(increment: object, ttl: int) -> None:
    world = Installation()
    token = new_token(world, ttl="1h")
    world.advance(60)
    assert renewed(world, token, increment)["auth"]["lease_duration"] == ttl
    assert look_up_self(world, token)["ttl"] == ttl


def test_no_renewal_goes_past_the_maximum_of_the_mount() -> None:
    world = Installation(max_lease_ttl=1000)
    token = new_token(world, ttl=600, policies=["default"])
    world.advance(500)
    reply = renewed(world, token)
    assert reply["auth"]["lease_duration"] == 500
    assert "exceeded the effective maximum" in reply["warnings"][0]
    world.advance(499.5)
    assert world.refused("POST", RENEW, {}, token) == (400, "token_past_max_ttl")


def test_no_renewal_goes_past_the_explicit_maximum_even_of_a_periodic_token() -> None:
    world = Installation()
    token = new_token(world, period=100, explicit_max_ttl=250)
    for left in (100, 100, 52):
        assert renewed(world, token, 10**6)["auth"]["lease_duration"] == left
        world.advance(min(left, 99))
    assert not is_valid(world, token)


def test_a_periodic_token_lives_as_long_as_it_is_renewed() -> None:
    world = Installation(max_lease_ttl=200)
    token = new_token(world, period=100)
    for _ in range(10):
        world.advance(99)
        assert renewed(world, token, 5)["auth"]["lease_duration"] == 100


def test_an_expired_token_cannot_be_renewed() -> None:
    world = Installation()
    token = new_token(world, ttl=10)
    world.advance(10)
    assert world.refused("POST", RENEW, {}, token) == (403, "permission_denied")
    assert world.refused("POST", "auth/token/renew", {"token": token}) == (400, "token_not_found")


@pytest.mark.parametrize("fields", [{"renewable": False}, {"policies": ["root"]}])
def test_a_token_that_is_not_renewable_says_so(fields: dict[str, Any]) -> None:
    world = Installation()
    auth = create_token(world, **{"policies": ["default"], **fields})
    assert not auth["renewable"]
    assert world.refused("POST", RENEW, {}, auth["client_token"]) == (400, "token_not_renewable")


def test_the_root_token_is_not_renewable() -> None:
    assert Installation().refused("POST", RENEW, {}, ROOT) == (400, "token_not_renewable")


def test_the_last_use_of_a_token_cannot_renew_it() -> None:
    world = Installation()
    token = new_token(world, num_uses=1, policies=["default"])
    assert world.refused("POST", RENEW, {}, token) == (403, "permission_denied")


def test_a_token_can_renew_another_one() -> None:
    world = Installation()
    token = new_token(world, ttl=60)
    reply = world.must("PUT", "auth/token/renew", {"token": token, "increment": "5m"}).body
    assert (reply["auth"]["client_token"], reply["auth"]["lease_duration"]) == (token, 300)


def test_a_renewal_by_accessor_does_not_return_the_text() -> None:
    world = Installation()
    auth = create_token(world, ttl=60)
    reply = world.must("POST", "auth/token/renew-accessor", {"accessor": auth["accessor"], "increment": 90}).auth
    assert reply == {**auth, "client_token": "", "lease_duration": 90}


@pytest.mark.parametrize(
    "path, body, code",
    [
        ("renew", {"token": "x"}, "token_not_found"),
        ("renew-accessor", {"accessor": "x"}, "token_not_found"),
        ("renew", {}, "field_required"),
        ("renew-accessor", {}, "field_required"),
        ("renew-self", {"increment": -1}, "field_invalid"),
    ],
)
def test_an_invalid_renewal_is_refused(path: str, body: dict[str, object], code: str) -> None:
    assert Installation().refused("POST", f"auth/token/{path}", body) == (400, code)


def test_the_present_settings_of_a_role_apply() -> None:
    """Of a role of the authentication method: TTL, maximum and period; the explicit maximum stays as it was."""
    world = Installation()
    machine = configure_logins(world, token_ttl=100, token_max_ttl=1000, token_explicit_max_ttl=5000)
    token = log_in(world, machine)["client_token"]
    world.must("POST", "auth/cloud/role/dev", {"token_ttl": 200, "token_explicit_max_ttl": 0})
    assert renewed(world, token)["auth"]["lease_duration"] == 200
    world.must("POST", "auth/cloud/role/dev", {"token_ttl": 0, "token_max_ttl": 150})
    assert renewed(world, token)["auth"]["lease_duration"] == 150
    world.must("POST", "auth/cloud/role/dev", {"token_period": 300, "token_max_ttl": 0})
    assert renewed(world, token)["auth"]["lease_duration"] == 300
    assert look_up_self(world, token)["period"] == 300
    assert look_up_self(world, token)["explicit_max_ttl"] == 5000


def test_the_present_period_of_a_token_role_applies() -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/r", {"token_period": 100})
    token = create_token(world, at="create/r")["client_token"]
    world.must("POST", "auth/token/roles/r", {"token_period": 200})
    assert renewed(world, token)["auth"]["lease_duration"] == 200


def test_a_token_of_a_role_that_is_gone_cannot_be_renewed() -> None:
    world = Installation()
    tokens = [log_in(world, configure_logins(world))["client_token"]]
    world.must("POST", "auth/token/roles/r", {})
    tokens.append(create_token(world, at="create/r", policies=["default"])["client_token"])
    world.must("DELETE", "auth/cloud/role/dev")
    world.must("DELETE", "auth/token/roles/r")
    for token in tokens:
        assert world.refused("POST", RENEW, {}, token) == (400, "role_not_found")
        assert is_valid(world, token)


@pytest.mark.parametrize("seed", range(6))
def test_a_renewal_rests_on_the_role_to_the_end(seed: int) -> None:
    """Whatever the order: no renewal gives what a role no longer allows when it is written."""
    world = Installation(seed)
    token = log_in(world, configure_logins(world, token_ttl="1h"))["client_token"]
    renewal = world.spawn(world.asking("POST", RENEW, {}, token))
    change = world.spawn(world.asking("POST", "auth/cloud/role/dev", {"token_max_ttl": "5m", "token_ttl": "5m"}))
    world.settle()
    assert change.result().status == 204
    if look_up_self(world, token)["ttl"] > 300:
        assert world.last_commit(renewal.name) < world.last_commit(change.name)


@pytest.mark.parametrize("seed", range(6))
def test_a_token_that_is_revoked_meanwhile_stays_so(seed: int) -> None:
    world = Installation(seed)
    token = new_token(world)
    world.spawn(world.asking("POST", RENEW, {}, token))
    world.spawn(world.asking("POST", "auth/token/revoke", {"token": token}))
    world.settle()
    assert not is_valid(world, token)
    assert len(world.keys("token/")) == 1
