"""Automated rotation, as the background performs it."""

from __future__ import annotations

from typing import Any, Final

import pytest
from attrs import evolve

from cloudid_core.context import queue
from cloudid_core.effects import Commit
from cloudid_core.events import RootSecretAtRisk
from cloudid_core.rotation.advance import EXPIRES, WINDOW_OVER
from cloudid_core.rotation.record import Phase
from cloudid_core.secrets_engine.config import Config
from cloudid_core.store import keys
from cloudid_core.values.secret import Secret
from tests.engines import SecretsEngine, engine_config

from .rotating import Rotating, rotating, with_auth_method

DAY: Final = 86_400.0
MINUTE: Final = 60.0
HOUR: Final = 3600.0


def planned(**fields: object) -> Rotating:
    world = rotating()
    world.must("POST", "cloud/config", fields)
    return world


def due(world: SecretsEngine) -> list[str]:
    return [key for key in world.keys(keys.DUE) if f"/{queue.ROTATION_PLAN}/" in key]


def risks(world: SecretsEngine) -> list[str]:
    return [event.reason for event in world.events if isinstance(event, RootSecretAtRisk)]


def test_a_period_rotates_again_and_again() -> None:
    world = planned(rotation_period=3600)
    first = world.configured()
    world.pass_time(HOUR - 60)
    assert world.configured() == first
    world.pass_time(120)
    second = world.configured()
    assert second != first
    assert world.status()["phase"] == "overlapping"
    world.pass_time(HOUR)
    assert world.configured() not in (first, second)
    assert not world.knows(first)
    assert len(due(world)) == 1


def test_the_write_asks_the_host_to_come_when_it_is_due() -> None:
    world = rotating()
    reply = world.ask("POST", "cloud/config", {"rotation_period": 5})
    assert reply.response.wake_at == world.clock + 5


def test_the_status_tells_when_the_next_rotation_is() -> None:
    world = planned(rotation_schedule="0 3 * * *")
    assert world.status()["next_rotation"] == "2027-01-16T03:00:00Z"
    world.must("POST", "cloud/config", {"disable_automated_rotation": True})
    assert world.status()["next_rotation"] is None
    assert due(world) == []


def test_a_rotation_on_request_counts_as_one() -> None:
    world = planned(rotation_period=3600)
    world.pass_time(HOUR / 2)
    world.rotate()
    asked = world.configured()
    world.pass_time(HOUR - 60)
    assert world.configured() == asked
    world.pass_time(120)
    assert world.configured() != asked


def test_rotation_survives_a_restart_and_a_change_of_node() -> None:
    world = planned(rotation_period=3600)
    first = world.configured()
    world.restart()
    world.pass_time(HOUR + 60)
    assert world.configured() != first


def test_what_fails_is_tried_again_and_warned_about() -> None:
    world = planned(rotation_period=3600)
    first = world.configured()
    world.fail(path="/graph/v1.0/applications/", status=503)
    world.pass_time(HOUR + 600)
    assert world.configured() == first
    assert world.status()["last_error"]
    assert any("503" in reason or "Unreach" in reason for reason in risks(world))
    assert any("last automated rotation failed" in text for text in world.ask("GET", "cloud/config").body["warnings"])
    world.heal()
    world.pass_time(2 * HOUR)
    assert world.configured() != first
    assert world.status()["last_error"] == ""
    assert world.ask("GET", "cloud/config").body["warnings"] is None


def test_a_window_that_ends_gives_the_new_secret_up_until_the_next_slot() -> None:
    world = planned(rotation_schedule="0 3 * * *", rotation_window=3600)
    first = world.configured()
    world.behave(delays={"sign_in": 86_400})
    world.pass_time(slot_after(world, 3) - world.clock + HOUR - 120)
    assert world.rotation().phase is Phase.PROVING
    world.pass_time(2 * HOUR)
    assert world.configured() == first
    assert world.rotation().phase is Phase.IDLE
    assert world.status()["last_error"] == WINDOW_OVER
    assert len(world.key_ids) == 1, "the key that was given up is removed"
    world.behave(delays={"sign_in": 0})
    world.pass_time(20 * HOUR)
    assert world.configured() == first
    world.pass_time(2 * HOUR)
    assert world.configured() != first


