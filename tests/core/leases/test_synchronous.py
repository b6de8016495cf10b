"""Revocation inside a request: what it says of many leases is true, and nothing depends on its end."""

from __future__ import annotations

import pytest
from attrs import evolve

from cloudid_core.context import queue
from cloudid_core.context.queue import PAUSES
from cloudid_core.effects import MOST_COMMITTED, Commit
from cloudid_core.leases.synchronous import PAGE
from cloudid_core.store import keys
from tests.engines import SecretsEngine, engine_with_roles
from tests.installation import SETTLE_TIME, START
from tests.tokens import new_token


def with_many(count: int) -> tuple[SecretsEngine, list[str]]:
    """An installation with copies of one lease."""
    world = engine_with_roles()
    original = world.lease(world.issue("existing"))
    assert original is not None
    copies = [evolve(original, id=f"{original.id}{number:05}") for number in range(count)]
    for copy in copies:
        world.perform(world.context.records.commit(copy.creation))
    return world, [original.id, *(copy.id for copy in copies)]


def test_many_leases_are_all_marked_in_bounded_commits_before_the_deadline() -> None:
    world, leases = with_many(2 * PAGE)
    world.slow(1000)
    start = len(world.trace)
    reply = world.ask("PUT", "sys/leases/revoke-prefix/cloud", x_service_deadline="20")
    assert (reply.status, reply.data["left"]) == (202, len(leases))
    assert world.clock <= START + 20
    latest = START + 20 + world.settings.request_grace
    for lease_id in leases:
        lease = world.lease(lease_id)
        assert lease is not None
        assert lease.revoking
        assert lease.due_at <= latest
    marks = [
        sum(key.startswith(keys.LEASES) for key in effect.puts)
        for _, effect in world.trace[start:]
        if isinstance(effect, Commit)
    ]
    assert max(marks) <= PAGE
    assert world.must("LIST", f"{reply.data['path']}/creds/existing").data["keys"]


def test_all_that_can_be_done_is_done_before_the_answer() -> None:
    """The later copies find that the object is gone, which counts as removed by then."""
    world, leases = with_many(2 * PAGE)
    world.advance(SETTLE_TIME)
    assert world.must("PUT", "sys/leases/revoke-prefix/cloud").status == 204
    assert not any(map(world.lease, leases))
    assert world.alive("password") == []


@pytest.mark.parametrize("drops", [False, True])
def test_a_commit_for_many_leases_of_a_mount_names_no_more_than_a_store_takes(drops: bool) -> None:
    world, leases = with_many(130)
    start = len(world.trace)
    world.slow(1000)
    assert world.ask("DELETE", "sys/mounts/cloud", x_service_deadline="20").status == 202
    if drops:
        [accessor] = world.must("LIST", "sys/retiring").data["keys"]
        world.must("DELETE", f"sys/retiring/{accessor}", {"force": True})
    else:
        world.heal()
        world.pass_time(20_000)
    assert not any(map(world.lease, leases))
    commits = [effect for _, effect in world.trace[start:] if isinstance(effect, Commit)]
    largest = max(len(each.expects.keys() | each.puts.keys() | set(each.deletes)) for each in commits)
    assert MOST_COMMITTED // 2 < largest <= MOST_COMMITTED


def test_a_commit_for_many_leases_of_a_token_names_no_more_than_a_store_takes() -> None:
    world = engine_with_roles()
    token = new_token(world, ttl="1h")
    original = world.lease(world.issue("existing", token=token))
    assert original is not None
    leases = [evolve(original, id=f"{original.id}{number:05}") for number in range(130)]
    for lease in leases:
        world.perform(world.context.records.commit(lease.creation))
    world.must("POST", "auth/token/revoke", {"token": token})
    world.pass_time(4000)
    assert [world.lease(lease.id) for lease in leases] == [None] * len(leases)


@pytest.mark.parametrize("path", ["sys/leases/revoke/{}", "sys/leases/revoke-prefix/cloud"])
def test_an_attempt_that_failed_is_repeated_after_a_pause_and_not_when_the_request_must_be_over(path: str) -> None:
    world = engine_with_roles()
    lease_id = world.issue("existing")
    world.fail("graph", status=403, code="Authorization_RequestDenied")
    assert world.ask("PUT", path.format(lease_id)).code == "revocation_pending"
    lease = world.lease(lease_id)
    assert lease is not None
    assert lease.attempts == 1
    assert lease.due_at <= world.clock + PAUSES.first * PAUSES.spread[1]
    assert world.due(queue.LEASE) == [lease.due_key]
    world.heal()
    world.pass_time(60)
    assert world.lease(lease_id) is None
    assert world.alive("password") == []


def test_an_attempt_that_is_interrupted_is_not_repeated_before_the_request_must_be_over() -> None:
    """What it has sent may still be under way."""
    world = engine_with_roles()
    lease_id = world.issue("existing")
    world.slow(50)
    world.spawn(world.service.handle(world.request("PUT", f"sys/leases/revoke/{lease_id}", x_service_deadline="20")))
    world.advance(2)
    asked_at = world.clock - 2
    world.restart()
    lease = world.lease(lease_id)
    assert lease is not None
    assert lease.due_at == asked_at + 20 + world.settings.request_grace


def test_leases_that_are_marked_are_worked_off_by_another_node() -> None:
    """The request ends in a crash, after which another host starts."""
    world = engine_with_roles()
    leases = [world.issue("existing") for _ in range(3)]
    world.slow(50)
    task = world.spawn(world.service.handle(world.request("PUT", "sys/leases/revoke-prefix/cloud")))
    world.advance(2)
    world.restart()
    assert task.is_done
    world.heal()
    world.pass_time(4000)
    assert [world.lease(lease_id) for lease_id in leases] == [None] * 3
    assert world.alive("password") == []
