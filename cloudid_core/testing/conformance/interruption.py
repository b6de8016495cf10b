"""Checks of a store that is interrupted amid commits: connections are lost, its server is restarted or fails over.

Only the one who tests a host can do that, so the checks are handed a function that does it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from attrs import frozen

from ...effects import ABSENT, Commit, Effect, Entry, Host, ReadEntry, Sleep, gather
from ...errors import Conflict, OutcomeUnknown, StoreFailed
from .check import Check, NotConforming, checks_with, fresh_prefix

Interrupt: TypeAlias = Callable[[], Awaitable[object]]
"""Interrupts the store once, and returns when that is over."""

WRITERS: Final = 4
MOMENT: Final = 0.01
BEFORE_AND_AFTER: Final = 10
"""Commits of each writer before the interruption, and after it."""

PATIENCE: Final = 3000
"""Moments after which a store that still fails does not come back."""


class Interruption(Effect[object], frozen=True):
    """Interrupt the store."""

    interrupt: Interrupt

    def perform_on(self, host: Host) -> Awaitable[object]:
        return self.interrupt()


@frozen
class Outcome:
    """What a commit answered: its version, or `None` when it is certainly not written, or what was read thereafter."""

    version: int | None
    is_read: bool = False


async def readable(key: str) -> Entry | None:
    """What the store has, once it can be read."""
    for _ in range(PATIENCE):
        try:
            return await ReadEntry(key)
        except StoreFailed:
            await Sleep(MOMENT)
    raise NotConforming("the store did not come back")


async def outcome_of(key: str) -> Outcome:
    """Make an entry, and say what became of it."""
    try:
        return Outcome(await Commit({key: ABSENT}, {key: key.encode()}))
    except (StoreFailed, Conflict):
        return Outcome(None)
    except OutcomeUnknown:
        entry = await readable(key)
        return Outcome(entry.version if entry else None, is_read=True)


async def disturb(interrupt: Interrupt, is_over: list[bool]) -> None:
    """Interrupt the store while others write, and say when that is over."""
    await Sleep(BEFORE_AND_AFTER * MOMENT)
    await Interruption(interrupt)
    is_over.append(True)


async def outcomes_hold_when_the_store_is_interrupted(interrupt: Interrupt) -> None:
    """What was acknowledged stays, what was refused never comes, and what is read after an unknown outcome is final."""
    prefix = await fresh_prefix()
    outcomes: dict[str, Outcome] = {}
    is_over: list[bool] = []

    async def write(writer: int) -> None:
        number = left = 0
        while left < BEFORE_AND_AFTER:
            left += bool(is_over)
            key = f"{prefix}{writer}/{number}"
            outcomes[key] = await outcome_of(key)
            number += 1
            await Sleep(MOMENT)

    await gather([disturb(interrupt, is_over), *(write(writer) for writer in range(WRITERS))])
    await Sleep(BEFORE_AND_AFTER * MOMENT)
    for key, outcome in outcomes.items():
        entry = await readable(key)
        if outcome.version != (entry.version if entry else None):
            was = "acknowledged" if outcome.version else "refused"
            raise NotConforming(
                f"a commit that was {'read again as ' * outcome.is_read}{was} is {'there' if entry else 'not there'}"
            )
    if not any(outcome.version for outcome in outcomes.values()):
        raise NotConforming("nothing was written before or after the interruption")


async def no_update_is_lost_when_the_store_is_interrupted(interrupt: Interrupt) -> None:
    """Nor made twice: an entry that several count up has a step for each commit that was written."""
    key = await fresh_prefix() + "count"
    is_over: list[bool] = []
    written: list[int] = []
    unknown: list[int] = []

    async def count() -> None:
        left = 0
        while left < BEFORE_AND_AFTER:
            left += bool(is_over)
            entry = await readable(key)
            expected, number = (entry.version, int(entry.value)) if entry else (ABSENT, 0)
            try:
                written.append(await Commit({key: expected}, {key: b"%d" % (number + 1)}))
            except OutcomeUnknown:
                unknown.append(expected)
            except (Conflict, StoreFailed):
                pass
            await Sleep(MOMENT)

    await gather([disturb(interrupt, is_over), *(count() for _ in range(WRITERS))])
    entry = await readable(key)
    counted = int(entry.value) if entry else 0
    if not len(written) <= counted <= len(written) + len(unknown):
        raise NotConforming(f"{len(written)} steps were written, {len(unknown)} perhaps, but {counted} counted")


def interruption_checks(interrupt: Interrupt) -> tuple[Check, ...]:
    """Checks for a host whose store `interrupt` disturbs: it ends connections, restarts the server, fails over …

    With a fail-over, they hold only if the server that takes over has all that was acknowledged.
    """
    return checks_with(
        interrupt, outcomes_hold_when_the_store_is_interrupted, no_update_is_lost_when_the_store_is_interrupted
    )
