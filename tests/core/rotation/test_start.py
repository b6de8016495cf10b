"""What must hold before a new secret is made."""

from __future__ import annotations

from cloudid_core import HttpRequest
from cloudid_core.rotation.plan import LONGEST_OVERLAP
from cloudid_core.rotation.start import MOST_KEYS
from cloudid_core.store import keys
from cloudid_core.testing import Answer
from cloudid_core.values import rfc3339
from tests.engines import engine_with_roles
from tests.installation import SETTLE_TIME

from .rotating import Rotating, rotating


class StandingStill(Rotating):
    """Its machine stands still before it makes a secret, until others have given the rotation up and forgotten it."""

    def call_cloud(self, request: HttpRequest) -> Answer:
        if request.url.endswith("/addPassword"):
            self.clock += 3 * SETTLE_TIME
            self.store.commit({}, {}, [keys.rotation(self.mount_ids["cloud"])])
        return super().call_cloud(request)


def test_a_secret_that_is_made_after_its_time_is_removed() -> None:
    world = StandingStill.copy_of(engine_with_roles())
    before = world.key_ids
    assert world.rotate() >= 400
    assert len(world.key_ids) == len(before) + 1
    world.pass_time(3 * SETTLE_TIME)
    assert world.key_ids == before


def test_a_second_call_within_the_overlap_says_that_nothing_was_rotated() -> None:
    world = rotating()
    world.rotate()
    secret = world.configured()
    reply = world.ask("POST", "cloud/rotate-root")
    (warning,) = reply.body["warnings"]
    assert (reply.status, world.configured()) == (200, secret)
    rotated_at = world.status()["last_rotation"]
    assert rotated_at in warning
    assert rfc3339.show(rfc3339.parse(rotated_at) + world.rotation().overlap) in warning
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
    refused = world.ask("POST", "cloud/rotate-root", {"force": True})
    assert (refused.status, refused.codes) == (503, ["root_secrets_left"])
    world.pass_time(float(refused.response.headers["retry-after"]) + 30)
    assert world.rotate() == 204


def test_secrets_that_were_refused_are_none() -> None:
    world = rotating()
    world.fail(path=".*/addPassword", status=403, code="Authorization_RequestDenied", after_work=True)
    for _ in range(MOST_KEYS + 1):
        assert world.refused("POST", "cloud/rotate-root") == (502, "provider_permission_denied")
    world.heal()
    assert world.rotate() == 204
    world.pass_time(LONGEST_OVERLAP + 60)
    assert len(world.key_ids) == 1