def slot_after(world: SecretsEngine, hour: int) -> float:
    """The next full hour of a day."""
    midnight = world.clock // DAY * DAY
    return midnight + hour * HOUR + (DAY if world.clock >= midnight + hour * HOUR else 0)


def test_a_slot_that_was_missed_waits_for_the_next() -> None:
    world = planned(rotation_schedule="0 3 * * *", rotation_window=3600)
    first = world.configured()
    world.advance(slot_after(world, 3) - world.clock + 2 * HOUR)  # nobody is there
    world.pass_time(10 * HOUR)
    assert world.configured() == first
    world.pass_time(14 * HOUR)
    assert world.configured() != first


@pytest.mark.parametrize(
    "environment, fields",
    [
        ({"CLOUD_CLIENT_SECRET": Secret("outer")}, {}),
        ({}, {"client_secret": ""}),
        ({}, {"client_secret": "", "identity_token_audience": "api://exchange"}),
    ],
)
def test_a_root_secret_that_is_not_stored_cannot_be_rotated_and_warns(
    environment: dict[str, Secret], fields: dict[str, str]
) -> None:
    world = SecretsEngine(environment=environment)
    reply = world.ask("POST", "cloud/config", {**engine_config(world), "rotation_period": 60, **fields})
    assert (reply.status, len(reply.body["warnings"])) == (200, 1)
    world.pass_time(120)
    assert "no stored client secret" in world.ask("GET", "cloud/rotation").data["last_error"]
    assert any("no stored client secret" in reason for reason in risks(world))
    assert world.alive("password") == []


def test_a_secret_that_another_mount_uses_is_left_alone() -> None:
    world = with_auth_method(planned(rotation_period=60))
    first = world.configured()
    world.pass_time(300)
    assert world.configured() == first
    assert "another mount" in world.status()["last_error"]


def test_two_mounts_of_one_application_rotate_side_by_side() -> None:
    world = rotating()
    with_auth_method(world, client_secret=world.add_secret(starting="au"))
    firsts = [world.configured(path) for path in ("cloud", "auth/cloud")]
    for path in ("cloud", "auth/cloud"):
        world.must("POST", f"{path}/config", {"rotation_period": 1800})
    world.pass_time(2 * HOUR)
    assert not any(world.knows(secret) for secret in firsts)
    assert all(world.knows(world.configured(path)) for path in ("cloud", "auth/cloud"))
    assert len(world.key_ids) <= 4


def test_a_short_period_never_has_more_than_eight_living_secrets() -> None:
    world = planned(rotation_period=5)
    first = world.configured()
    world.fail(path="/graph/v1.0/applications/[^/]+/removePassword", status=500)
    world.pass_time(10 * MINUTE)
    ours = len(world.key_ids) - 1
    assert 2 <= ours <= 8
    assert any("have not been removed" in reason for reason in risks(world))
    world.heal()
    world.pass_time(10 * MINUTE)
    assert len(world.key_ids) <= 3
    assert not world.knows(first)


def test_a_minute_of_rotations_every_five_seconds() -> None:
    world = planned(rotation_period=5)
    first = world.configured()
    most = 0
    for _ in range(60):
        world.pass_time(1)
        most = max(most, len(world.key_ids))
        assert world.knows(world.configured())
    assert 2 <= most <= 8
    assert not world.knows(first)


def test_a_secret_that_is_about_to_expire_warns_once_a_day_without_any_rule() -> None:
    world = planned(root_password_ttl="30d")
    world.rotate()
    world.pass_time(20 * DAY)
    assert risks(world) == []
    world.pass_time(5 * DAY)
    assert risks(world) in ([EXPIRES] * 2, [EXPIRES] * 3)
    (warning,) = world.ask("GET", "cloud/config").body["warnings"]
    assert warning.startswith("the root secret expires at ")
    assert world.ask("GET", "cloud/rotation").body["warnings"] == [warning]
    world.rotate()
    assert world.ask("GET", "cloud/config").body["warnings"] is None


