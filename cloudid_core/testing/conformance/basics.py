"""Checks of time, chance and audit."""

from __future__ import annotations

from typing import Final

from ...effects import Instant, Now, RandomBytes, Record, Sleep
from ...events import (
    IntentChanged,
    JobFailed,
    LeaseChanged,
    MountChanged,
    Problem,
    RequestAnswered,
    RequestReceived,
    RotationChanged,
)
from .check import Check, NotConforming, checks_of, expect

THIS_MILLENNIUM: Final[Instant] = 946_684_800.0
PAUSE: Final = 0.05


async def the_clock_counts_seconds_since_1970() -> None:
    now = await Now()
    if not THIS_MILLENNIUM < now < 10 * THIS_MILLENNIUM:
        raise NotConforming(f"{now} is no number of seconds since 1970")
    expect("whether the clock goes backwards", await Now() < now, False)


async def random_bytes_are_as_many_as_asked_and_never_the_same() -> None:
    for count in (0, 1, 12, 32, 4096):
        expect(f"the length of {count} random bytes", len(await RandomBytes(count)), count)
    drawn = {await RandomBytes(16) for _ in range(100)}
    expect("how many of 100 random texts are different", len(drawn), 100)


async def every_kind_of_event_is_recorded() -> None:
    """With texts of any script."""
    text = "\u00e9\U0001f511"
    problem = Problem("ZeroDivisionError", where=(text,))
    await Record(
        RequestReceived(request_id="1", time=1.5, operation="read", path=text, mount_accessor="", policies=(text,))
    )
    await Record(RequestAnswered(request_id="1", time=1.5, status=500, codes=("internal_error",), problem=problem))
    await Record(LeaseChanged(lease_id=text, mount_id="m", state="issued"))
    await Record(IntentChanged(intent_id="i", mount_id="m", state="undoing failed", attempts=3, reason=text))
    await Record(RotationChanged(mount_id="m", phase="idle", reason=text))
    await Record(MountChanged(mount_accessor="a", path=text, state="enabled"))
    await Record(JobFailed(job="lease", problem=problem))


async def a_sleeper_wakes_when_the_time_has_come() -> None:
    before = await Now()
    await Sleep(PAUSE)
    slept = await Now() - before
    if slept < 0.9 * PAUSE:
        raise NotConforming(f"a sleep of {PAUSE} seconds took {slept}")


async def no_time_is_a_short_sleep() -> None:
    await Sleep(0)


BASIC_CHECKS: Final[tuple[Check, ...]] = (
    *checks_of(
        the_clock_counts_seconds_since_1970,
        random_bytes_are_as_many_as_asked_and_never_the_same,
        every_kind_of_event_is_recorded,
        waits=False,
    ),
    *checks_of(a_sleeper_wakes_when_the_time_has_come, no_time_is_a_short_sleep, waits=True),
)
