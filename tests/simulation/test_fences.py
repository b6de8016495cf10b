"""Every commit of the background is fenced and expects what it changes, whichever handler makes it."""

from __future__ import annotations

from cloudid_core.catalog import HANDLERS
from cloudid_core.context import queue
from cloudid_core.store import keys
from tests.engines import DAY

from .invariants import assert_background_expects_what_it_changes, assert_background_is_fenced
from .operations import OPERATIONS, copy_of, disable, expire, forget_leases, with_leases


def test_every_commit_of_every_handler_is_fenced() -> None:
    """In each operation, and at its end while the cloud refuses."""
    kinds: set[str] = set()
    for start, operation in OPERATIONS.values():
        installation = copy_of(start())
        operation(installation)
        installation.fail("arm", "graph", status=403, code="Denied")
        installation.revoke_below("cloud/creds")
        forget_leases(installation)
        disable(installation)
        installation.advance(DAY)
        installation.tick()
        assert_background_is_fenced(installation)
        assert_background_expects_what_it_changes(installation)
        deleted = (key for commit in installation.in_background for key in commit.deletes)
        kinds |= {queue.parse(key)[1] for key in deleted if key.startswith(keys.DUE)}
    assert kinds == {*queue.KINDS} >= HANDLERS.keys()


def test_the_mark_of_a_damaged_lease_is_fenced() -> None:
    installation = copy_of(with_leases())
    installation.store.commit({}, dict.fromkeys(installation.keys(keys.LEASES), b"damaged"), ())
    expire(installation)
    assert_background_is_fenced(installation)
    assert installation.keys(keys.STUCK)
