"""Lease counts: exact however many ask at the same time, and nothing is made at the provider beyond them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from cloudid_core.errors import CloudidError
from cloudid_core.testing import Crashed, every_fault
from tests.engines import SecretsEngine, engine_with_roles

LIMIT = 3
CREDS = "cloud/creds/existing"


def limited(limit: int = LIMIT) -> SecretsEngine:
    world = engine_with_roles()
    world.must("POST", "cloud/roles/existing", {"max_leases": limit})
    return world


def test_a_role_has_so_many_leases_and_no_more() -> None:
    world = limited()
    leases = [world.issue() for _ in range(LIMIT)]
    calls = len(world.calls())
    reply = world.ask("GET", CREDS)
    assert (reply.status, reply.codes) == (429, ["lease_count_exceeded"])
    assert int(reply.response.headers["retry-after"]) > 0
    assert len(world.calls()) == calls
    world.must("POST", "sys/leases/revoke", {"lease_id": leases[0]})
    world.issue()
    assert world.ask("GET", CREDS).status == 429


def test_other_roles_are_not_concerned() -> None:
    world = limited(1)
    world.issue()
    for _ in range(2):
        world.issue("fresh")


@pytest.mark.parametrize("seed", range(6))
def test_the_count_is_exact_when_many_ask_at_the_same_time(seed: int) -> None:
    ready = limited()
    world = SecretsEngine.copy_of(ready, seed)
    tasks = [world.spawn(world.asking("GET", CREDS)) for _ in range(12)]
    world.settle()
    statuses = sorted(task.result().status for task in tasks)
    assert statuses == [200] * LIMIT + [429] * (12 - LIMIT)
    assert len(world.leases()) == LIMIT


def test_a_mount_has_so_many_leases_of_all_roles() -> None:
    world = engine_with_roles()
    world.must("POST", "sys/mounts/cloud/tune", {"max_leases": 2})
    assert world.must("GET", "sys/mounts/cloud/tune").data["max_leases"] == 2
    world.issue("fresh")
    world.issue("existing")
    for role in ("fresh", "existing"):
        reply = world.ask("GET", f"cloud/creds/{role}")
        assert (reply.status, reply.body["errors"]) == (429, ["lease count quota exceeded: of the mount"])


def test_what_cannot_be_removed_still_counts() -> None:
    """It is still in the directory, as a lease that is revoking or as an intent."""
    world = limited(1)
    lease_id = world.issue()
    world.fail("graph")
    world.ask("POST", "sys/leases/revoke", {"lease_id": lease_id})
    assert world.ask("GET", CREDS).status == 429
    world.heal()
    world.pass_time(3600)
    world.issue()


def test_what_failed_half_way_counts_until_it_is_undone() -> None:
    world = limited(1)
    world.fail("graph")
    assert world.ask("GET", CREDS).status >= 500
    assert world.ask("GET", CREDS).status == 429
    world.heal()
    world.pass_time(3600)
    world.issue()


@pytest.mark.parametrize("value", [-1, "many", 2**40])
def test_a_limit_is_a_number(value: Any) -> None:
    assert engine_with_roles().ask("POST", "cloud/roles/existing", {"max_leases": value}).status == 400


def test_no_fault_uses_room_up_for_ever() -> None:
    """And none lets more leases in than there is room for."""

    def scenario(world: SecretsEngine) -> None:
        for _ in range(2):
            world.ask("GET", CREDS)

    for world in every_fault(scenario, lambda: limited(1)):
        with suppress(Crashed, CloudidError):
            scenario(world)
        world.restart()
        assert len(world.leases()) <= 1
        world.pass_time(2 * 3600)
        assert world.ask("GET", CREDS).status == 200


def test_without_a_limit_nothing_is_counted() -> None:
    world = engine_with_roles()
    world.issue()
    assert not [key for key in world.keys("mount/") if "lease-guard" in key]
