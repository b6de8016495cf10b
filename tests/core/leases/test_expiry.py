"""What happens by itself: leases run out, also across restarts, and end with their tokens."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from attrs import evolve
from msgspec.structs import replace

from cloudid_core.background.loop import WORK_SECONDS
from cloudid_core.context import queue
from cloudid_core.context.queue import Due
from cloudid_core.errors import CloudidError
from cloudid_core.leases import revocation
from cloudid_core.leases.revocation import end_leases
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.testing.exhaustive import every_fault
from cloudid_core.testing.faults import Crashed, FaultKind
from cloudid_core.tokens.authenticate import find_token
from cloudid_core.tokens.hierarchy import revoke, tie
from cloudid_core.tokens.record import Token
from tests.engines import SecretsEngine, engine_with_roles
from tests.installation import SETTLE_TIME

KINDS = frozenset(FaultKind) - {FaultKind.CRASH_BEFORE}
"""A crash before an effect is one after the effect before it, or nothing has happened yet."""


def token(
    world: SecretsEngine, name: str = "t", *, parent: str = "", ttl: float | None = 600.0, leases: int = 1
) -> None:
    """A token, with leases that hang on it."""
    made = Token(
        id=name,
        path="auth/token/create",
        mount_id="token",
        policies=("root",),
        display_name=name,
        created_at=world.clock,
        ttl=int(ttl or 0),
        expires_at=None if ttl is None else world.clock + ttl,
        parent=parent,
    )
    records = world.context.records
    changes = Changes(puts={key: Due() for key in made.own_keys} | {made.key: made})
    if parent:
        owner = world.perform(find_token(world.context, parent))
        assert owner is not None
        changes |= tie(owner)
    world.perform(records.commit(changes))
    for _ in range(leases):
        give(world, world.issue(), name)


def give(world: SecretsEngine, lease_id: str, name: str) -> None:
    """Have a lease hang on another token."""
    lease = world.lease(lease_id)
    owner = world.perform(find_token(world.context, name))
    assert lease is not None
    assert owner is not None
    tied = evolve(lease, token_id=name)
    index = keys.token_lease(lease.token_id, lease_id)
    world.perform(world.context.records.commit(Changes(deletes=(index,)) | tied.creation | tie(owner)))


def left(world: SecretsEngine) -> list[str]:
    """All entries that hang on tokens."""
    prefixes = ("token-lease/", "child/")
    return [key for key in world.keys("") if key.startswith(prefixes)]


def test_a_lease_ends_when_it_expires() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    world.pass_time(3590)
    assert world.lease(lease_id)
    world.pass_time(11)
    assert world.lease(lease_id) is None
    assert world.alive("password") == []


def test_expiry_survives_a_restart_however_long() -> None:
    world = engine_with_roles()
    world.issue()
    world.issue("fresh")
    world.restart()
    world.advance(10**6)
    world.restart()
    world.tick()
    assert len(world.leases()) == 0
    assert world.alive("application") == world.alive("password") == []


def test_a_renewed_lease_is_left_alone_at_its_old_time() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    old = world.due(queue.LEASE)
    world.pass_time(1800)
    world.must("PUT", "sys/leases/renew", {"lease_id": lease_id})
    assert not set(old) & set(world.due(queue.LEASE))
    world.pass_time(3500)
    assert world.lease(lease_id)
    world.pass_time(200)
    assert world.lease(lease_id) is None


@pytest.mark.parametrize("kind", [queue.LEASE, queue.INTENT, queue.TOKEN, queue.ROTATION])
def test_a_due_entry_that_no_record_knows_is_dropped(kind: str) -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    ref = lease_id if kind == queue.LEASE else "unknown"
    stale = keys.due(world.clock - 1, kind, world.mount().id, ref)
    world.perform(world.context.records.commit(Changes({}, {stale: Due()})))
    world.tick()
    assert stale not in world.due(kind)
    lease = world.lease(lease_id)
    assert lease is not None
    assert not lease.revoking


def test_leases_end_with_a_token_that_expires() -> None:
    world = engine_with_roles()
    token(world, leases=3)
    other = world.issue()
    world.pass_time(590)
    assert len(world.leases()) == 4
    world.pass_time(20)
    assert world.lease(other)
    assert len(world.leases()) == 1
    assert world.perform(find_token(world.context, "t")) is None
    assert world.due(queue.TOKEN) == []


def test_leases_end_with_a_token_that_is_revoked() -> None:
    world = engine_with_roles()
    token(world, ttl=None, leases=2)
    assert world.due(queue.TOKEN) == []
    world.perform(revoke(world.context, "t", world.clock))
    world.pass_time(3)
    assert (len(world.leases()), left(world), world.due(queue.TOKEN)) == (0, [], [])


def test_a_token_that_was_renewed_is_looked_at_again_when_it_ends() -> None:
    world = engine_with_roles()
    token(world)
    found = world.perform(find_token(world.context, "t"))
    assert found is not None
    renewed = replace(found.record, expires_at=world.clock + 1200)
    world.perform(world.context.records.commit(Changes(found.expected, {found.key: renewed})))
    world.pass_time(700)
    assert len(world.leases()) == 1
    assert world.due(queue.TOKEN) == [renewed.due_key(world.clock + 500)]
    world.pass_time(510)
    assert len(world.leases()) == 0


def test_a_token_that_no_longer_ends_is_not_looked_at_again() -> None:
    world = engine_with_roles()
    token(world)
    found = world.perform(find_token(world.context, "t"))
    assert found is not None
    world.perform(world.context.records.commit(Changes({}, {found.key: replace(found.record, expires_at=None)})))
    world.pass_time(700)
    assert (len(world.leases()), world.due(queue.TOKEN)) == (1, [])


def family(world: SecretsEngine) -> None:
    """Three generations, each with a lease."""
    token(world, "a", ttl=None)
    token(world, "b", parent="a", ttl=None)
    token(world, "c", parent="b", ttl=None)


def test_children_end_with_their_parent_and_so_do_their_leases() -> None:
    world = engine_with_roles()
    family(world)
    world.perform(revoke(world.context, "a", world.clock))
    world.pass_time(5)
    assert (len(world.leases()), left(world), world.due(queue.TOKEN)) == (0, [], [])
    assert [world.perform(find_token(world.context, name)) for name in "abc"] == [None] * 3


def test_many_leases_end_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "PAGE", 2)
    world = engine_with_roles()
    token(world, ttl=None, leases=7)
    world.perform(revoke(world.context, "t", world.clock))
    world.pass_time(5)
    assert (len(world.leases()), left(world)) == (0, [])


def test_leases_that_there_is_no_time_for_are_ended_in_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The due entry of the token stays until all its leases are ending."""
    monkeypatch.setattr(revocation, "PAGE", 2)
    world = engine_with_roles()
    token(world, leases=5)
    world.advance(600)

    async def slow(*args: Any, **more: Any) -> None:
        await end_leases(*args, **more)
        world.clock += WORK_SECONDS

    monkeypatch.setattr(revocation, "end_leases", slow)
    world.tick()
    assert len(world.keys(keys.token_leases("t"))) == 3
    assert world.due(queue.TOKEN)
    monkeypatch.setattr(revocation, "end_leases", end_leases)
    world.pass_time(600)
    assert len(world.leases()) == 0
    assert not [key for key in world.due(queue.TOKEN) if "/t" in key.rpartition("/")[2]]


def test_an_index_entry_without_its_lease_does_not_stop_a_revocation() -> None:
    world = engine_with_roles()
    token(world, ttl=None)
    world.perform(world.context.records.commit(Changes({}, {keys.token_lease("t", "cloud/creds/x/gone"): Due()})))
    world.perform(revoke(world.context, "t", world.clock))
    world.pass_time(5)
    assert (len(world.leases()), left(world), world.due(queue.TOKEN)) == (0, [], [])


def revoked_family() -> SecretsEngine:
    world = engine_with_roles()
    family(world)
    world.perform(revoke(world.context, "a", world.clock))
    return world


def test_no_fault_leaves_a_lease_or_a_child_behind() -> None:
    for world in every_fault(SecretsEngine.tick, revoked_family, kinds=KINDS):
        with suppress(Crashed, CloudidError):
            world.tick()
        world.restart()
        world.pass_time(2 * SETTLE_TIME)
        assert (len(world.leases()), left(world), world.due(queue.TOKEN)) == (0, [], []), world
        assert world.alive("password") == [], world
