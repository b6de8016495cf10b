"""Requests beyond a quota are refused, for each source by itself."""

from __future__ import annotations

from cloudid_core.quotas.rate_limit import READ_AGAIN
from cloudid_core.store import keys
from tests.installation import HOME, Installation

REFUSED = (429, "rate_limit_exceeded")


def limited(**fields: object) -> Installation:
    world = Installation()
    world.must("POST", "sys/quotas/rate-limit/login", {"path": "auth/cloud", "rate": 2, "interval": "1m", **fields})
    return world


def status(world: Installation, address: str = HOME, path: str = "auth/cloud/login") -> int:
    return world.ask("POST", path, {}, token="", address=address).status


def test_a_source_makes_so_many_requests_in_an_interval() -> None:
    world = limited()
    assert [status(world) for _ in range(3)] == [400, 400, 429]
    reply = world.ask("POST", "auth/cloud/login", {}, token="")
    assert (reply.status, reply.code) == REFUSED
    assert 1 <= int(reply.response.headers["retry-after"]) <= 30
    world.advance(30)
    assert [status(world) for _ in range(2)] == [400, 429]


def test_other_sources_and_paths_are_not_concerned() -> None:
    world = limited()
    assert [status(world) for _ in range(3)][-1] == 429
    assert status(world, "192.0.2.77") == 400
    assert world.ask("GET", "sys/mounts").status == 200


def test_the_addresses_of_a_subnet_are_one_source() -> None:
    world = limited()
    assert [status(world, f"2001:db8::{number}") for number in range(3)] == [400, 400, 429]
    assert status(world, "2001:db8:0:1::1") == 400


def test_a_source_that_made_too_many_is_blocked() -> None:
    world = limited(block_interval="10m")
    assert [status(world) for _ in range(3)] == [400, 400, 429]
    world.advance(599)
    assert status(world) == 429
    world.advance(1)
    assert status(world) == 400


def test_the_lowest_rate_says_when_to_come_again() -> None:
    world = limited(rate=1e-6, interval="8760h")
    assert [status(world) for _ in range(2)] == [400, 429]
    assert int(world.ask("POST", "auth/cloud/login", {}, token="").response.headers["retry-after"]) > 31e12


def test_requests_without_a_good_token_count() -> None:
    """They are refused before anybody looks at the token."""
    world = limited(path="sys/mounts")
    assert [world.ask("GET", "sys/mounts", token="guess").status for _ in range(3)] == [403, 403, 429]


def test_a_quota_of_a_role_counts_its_logins() -> None:
    world = limited(path="auth/cloud/login", role="dev")
    dev = [world.ask("POST", "auth/cloud/login", {"role": "dev"}, token="").status for _ in range(3)]
    other = [world.ask("POST", "auth/cloud/login", {"role": "prod"}, token="").status for _ in range(3)]
    assert (dev, other) == ([400, 400, 429], [400, 400, 400])


def test_a_change_counts_at_once() -> None:
    world = limited()
    assert [status(world) for _ in range(3)][-1] == 429
    world.must("DELETE", "sys/quotas/rate-limit/login")
    assert status(world) == 400


def test_a_change_by_another_node_counts_soon() -> None:
    world = limited()
    assert [status(world) for _ in range(3)][-1] == 429
    world.store.commit({}, {}, (keys.QUOTAS,))
    assert status(world) == 429
    world.advance(READ_AGAIN)
    assert status(world) == 400


def test_a_damaged_record_stops_nobody_and_can_be_replaced() -> None:
    world = limited()
    world.store.commit({}, {keys.QUOTAS: b"junk"}, ())
    world.advance(READ_AGAIN)
    assert [status(world) for _ in range(3)] == [400, 400, 400]
    world.must("POST", "sys/quotas/rate-limit/login", {"path": "auth/cloud", "rate": 1})
    assert [status(world) for _ in range(2)] == [400, 429]
