"""The end of a rotation: exactly our keys are removed, and no component is locked out."""

from __future__ import annotations

import pytest

from cloudid_core.context import queue
from cloudid_core.rotation.advance import OVERRULED, SHARED
from cloudid_core.rotation.plan import LONGEST_OVERLAP
from cloudid_core.rotation.record import Phase

from .rotating import OVERLAP_AND_MORE, Rotating, rotating, with_auth_method

REMOVE = "/graph/v1.0/applications/.*/removePassword"


def overlapping() -> tuple[Rotating, str]:
    """A rotation whose old secret is still alive, and that secret."""
    world = rotating()
    old = world.configured()
    assert world.rotate() == 204
    return world, old


def test_both_secrets_live_through_the_overlap_and_then_only_the_new_one() -> None:
    world, old = overlapping()
    world.pass_time(LONGEST_OVERLAP - 10)
    assert world.knows(old)
    assert world.rotation().phase is Phase.OVERLAPPING
    world.pass_time(40)
    assert not world.knows(old)
    assert world.knows(world.configured())
    assert (world.rotation().phase, world.due(queue.ROTATION)) == (Phase.IDLE, [])


def test_a_removal_that_fails_is_tried_again_and_shows() -> None:
    world, old = overlapping()
    world.fail(path=REMOVE, status=403, code="Authorization_RequestDenied")
    world.pass_time(2000)
    assert world.knows(old)
    assert "403 Authorization_RequestDenied" in world.status()["last_error"]
    world.heal()
    world.pass_time(2 * queue.PAUSES.longest)
    assert not world.knows(old)
    assert (world.status()["phase"], world.status()["last_error"]) == ("idle", "")


def test_a_rotation_that_is_stuck_does_not_stand_in_the_way_of_the_next() -> None:
    """And what it could not remove goes with the next one."""
    world, old = overlapping()
    world.fail(path=REMOVE, status=403)
    world.pass_time(OVERLAP_AND_MORE)
    second = world.configured()
    assert world.rotate() == 204
    assert world.configured() != second
    world.heal()
    world.pass_time(OVERLAP_AND_MORE)
    assert not any(map(world.knows, (old, second)))
    assert len(world.key_ids) == 1


def test_a_key_that_somebody_else_has_removed_is_well_gone() -> None:
    world, old = overlapping()
    world.kill_secret(old)
    world.pass_time(OVERLAP_AND_MORE)
    assert world.rotation().is_idle


@pytest.mark.parametrize("back_to_old", [True, False])
def test_nothing_is_removed_when_the_operator_has_configured_another_secret(back_to_old: bool) -> None:
    world, old = overlapping()
    ours = world.configured()
    theirs = old if back_to_old else world.add_secret(starting="op")
    world.must("POST", "cloud/config", {"client_secret": theirs})
    world.pass_time(OVERLAP_AND_MORE)
    assert world.status()["note"] == OVERRULED
    assert all(map(world.knows, (old, ours, theirs)))
    assert world.rotate() == 204
    world.pass_time(OVERLAP_AND_MORE)
    assert not any(map(world.knows, (ours, theirs)))
    assert world.knows(old) == (not back_to_old)
    assert world.knows(world.configured())


def test_nothing_is_removed_when_the_configuration_is_gone() -> None:
    world, old = overlapping()
    world.must("DELETE", "cloud/config")
    world.pass_time(OVERLAP_AND_MORE)
    assert world.rotation().is_idle
    assert world.knows(old)


def test_nothing_is_removed_when_the_mount_proves_itself_as_another_application() -> None:
    world, old = overlapping()
    other = world.promoted_application()
    world.must("POST", "cloud/config", {"client_id": other["client_id"]})
    world.pass_time(OVERLAP_AND_MORE)
    assert world.rotation().is_idle
    assert world.knows(old)


def test_a_secret_that_another_mount_uses_stays_until_that_one_is_rotated_too() -> None:
    world = with_auth_method(rotating())
    old = world.configured()
    assert world.rotate(force=True) == 204
    world.pass_time(OVERLAP_AND_MORE)
    assert world.status()["note"] == SHARED
    assert world.configured("auth/cloud") == old
    assert world.knows(old)
    assert world.rotate("auth/cloud") == 204
    world.pass_time(OVERLAP_AND_MORE)
    assert not world.knows(old)
    assert all(world.knows(world.configured(path)) for path in ("cloud", "auth/cloud"))


def test_mounts_that_share_an_application_remove_only_their_own_keys() -> None:
    world = rotating()
    with_auth_method(world, client_secret=world.add_secret(starting="au"))
    for _ in range(2):
        for path in ("cloud", "auth/cloud"):
            assert world.rotate(path) == 204
            world.pass_time(OVERLAP_AND_MORE)
            assert all(world.knows(world.configured(each)) for each in ("cloud", "auth/cloud"))
    assert len(world.key_ids) == 2


def test_a_secret_of_ours_that_was_copied_to_another_mount_stays() -> None:
    world = rotating()
    world.rotate()
    world.pass_time(OVERLAP_AND_MORE)
    copied = world.configured()
    with_auth_method(world, client_secret=copied)
    world.rotate(force=True)
    world.pass_time(OVERLAP_AND_MORE)
    assert world.knows(copied)
    assert copied in [key.secret.reveal() for key in world.rotation().known_keys]
    world.rotate("auth/cloud")
    world.pass_time(OVERLAP_AND_MORE)
    assert not world.knows(copied)
