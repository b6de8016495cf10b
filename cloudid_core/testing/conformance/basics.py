"""Checks of time, chance and audit."""

from __future__ import annotations

from typing import Final

from ...effects import Instant, Now, RandomBytes, Record, Sleep
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


async def an_audit_event_is_recorded() -> None:
    """Any JSON object."""
    await Record({"type": "test", "text": "\u00e9\U0001f511", "list": [1, 2.5, None, True], "object": {"a": {}}})


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
        an_audit_event_is_recorded,
        waits=False,
    ),
    *checks_of(a_sleeper_wakes_when_the_time_has_come, no_time_is_a_short_sleep, waits=True),
)
