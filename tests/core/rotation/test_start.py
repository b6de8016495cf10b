"""What must hold before a new secret is made."""

from __future__ import annotations

from cloudid_core.rotation.plan import LONGEST_OVERLAP
from cloudid_core.rotation.start import MOST_KEYS

from .rotating import rotating


def test_a_second_call_within_the_overlap_says_that_nothing_was_rotated() -> None:
    world = rotating()
    world.rotate()
    secret = world.configured()
    reply = world.ask("POST", "cloud/rotate-root")
    (warning,) = reply.body["warnings"]
    assert (reply.status, world.configured()) == (200, secret)
    assert "2027-01-15T08:0" in warning
    assert "force=true" in warning


def test_force_rotates_again_within_the_overlap() -> None:
    world = rotating()
    world.rotate()
    secret = world.configured()
    assert world.rotate(force=True) == 204
    assert world.configured() != secret
    world.pass_time(LONGEST_OVERLAP + 60)
    assert len(world.key_ids) == 1


def test_no_more_than_eight_secrets_of_ours_live() -> None:
    world = rotating()
    assert [world.rotate(force=True) for _ in range(MOST_KEYS)] == [204] * MOST_KEYS
    assert world.refused("POST", "cloud/rotate-root", {"force": True}) == (503, "root_secrets_left")
    world.pass_time(LONGEST_OVERLAP + 60)
    assert world.rotate() == 204