def test_a_store_from_before_gets_its_plan_when_it_is_kept() -> None:
    world = planned(rotation_period=3600)
    mount = world.mount_ids["cloud"]
    world.store.commit({}, {}, (keys.rotation_plan(mount), *due(world)))
    world.perform(world.service.upkeep())
    assert len(due(world)) == 1
    world.perform(world.service.upkeep())
    assert len(due(world)) == 1


def test_a_clock_that_was_set_back_does_not_put_rotation_off_for_ever() -> None:
    world = rotating()
    first = world.configured()
    world.clock += 300 * DAY
    world.must("POST", "cloud/config", {"rotation_period": 3600})
    world.perform(world.service.upkeep())
    world.clock -= 300 * DAY
    world.perform(world.service.upkeep())
    world.pass_time(2 * HOUR)
    assert world.configured() != first


def test_a_mount_that_goes_takes_its_plan_along() -> None:
    world = planned(rotation_period=3600)
    world.must("DELETE", "sys/mounts/cloud")
    world.pass_time(3 * HOUR)
    assert due(world) == []


def test_a_configuration_that_goes_takes_its_plan_along() -> None:
    world = planned(rotation_period=3600)
    world.must("DELETE", "cloud/config")
    assert due(world) == []


def test_a_plan_whose_configuration_is_missing_is_removed() -> None:
    """As after a restore of a part of the store. Otherwise the plan is due in every round."""
    world = planned(rotation_period=3600)
    mount_id = world.mount().id
    world.store.commit({}, {}, (keys.config(mount_id),))
    world.pass_time(2 * HOUR)
    assert (due(world), world.keys(keys.rotation_plan(mount_id, ""))) == ([], [])


def test_trouble_while_the_secret_is_proven_does_not_start_another_rotation() -> None:
    world = planned(rotation_period=3600)
    world.issue()
    world.pass_time(HOUR - 30)
    world.issue()
    before: Any = world.key_ids
    world.fail("login", status=500)
    world.pass_time(600)
    assert len(world.key_ids) <= len(before) + 1
    world.heal()
    world.pass_time(HOUR)
    assert world.status()["last_error"] == ""


@pytest.mark.parametrize("is_refused", [False, True])
def test_every_commit_of_an_automated_rotation_expects_the_leadership(is_refused: bool) -> None:
    """Also when the new secret is given up."""
    world = planned(rotation_period=3600)
    if is_refused:
        world.fail(path="/graph/v1.0/applications/[^/]+/addPassword", status=403)
    world.advance(3601)
    start = len(world.trace)
    world.tick()
    commits = [effect for _, effect in world.trace[start:] if isinstance(effect, Commit)]
    mine = [commit for commit in commits if any("/rotation" in key or "/plan" in key for key in commit.puts)]
    assert len(mine) >= 3
    assert all(keys.LEADER_TERM in commit.expects for commit in mine)


def test_a_damaged_configuration_does_not_stop_the_plans_of_others() -> None:
    world = with_auth_method(planned(rotation_period=3600), rotation_period=3600)
    mount = world.mount_ids["auth/cloud"]
    world.store.commit({}, {keys.config(mount): b"damaged"}, (keys.rotation_plan(mount), *due(world)))
    world.store.commit({}, {}, (keys.rotation_plan(world.mount_ids["cloud"]),))
    world.perform(world.service.upkeep())
    assert len(due(world)) == 1


def test_a_combination_that_locks_out_is_rotated_early_where_it_is_stored_already() -> None:
    """It is refused today. The secret that is made under it lives for two hours at least."""
    world = rotating()
    key = keys.config(world.mount_ids["cloud"])

    def combine(stored: Config | None) -> Config | None:
        return stored and evolve(stored, root_password_ttl=182, rotation_period=864_000)

    world.perform(world.context.records.update(key, Config, combine))
    assert world.rotate() == 204
    first = world.configured()
    (warning,) = world.ask("GET", "cloud/config").body["warnings"]
    assert "rotated early" in warning
    world.pass_time(1.9 * HOUR)
    assert world.configured() != first
