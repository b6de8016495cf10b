"""The first step: a new secret is stored, or nothing is left of it."""

from __future__ import annotations

import pytest

from cloudid_core.context import queue
from cloudid_core.credentials.root_credential import ROOT_PASSWORD_TTL
from cloudid_core.errors import Code, Conflict
from cloudid_core.rotation.record import Phase, Rotation
from cloudid_core.rotation.root import Subject
from cloudid_core.rotation.start import UNIDENTIFIED, give_up
from cloudid_core.store import keys
from tests.installation import SETTLE_TIME

from .rotating import OVERLAP_AND_MORE, Rotating, rotating, with_auth_method

ADD = "/graph/v1.0/applications/.*/addPassword"


def check_nothing_is_left(world: Rotating, keys_before: list[str]) -> None:
    """After a failure: neither at the provider nor to be done, and the configuration still works."""
    world.heal()
    world.pass_time(4 * SETTLE_TIME)
    assert world.key_ids == keys_before
    assert world.rotation().is_idle
    assert (world.due(queue.INTENT), world.due(queue.ROTATION)) == ([], [])
    assert world.knows(world.configured())


def test_the_new_secret_lives_as_long_as_is_configured() -> None:
    world = rotating()
    world.must("POST", "cloud/config", {"root_password_ttl": "10d"})
    world.rotate()
    assert world.root.passwords[-1].ends_at == pytest.approx(world.clock + 10 * 86400, abs=30)


def test_no_configured_lifetime_means_the_usual_one() -> None:
    world = rotating()
    world.must("POST", "cloud/config", {"root_password_ttl": 0})
    world.rotate()
    assert world.root.passwords[-1].ends_at == pytest.approx(world.clock + ROOT_PASSWORD_TTL, abs=30)


def test_the_new_secret_has_our_marker() -> None:
    world = rotating()
    world.rotate()
    assert str(world.root.passwords[-1].display_name).startswith(world.context.marker_prefix)


@pytest.mark.parametrize("status, answer", [(403, 502), (400, 502), (429, 503), (503, 503)])
def test_a_refusal_leaves_nothing(status: int, answer: int) -> None:
    world = rotating()
    before = world.key_ids
    world.fail(path=ADD, status=status)
    assert world.rotate() == answer
    assert world.rotation().is_idle
    assert str(status) in world.status()["last_error"]
    check_nothing_is_left(world, before)


def test_a_lost_answer_leaves_nothing() -> None:
    """The password is there, but its text is not known: it is found by its name and removed, and another is added."""
    world = rotating()
    before = world.key_ids
    world.fail(path=ADD, times=1, drop=True, after_work=True)
    assert world.rotate() == 204
    assert len(world.key_ids) == len(before) + 1


def test_a_password_whose_request_is_lost_gives_way_to_another() -> None:
    world = rotating()
    before = world.key_ids
    world.fail(path=ADD, times=1, drop=True)
    assert world.rotate() == 204
    assert len(world.key_ids) == len(before) + 1


def test_passwords_whose_requests_are_lost_again_and_again_leave_nothing() -> None:
    world = rotating()
    before = world.key_ids
    world.fail(path=ADD, times=2, drop=True)
    assert world.rotate() == 503
    check_nothing_is_left(world, before)


def test_concurrent_changes_of_the_application_are_waited_for() -> None:
    world = rotating()
    world.fail(path=ADD, status=409, code="Directory_ConcurrencyViolation", times=2)
    assert world.rotate() == 204


def test_a_crash_while_the_secret_is_made_leaves_nothing() -> None:
    world = rotating()
    before = world.key_ids
    world.slow(5)
    world.spawn(world.asking("POST", "cloud/rotate-root"))
    world.advance(8)
    assert len(world.key_ids) == len(before) + 1
    world.restart()
    assert world.rotation().phase is Phase.ADDING
    assert world.rotate() == 202
    check_nothing_is_left(world, before)
    assert "interrupted" in world.status()["last_error"]


