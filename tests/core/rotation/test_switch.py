"""The middle of a rotation: nothing is configured that was not proven, and the way back stays open."""

from __future__ import annotations

import pytest
from attrs import evolve

from cloudid_core import HttpRequest
from cloudid_core.context import queue
from cloudid_core.rotation.plan import LONGEST_OVERLAP
from cloudid_core.rotation.record import Phase
from cloudid_core.rotation.switch import CHANGED, STOPPED_WORKING
from cloudid_core.testing import Answer
from tests.installation import SETTLE_TIME

from .rotating import OVERLAP_AND_MORE, Rotating, rotating


def proving() -> Rotating:
    """A rotation whose new secret the provider does not accept yet."""
    world = rotating()
    world.behave(delays={"sign_in": 200})
    assert world.ask("POST", "cloud/rotate-root", x_service_deadline="10").status == 202
    assert world.rotation().phase is Phase.PROVING
    return world


def test_a_secret_is_proven_several_times_before_it_is_configured() -> None:
    world = rotating()
    old, start = world.configured(), world.clock
    world.rotate()
    assert [call for call in world.calls() if "/token" in call][1:] == 3 * [world.calls()[0]]
    assert world.clock >= start + 3
    assert world.configured() != old
    assert world.knows(old)


def test_until_it_is_proven_the_old_secret_is_used() -> None:
    world = proving()
    old = world.configured()
    world.pass_time(60)
    assert world.configured() == old
    assert world.issue()


def test_the_background_goes_on_with_what_a_request_did_not_finish() -> None:
    world = proving()
    old = world.configured()
    world.pass_time(600)
    assert world.configured() != old
    assert world.knows(world.configured())
    assert world.status()["last_error"] == ""


def test_a_secret_that_flaps_is_not_configured() -> None:
    """Some front-ends of the token endpoint know it, others do not yet."""
    world = rotating()
    world.behave(delays={"sign_in": [0, 120]}, front_ends=4)
    world.ask("POST", "cloud/rotate-root", x_service_deadline="30")
    world.pass_time(OVERLAP_AND_MORE + 600)
    assert world.rotation().is_idle
    assert world.knows(world.configured())
    assert len(world.key_ids) == 1


@pytest.mark.parametrize("field", ["client_secret", "client_id"])
def test_a_configuration_that_was_changed_meanwhile_keeps_what_it_has(field: str) -> None:
    world = proving()
    other = world.promoted_application()
    given = {"client_secret": world.add_secret()} if field == "client_secret" else other
    world.must("POST", "cloud/config", given)
    world.pass_time(LONGEST_OVERLAP + 4 * SETTLE_TIME)
    assert world.configured() == given["client_secret"]
    assert world.rotation().is_idle
    assert world.status()["last_error"] == CHANGED
    assert world.alive("password") == []
    assert (world.due(queue.INTENT), world.due(queue.ROTATION)) == ([], [])


def test_a_change_of_something_else_does_not_matter() -> None:
    world = proving()
    world.must("POST", "cloud/config", {"root_password_ttl": "7d"})
    old = world.configured()
    world.pass_time(600)
    assert world.configured() != old


def test_a_configuration_that_was_removed_meanwhile_leaves_no_secret_behind() -> None:
    world = proving()
    before = world.key_ids[:-1]
    secret = world.configured()
    world.must("DELETE", "cloud/config")
    world.pass_time(600)
    assert world.rotation().is_idle
    assert world.due(queue.INTENT) != []  # it waits for a configuration
    root = world.scene["applications"][0]
    subscription = world.scene["subscriptions"][0]
    given = {"tenant_id": world.simulator.world.tenant_id, "subscription_id": subscription}
    world.must("POST", "cloud/config", {**given, "client_id": root["client_id"], "client_secret": secret})
    world.pass_time(2 * queue.PAUSES.longest)
    assert world.key_ids == before
    assert world.due(queue.INTENT) == []


class DisabledAtItsProof(Rotating):
    """Its mount is disabled while the new secret is proven."""

    is_disabled = False

    def call_cloud(self, request: HttpRequest) -> Answer:
        if request.url.endswith("/token") and len(self.key_ids) == 2 and not self.is_disabled:
            self.is_disabled = True
            self.ask("DELETE", "sys/mounts/cloud")
        return super().call_cloud(request)


def test_a_mount_that_was_disabled_meanwhile_leaves_no_secret_behind() -> None:
    world = DisabledAtItsProof.copy_of(rotating())
    before = world.key_ids
    world.ask("POST", "cloud/rotate-root")
    assert world.is_disabled
    world.pass_time(2 * queue.PAUSES.longest)
    assert world.key_ids == before


def test_a_secret_that_never_comes_to_be_accepted_is_given_up() -> None:
    world = proving()
    old = world.configured()
    world.kill_secret(world.rotation().known_keys[0].secret.reveal())
    world.pass_time(3 * queue.PAUSES.longest)
    assert world.configured() == old
    assert world.rotation().is_idle
    assert "does not accept" in world.status()["last_error"]
    assert world.rotate() in (202, 204)


def test_a_new_secret_that_stops_working_gives_its_place_back() -> None:
    world = rotating()
    old = world.configured()
    world.rotate()
    world.kill_secret(world.configured())
    world.pass_time(OVERLAP_AND_MORE)
    assert world.configured() == old
    assert world.status()["note"] == STOPPED_WORKING
    assert world.rotation().attempts == 0, "removing it has failed before it was tried"
    world.pass_time(LONGEST_OVERLAP + 4 * SETTLE_TIME)
    assert world.rotation().is_idle
    assert world.knows(old)
    assert world.rotate() == 204


@pytest.mark.parametrize("status", [401, 503])
def test_when_neither_is_accepted_nothing_is_removed(status: int) -> None:
    world = rotating()
    world.rotate()
    before = world.key_ids
    world.fail("login", status=status)
    world.pass_time(1000)
    assert world.key_ids == before
    assert world.status()["last_error"]
    world.heal()
    world.pass_time(2 * queue.PAUSES.longest)
    assert world.rotation().is_idle
    assert len(world.key_ids) == 1


def test_two_provers_switch_once() -> None:
    world = rotating()
    rotations = [world.spawn(world.asking("POST", "cloud/rotate-root")) for _ in range(4)]
    world.settle()
    assert {rotation.result().status for rotation in rotations} <= {202, 204}
    assert len(world.key_ids) == 2
    world.pass_time(OVERLAP_AND_MORE)
    assert len(world.key_ids) == 1


def test_a_new_secret_that_has_expired_gives_its_place_back() -> None:
    """The endpoint answers 401 at once, which no waiting mends."""
    world = rotating()
    old = world.configured()
    world.rotate()
    expired = world.configured()
    ended = [
        evolve(password, ends_at=world.clock) if password.secret == expired else password
        for password in world.root.passwords
    ]
    directory = world.simulator.world.directory
    directory.applications.put(world.root.id, evolve(world.root, passwords=tuple(ended)))
    world.pass_time(OVERLAP_AND_MORE)
    assert world.configured() == old
    assert world.status()["note"] == STOPPED_WORKING
