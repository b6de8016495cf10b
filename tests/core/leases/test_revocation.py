"""The end of a lease: its objects go, or it stays in sight until they do."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cloudid_core.background.journal import UNDER_WAY
from cloudid_core.context import queue
from cloudid_core.context.queue import PAUSES, Due
from cloudid_core.effects import Commit
from cloudid_core.errors import CloudidError, Conflict
from cloudid_core.leases.revocation import end_lease, end_leases, forget_lease
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.testing.exhaustive import every_fault
from cloudid_core.testing.faults import Crashed, Fault, FaultKind
from tests.engines import SecretsEngine, engine_with_roles
from tests.installation import SETTLE_TIME

KINDS = frozenset(FaultKind) - {FaultKind.CRASH_BEFORE}
"""A crash before an effect is one after the effect before it, or nothing has happened yet."""


def end(world: SecretsEngine, lease_id: str) -> bool:
    return world.perform(end_lease(world.context, lease_id, world.clock))


def ending(role: str) -> tuple[SecretsEngine, str]:
    """An installation with a lease that is marked to end."""
    world = engine_with_roles()
    lease_id = world.issue(role)
    end(world, lease_id)
    return world, lease_id


def entries(world: SecretsEngine, lease_id: str) -> list[str]:
    """Every entry of the store that names a lease."""
    return [key for key in world.keys("") if lease_id in key]


@pytest.mark.parametrize("role", ["existing", "fresh"])
def test_nothing_is_left_of_a_lease_that_has_ended(role: str) -> None:
    world, lease_id = ending(role)
    world.tick()
    assert entries(world, lease_id) == []
    for kind in ("application", "principal", "password", "assignment"):
        assert world.alive(kind) == []


def test_ending_an_unknown_lease_does_nothing() -> None:
    world = engine_with_roles()
    assert not end(world, "cloud/creds/existing/unknown")
    world.perform(end_leases(world.context, ["unknown"], world.clock))
    assert not world.perform(forget_lease(world.context, "unknown", "m", world.clock))


def test_a_lease_that_ends_is_dead_at_once() -> None:
    world, lease_id = ending("existing")
    lease = world.lease(lease_id)
    assert lease is not None
    assert not lease.is_alive(world.clock)
    assert world.due(queue.LEASE) == [lease.due_key]


def test_a_lease_that_cannot_be_removed_stays_listed_with_its_reason() -> None:
    world, lease_id = ending("existing")
    world.fail("graph", status=403, code="Authorization_RequestDenied")
    for hours in range(30):
        world.pass_time(PAUSES.longest)
        lease = world.lease(lease_id)
        assert lease is not None
        assert hours < lease.attempts < hours + 30
        assert "403 Authorization_RequestDenied" in lease.reason
        assert world.store.read(lease.stuck_key)
        assert world.due(queue.LEASE) == [lease.due_key]
    world.heal()
    world.pass_time(2 * PAUSES.longest)
    assert entries(world, lease_id) == []
    assert world.alive("password") == []


def test_ending_a_lease_again_makes_it_due_at_once() -> None:
    world, lease_id = ending("existing")
    world.fail("graph", status=403)
    world.pass_time(3 * PAUSES.longest)
    world.heal()
    end(world, lease_id)
    world.tick()
    assert world.lease(lease_id) is None


def test_an_attempt_that_a_restart_interrupts_is_counted() -> None:
    world, lease_id = ending("existing")
    world.slow(20)
    tick = world.spawn(world.service.tick())
    world.advance(5)
    world.restart()
    lease = world.lease(lease_id)
    assert tick.is_done
    assert lease is not None
    assert (lease.attempts, lease.reason) == (1, UNDER_WAY)
    assert world.store.read(lease.stuck_key)


def test_a_second_request_to_end_does_not_undo_what_an_attempt_has_done() -> None:
    """It comes while the provider is at work. The lease still ends with the first attempt."""
    world, lease_id = ending("existing")
    world.slow(3)
    world.spawn(world.service.tick())
    world.advance(2)
    assert end(world, lease_id)
    world.settle()
    assert world.lease(lease_id) is None
    assert world.alive("password") == []


def test_an_attempt_stores_what_it_has_done_although_another_request_is_faster() -> None:
    rehearsal, lease_id = ending("existing")
    rehearsal.tick()
    last = max(
        n for n, (_, e) in enumerate(rehearsal.trace) if isinstance(e, Commit) and keys.lease(lease_id) in e.deletes
    )
    world, _ = ending("existing")
    world.inject(Fault(last, FaultKind.CONFLICT))
    world.tick()
    assert world.lease(lease_id) is None


def test_an_object_that_was_removed_is_not_removed_again() -> None:
    """The next attempt removes only what is left."""
    world, lease_id = ending("fresh")
    world.fail(path="/graph/v1.0/applications/", status=403)
    world.pass_time(5)
    lease = world.lease(lease_id)
    assert lease is not None
    assert (lease.provisioned.assignments, lease.provisioned.principal_id) == ((), "")
    assert lease.provisioned.application_id
    world.heal()
    end(world, lease_id)
    world.tick()
    assert world.lease(lease_id) is None


def test_absence_is_believed_only_when_the_directory_has_settled() -> None:
    world, lease_id = ending("existing")
    world.fail("graph", status=404, code="Request_ResourceNotFound")
    world.pass_time(SETTLE_TIME / 2)
    assert world.lease(lease_id)
    world.pass_time(2 * SETTLE_TIME)
    assert world.lease(lease_id) is None


def test_many_leases_end_in_one_commit() -> None:
    world = engine_with_roles()
    leases = [world.issue() for _ in range(5)]
    before = world.store.revision
    world.perform(end_leases(world.context, [*leases, "unknown"], world.clock))
    assert world.store.revision == before + 1
    assert all(lease and lease.revoking for lease in map(world.lease, leases))
    world.perform(end_leases(world.context, leases, world.clock))
    assert world.store.revision == before + 1


def test_many_leases_end_although_one_of_them_changes_at_the_same_time() -> None:
    world = engine_with_roles()
    leases = [world.issue() for _ in range(3)]
    tasks = [world.spawn(end_leases(world.context, leases, world.clock + n)) for n in range(3)]
    world.settle()
    for task in tasks:
        task.result()
    assert all(lease and lease.revoking for lease in map(world.lease, leases))


def test_a_commit_that_ends_leases_expects_the_fence() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    stale = {keys.LEADER_TERM: 99}
    with pytest.raises(CloudidError):
        world.perform(end_lease(world.context, lease_id, world.clock, fence=stale))
    with pytest.raises(CloudidError):
        world.perform(end_leases(world.context, [lease_id], world.clock, fence=stale))
    lease = world.lease(lease_id)
    assert lease is not None
    assert not lease.revoking


def test_a_lease_that_is_dropped_leaves_its_objects_to_the_journal() -> None:
    world = engine_with_roles()
    lease_id = world.issue("fresh")
    world.fail("graph", status=403)
    assert world.perform(forget_lease(world.context, lease_id, world.mount().id, world.clock))
    assert entries(world, lease_id) == []
    world.pass_time(600)
    assert world.alive("application")
    world.heal()
    world.pass_time(2 * PAUSES.longest)
    for kind in ("application", "principal", "password", "assignment"):
        assert world.alive(kind) == []
    assert world.due(queue.INTENT) == []


def test_a_lease_may_be_dropped_while_it_is_being_revoked() -> None:
    world, lease_id = ending("existing")
    world.slow(3)
    world.spawn(world.service.tick())
    world.advance(2)
    world.perform(forget_lease(world.context, lease_id, world.mount().id, world.clock))
    world.settle()
    world.pass_time(2 * SETTLE_TIME)
    assert entries(world, lease_id) == []
    assert world.alive("password") == []
    assert world.due(queue.INTENT) == []


@pytest.mark.parametrize("role", ["existing", "fresh"])
def test_no_fault_loses_a_lease_or_leaves_an_object(role: str) -> None:
    for world in every_fault(SecretsEngine.tick, lambda: ending(role)[0], kinds=KINDS):
        with suppress(Crashed, CloudidError):
            world.tick()
        world.restart()
        leases = world.leases()
        made = [kind for kind in ("application", "principal", "password", "assignment") if world.alive(kind)]
        assert leases or not made, world
        for lease_id in leases:
            lease = world.lease(lease_id)
            assert lease is not None
            assert world.due(queue.LEASE) == [lease.due_key], world
        world.pass_time(3 * SETTLE_TIME)
        assert not world.leases(), world
        assert not any(world.alive(kind) for kind in ("application", "principal", "password", "assignment")), world
        assert world.due(queue.LEASE) == [], world


def test_a_revocation_gives_up_after_too_many_conflicts() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    guard = {"guard": 7}
    world.perform(world.context.records.commit(Changes({}, {"guard": Due()})))
    with pytest.raises(CloudidError) as caught:
        world.perform(end_lease(world.context, lease_id, world.clock, fence=guard))
    assert not isinstance(caught.value, Conflict)
