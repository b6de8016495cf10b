"""The background's part in a rotation, and that no fault in any step locks anybody out or leaves a key behind."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cloudid_core.context import queue
from cloudid_core.errors import CloudidError
from cloudid_core.rotation.record import Phase
from cloudid_core.store.changes import Changes
from cloudid_core.testing.exhaustive import every_fault
from cloudid_core.testing.faults import Crashed, FaultKind
from tests.installation import SETTLE_TIME

from .rotating import OVERLAP_AND_MORE, Rotating, rotating

KINDS = frozenset(FaultKind) - {FaultKind.CRASH_BEFORE}
"""A crash before an effect is one after the effect before it, or nothing has happened yet."""
LONG = 60.0 + 2 * SETTLE_TIME + 2 * OVERLAP_AND_MORE


def request(world: Rotating) -> None:
    world.rotate()


def overlapping() -> Rotating:
    world = rotating()
    world.rotate()
    world.advance(OVERLAP_AND_MORE)
    return world


def proving() -> Rotating:
    world = rotating()
    world.behave(delays={"sign_in": 30})
    world.ask("POST", "cloud/rotate-root", x_service_deadline="5")
    world.advance(60)
    return world


def tick(world: Rotating) -> None:
    world.tick()


@pytest.mark.parametrize(
    "story, make", [(request, rotating), (tick, proving), (tick, overlapping)], ids=["request", "prove", "remove"]
)
def test_no_fault_locks_out_or_leaves_a_key(story: object, make: object) -> None:
    """In the end there is one secret, it is configured and it works, and the status says so."""
    assert callable(story)
    assert callable(make)
    for world in every_fault(story, make, kinds=KINDS):
        with suppress(Crashed, CloudidError):
            story(world)
        world.restart()
        assert any(map(world.knows, next(world.stored_secrets()))), world
        world.pass_time(LONG)
        assert world.knows(world.configured()), world
        assert len(world.key_ids) == 1, world
        assert world.status()["phase"] == "idle", world
        assert (world.due(queue.INTENT), world.due(queue.ROTATION)) == ([], []), world


def test_a_failure_is_noted_and_tried_again_later() -> None:
    world = overlapping()
    world.fail("graph", status=503)
    world.tick()
    first = world.rotation()
    assert (first.phase, first.attempts) == (Phase.OVERLAPPING, 1)
    assert "503" in first.error
    assert world.due(queue.ROTATION) == [first.due_key]
    assert first.due_at > overlapping().clock


def test_a_rotation_that_was_renewed_is_left_alone_at_its_old_time() -> None:
    world = overlapping()
    before = world.rotation()
    world.tick()
    assert world.rotation().is_idle
    stale = before.due_key
    world.perform(world.context.records.commit(Changes({}, {stale: before})))
    world.tick()
    assert world.due(queue.ROTATION) == []
    assert world.rotation().is_idle


def test_the_secret_that_a_retired_mount_was_to_get_is_removed() -> None:
    world = proving()
    before = world.key_ids[:-1]
    world.must("DELETE", "sys/mounts/cloud")
    world.pass_time(LONG)
    assert world.key_ids == before
    assert (world.due(queue.INTENT), world.due(queue.ROTATION)) == ([], [])
