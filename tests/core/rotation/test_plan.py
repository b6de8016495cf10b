"""When the root secret is rotated next."""

from __future__ import annotations

from typing import Any, Final

import pytest

from cloudid_core.credentials import Key
from cloudid_core.credentials.root_credential import RootCredential
from cloudid_core.rotation.plan import Plan, Rule, make_plan, next_warning, overlap, warned_from
from cloudid_core.rotation.record import Phase, Rotation
from cloudid_core.values.bounds import DAY
from cloudid_core.values.secret import Secret

NOON: Final = 1_800_014_400.0
"""12:00 UTC on a Friday."""
HOUR: Final = 3600.0
SECRET: Final = Secret("s")
DAILY: Final = {"rotation_schedule": "0 12 * * *"}


def config(**fields: Any) -> RootCredential:
    return RootCredential(client_secret=SECRET, **fields)


def rotated(at: float, life: float = 182 * DAY) -> Rotation:
    key = Key(id="k", secret=SECRET, made_at=at, expires_at=at + life)
    return Rotation(mount_id="m", phase=Phase.IDLE, current=key, rotated_at=at)


def plan(fields: dict[str, Any], now: float, before: Plan | None = None, rotation: Rotation | None = None) -> Plan:
    made = make_plan("m", config(**fields), rotation, before, now)
    assert made is not None
    return made


@pytest.mark.parametrize("fields", [{}, {"rotation_period": 60, "disable_automated_rotation": True}])
def test_without_a_rule_and_a_known_end_there_is_no_plan(fields: dict[str, Any]) -> None:
    assert make_plan("m", config(**fields), None, None, NOON) is None


def test_a_period_counts_from_the_write_and_then_from_the_last_rotation() -> None:
    first = plan({"rotation_period": 60}, NOON)
    assert first.rotate_at == NOON + 60
    assert plan({"rotation_period": 60}, NOON + 30, first).rotate_at == NOON + 60
    assert plan({"rotation_period": 60}, NOON + 61, first, rotated(NOON + 61)).rotate_at == NOON + 121


def test_another_period_counts_from_the_last_rotation_too() -> None:
    first = plan({"rotation_period": 60}, NOON)
    after = rotated(NOON + 60)
    assert plan({"rotation_period": 1000}, NOON + 100, first, after).rotate_at == NOON + 1060


def test_switching_on_again_starts_anew() -> None:
    ago = rotated(NOON - 10 * DAY)
    off = plan({"rotation_period": 60, "disable_automated_rotation": True}, NOON, None, ago)
    assert (off.rule, off.rotate_at) == (None, None)
    assert plan({"rotation_period": 60}, NOON + 5, off, ago).rotate_at == NOON + 65


def test_a_schedule_is_due_at_its_next_slot() -> None:
    assert plan(DAILY, NOON - 10).rotate_at == NOON
    assert plan(DAILY, NOON).rotate_at == NOON + DAY


def test_a_slot_stays_due_within_its_window_and_is_then_missed() -> None:
    fields = {**DAILY, "rotation_window": 3600}
    before = plan(fields, NOON - 10)
    assert plan(fields, NOON + HOUR - 1, before).rotate_at == NOON
    assert plan(fields, NOON + HOUR, before).rotate_at == NOON + DAY


def test_without_a_window_a_slot_stays_due_until_it_is_done() -> None:
    before = plan(DAILY, NOON - 10)
    assert plan(DAILY, NOON + 3.5 * DAY, before).rotate_at == NOON
    assert plan(DAILY, NOON + HOUR, before, rotated(NOON + 1)).rotate_at == NOON + DAY


def test_another_schedule_does_not_bring_back_slots_that_have_passed() -> None:
    before = plan(DAILY, NOON - 10)
    assert plan({"rotation_schedule": "0 3 * * *"}, NOON + HOUR, before).rotate_at == NOON + 15 * HOUR


def test_a_clock_that_was_set_back_has_slots_before_the_planned_one() -> None:
    far = plan(DAILY, NOON + 300 * DAY)
    assert plan(DAILY, NOON - 10, far).rotate_at == NOON
    ahead = plan({"rotation_period": 60}, NOON + 300 * DAY)
    assert plan({"rotation_period": 60}, NOON, ahead, rotated(NOON + 300 * DAY)).rotate_at == NOON + 60


def test_a_secret_that_ends_before_the_next_rotation_is_rotated_early() -> None:
    """Such a combination is refused today, but may be stored."""
    early = plan({"rotation_period": int(100 * DAY)}, NOON, None, rotated(NOON, 10 * DAY))
    assert (early.rotate_at, early.is_early) == (NOON + 9 * DAY, True)
    short = plan({"rotation_period": int(100 * DAY)}, NOON, None, rotated(NOON, HOUR))
    assert short.rotate_at == NOON + HOUR / 2


@pytest.mark.parametrize(
    "rule, slot, now, end",
    [
        (Rule(period=60), NOON, NOON, None),
        (Rule(schedule="0 12 * * *"), NOON, NOON + 5, NOON + DAY),
        (Rule(schedule="0 12 * * *", window=3600), NOON, NOON + 5, NOON + HOUR),
        (Rule(schedule="0 12 * * *", window=3600), NOON, NOON - 5, None),
    ],
)
def test_a_window_bounds_the_whole_rotation(rule: Rule, slot: float, now: float, end: float | None) -> None:
    assert rule.end_of(slot, now) == end


@pytest.mark.parametrize(
    "fields, seconds",
    [
        ({}, 300),
        ({"rotation_period": 5}, 2.5),
        ({"rotation_period": 86_400}, 300),
        ({"rotation_schedule": "* * * * *"}, 30),
        ({"rotation_period": 5, "disable_automated_rotation": True}, 300),
    ],
)
def test_secrets_overlap_for_half_the_time_between_two_rotations(fields: dict[str, Any], seconds: float) -> None:
    assert overlap(config(**fields), NOON) == seconds


def test_the_end_is_warned_about_two_weeks_ahead_or_a_quarter_of_its_life_and_every_day() -> None:
    long = rotated(NOON, 100 * DAY).current
    short = rotated(NOON, 4 * HOUR).current
    assert warned_from(long) == NOON + 86 * DAY
    assert warned_from(short) == NOON + 3 * HOUR
    assert next_warning(long, NOON + 90 * DAY) == NOON + 91 * DAY


def test_a_known_end_is_planned_for_without_any_rule() -> None:
    made = plan({}, NOON, None, rotated(NOON, 100 * DAY))
    assert (made.rotate_at, made.due_at) == (None, NOON + 86 * DAY)
