"""The lease as it is stored: every entry of it is known from its record."""

from __future__ import annotations

from attrs import evolve

from cloudid_core.leases.record import Lease, ending, rescheduled
from cloudid_core.provider.provisioned import Provisioned
from cloudid_core.store import keys
from cloudid_core.store.records import Found

LEASE = Lease(
    id="cloud/creds/web/1",
    mount_id="m",
    role="web",
    token_id="t",
    provisioned=Provisioned(made_at=0.0),
    issued_at=0.0,
    expires_at=100.0,
    ends_at=500.0,
    due_at=100.0,
)
FOUND = Found(LEASE.key, LEASE, 7)


def test_all_entries_of_a_lease_are_deleted_with_it() -> None:
    assert set(LEASE.creation.puts) < set(LEASE.removal.deletes)
    assert set(LEASE.removal.deletes) - set(LEASE.creation.puts) == {LEASE.stuck_key}


def test_a_lease_is_found_by_its_mount_and_by_its_token() -> None:
    assert keys.mount_lease("m", LEASE.id) in LEASE.creation.puts
    assert keys.token_lease("t", LEASE.id) in LEASE.creation.puts
    assert not [key for key in evolve(LEASE, token_id="").creation.puts if key.startswith("token-lease/")]


def test_a_lease_is_alive_until_it_expires_or_is_revoked() -> None:
    assert LEASE.is_alive(99.9)
    assert not LEASE.is_alive(100)
    assert not evolve(LEASE, revoking=True).is_alive(0)


def test_a_new_due_time_replaces_the_old_one() -> None:
    later = evolve(LEASE, due_at=200.0)
    changes = rescheduled(FOUND, later)
    assert changes.expects == {LEASE.key: 7}
    assert set(changes.puts) == {later.key, later.due_key}
    assert changes.deletes == (LEASE.due_key,)
    assert rescheduled(FOUND, evolve(LEASE, role="x")).deletes == ()


def test_a_lease_that_ends_is_due_at_once_and_hangs_on_no_token() -> None:
    changes = ending(FOUND, 50.0)
    ended = changes.puts[LEASE.key]
    assert isinstance(ended, Lease)
    assert (ended.revoking, ended.due_at) == (True, 50.0)
    assert set(changes.deletes) == {LEASE.due_key, keys.token_lease("t", LEASE.id)}