def test_a_configuration_that_changes_first_wins() -> None:
    """The rotation begins with what is configured then."""
    world = rotating()
    fresh = world.add_secret()
    rotation = world.spawn(world.asking("POST", "cloud/rotate-root"))
    write = world.spawn(world.asking("POST", "cloud/config", {"client_secret": fresh}))
    world.settle()
    assert write.result().status == 204
    assert rotation.result().status in (204, 503)
    world.pass_time(4 * SETTLE_TIME)
    assert world.knows(world.configured())


def test_a_root_application_without_rights_is_not_rotated() -> None:
    world = rotating()
    other = world.scene["applications"][1]
    world.must("POST", "cloud/config", {"client_id": other["client_id"], "client_secret": other["client_secret"]})
    world.must("DELETE", "cloud/roles/existing")
    assert world.refused("POST", "cloud/rotate-root") == (502, Code.PROVIDER_PERMISSION_DENIED.wire)


def test_an_application_that_a_role_points_at_is_not_rotated() -> None:
    """It became the mount's app registration after the role was written, so the role would issue root credentials."""
    world = rotating()
    other = world.promoted_application()
    world.must("POST", "cloud/config", other)
    assert world.refused("POST", "cloud/rotate-root") == (403, Code.SELF_TARGET.wire)


def test_a_secret_whose_key_is_unknown_is_left_and_the_note_says_so() -> None:
    world = rotating()
    old = world.configured()
    twin = world.add_secret(starting=old[:3])
    assert world.rotate() == 204
    assert world.status()["note"] == UNIDENTIFIED
    world.pass_time(OVERLAP_AND_MORE)
    assert world.rotation().is_idle
    assert world.status()["note"] == UNIDENTIFIED
    assert all(map(world.knows, (old, twin, world.configured())))


def test_a_second_rotation_removes_what_the_first_has_made() -> None:
    world = rotating()
    for _ in range(3):
        assert world.rotate() == 204
        world.pass_time(OVERLAP_AND_MORE)
        assert len(world.key_ids) == 1
    assert world.status()["note"] == ""


def test_keys_of_others_are_never_touched() -> None:
    world = rotating()
    theirs = [world.add_secret(starting="xy") for _ in range(2)]
    for _ in range(2):
        world.rotate()
        world.pass_time(OVERLAP_AND_MORE)
    assert all(map(world.knows, theirs))
    assert len(world.key_ids) == 3


def test_keys_on_a_former_root_application_are_given_up() -> None:
    """The mount is moved to another application: what it made on the first is removed from there."""
    world = rotating()
    operators = world.add_secret(starting="op")
    world.rotate()
    world.pass_time(OVERLAP_AND_MORE)
    ours = world.configured()
    other = world.promoted_application()
    world.must("DELETE", "cloud/roles/existing")
    world.must("POST", "cloud/config", other)
    assert world.rotate() == 204
    world.pass_time(OVERLAP_AND_MORE)
    assert not world.knows(ours)
    assert world.knows(operators)


def test_keys_on_a_former_root_application_that_others_made_or_use_are_left() -> None:
    """The mount is moved while the secret that was replaced still lives, and another mount uses the new one."""
    world = rotating()
    operators = world.configured()
    world.rotate()
    ours = world.configured()
    with_auth_method(world, client_secret=ours)
    other = world.promoted_application()
    world.must("DELETE", "cloud/roles/existing")
    world.must("POST", "cloud/config", other)
    assert world.rotate() == 204
    world.pass_time(OVERLAP_AND_MORE)
    assert world.knows(operators)
    assert world.knows(ours)


def test_a_node_that_no_longer_leads_does_not_give_up_a_rotation() -> None:
    """The secret that it would abandon may be the one that the next leader switches to."""
    world = rotating()
    world.behave(delays={"sign_in": 30})
    world.ask("POST", "cloud/rotate-root", x_service_deadline="5")
    found = world.perform(world.context.records.find(keys.rotation(world.mount_ids["cloud"]), Rotation))
    assert found is not None
    assert found.record.phase is Phase.PROVING
    subject = Subject(context=world.context, mount=world.mount("cloud"), fence={"duty/term": 99})
    with pytest.raises(Conflict):
        world.perform(give_up(subject, found, world.clock, ""))
    assert world.rotation() == found.record
    assert world.due(queue.INTENT) == []
