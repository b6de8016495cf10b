"""When the secret of a mount or static role is rotated next, by which rule, and from when on its end is warned about.

A plan is recomputed from the holder of the secret and the last rotation whenever one of them changes or it is due, so
it never becomes stale. It has one due entry, which survives restarts and changes of node.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

from attrs import evolve, frozen

from ..context import Context, Due, queue
from ..credentials import Key, SecretHolder
from ..effects import ABSENT, Instant
from ..store import Changes, Found, keys
from ..values import DAY, Schedule
from .record import Rotation, ref_of

LONGEST_OVERLAP: Final = 300.0
"""Seconds for which the old and the new secret both live, at most."""
WARN_AHEAD: Final = 14 * DAY
"""Seconds before the end of a root secret from which on it is warned about, at most."""
FIRST: Final = 0.0
"""The slot of what has no secret yet."""


@frozen(kw_only=True)
class Rule:
    """How often a secret is rotated: every `period` seconds, or by a `schedule` within a `window` of seconds."""

    period: int = 0
    schedule: str = ""
    window: int = 0

    @classmethod
    def of(cls, holder: SecretHolder) -> Rule | None:
        """Return the rule of the holder of a secret. `None`: it has none."""
        if holder.disable_automated_rotation or not (holder.rotation_period or holder.rotation_schedule):
            return None
        return cls(period=holder.rotation_period, schedule=holder.rotation_schedule, window=holder.rotation_window)

    def next_after(self, instant: Instant) -> Instant:
        """Return when the rotation after an instant is scheduled."""
        return instant + self.period if self.period else Schedule.parse(self.schedule).next_after(instant)

    def is_open(self, slot: Instant, now: Instant) -> bool:
        """Return whether a rotation that was due may still start: in its window, or until the next one is due."""
        return not self.window or now < slot + self.window

    def end_of(self, slot: Instant, now: Instant) -> Instant | None:
        """Return when a rotation that starts now is given up.

        `None`: never, because it follows a period, is early, or creates the first secret.
        """
        if self.period or now < slot or slot == FIRST:
            return None
        return slot + self.window if self.window else self.next_after(now)


@frozen(kw_only=True)
class Plan:
    """One for each holder (`role`: a static one) whose secret is rotated by a rule, or ends at a known time.

    `slot` is when the rule wants the next rotation. `rotate_at` is when it is tried: earlier if the secret ends before
    that (`is_early`), later after a failure. `since` is when the rule was written.
    """

    mount_id: str
    role: str = ""
    rule: Rule | None
    since: Instant
    slot: Instant | None
    rotate_at: Instant | None
    due_at: Instant
    is_early: bool = False
    not_before: Instant = 0.0
    attempts: int = 0
    error: str = ""
    warned_at: Instant = 0.0

    @property
    def key(self) -> str:
        return keys.rotation_plan(self.mount_id, self.role)

    @property
    def due_key(self) -> str:
        return keys.due(self.due_at, queue.ROTATION_PLAN, self.mount_id, ref_of(self.role))


def make_plan(
    mount_id: str, holder: SecretHolder, rotation: Rotation | None, before: Plan | None, now: Instant, role: str = ""
) -> Plan | None:
    """Return the plan for the holder of a secret, from its last rotation and plan. `None`: nothing is scheduled.

    A holder without a secret gets one immediately.
    """
    rule = Rule.of(holder)
    key = rotation.key_of(holder.client_secret) if rotation else None
    if rule is None and (key is None or key.expires_at is None):
        return None
    rotated_at = rotation.rotated_at if rotation else None
    if rotated_at is not None and rotated_at > now:  # the clock was set back
        rotated_at = None
    since = _since(rule, before, now)
    slot = FIRST if holder.awaits_secret else _slot(rule, since, rotated_at, before, now) if rule else None
    early = _ahead(key, DAY, 2)  # a day before its end, or at half its life, whatever the rule says
    rotate_at = now if slot == FIRST else None if slot is None else min(slot, early)
    tried = before if before is not None and before.slot == slot and before.attempts > 0 else None
    not_before = tried.not_before if tried else 0.0
    warned_at = min(before.warned_at, now) if before else 0.0
    if rotate_at is not None:
        rotate_at = max(rotate_at, not_before)
    return Plan(
        mount_id=mount_id,
        role=role,
        rule=rule,
        since=since,
        slot=slot,
        rotate_at=rotate_at,
        due_at=min(rotate_at if rotate_at is not None else inf, next_warning(key, warned_at)),
        is_early=slot is not None and early < slot,
        not_before=not_before,
        attempts=tried.attempts if tried else 0,
        error=before.error if before else "",
        warned_at=warned_at,
    )


def _since(rule: Rule | None, before: Plan | None, now: Instant) -> Instant:
    """From when a period counts before the first rotation. A rule that was disabled starts again."""
    if rule is None or before is None or before.rule is None or before.rule.schedule:
        return now
    return min(before.since, now)


def _slot(rule: Rule, since: Instant, rotated_at: Instant | None, before: Plan | None, now: Instant) -> Instant:
    if rule.period:
        return max(since, rotated_at or 0.0) + rule.period
    following = rule.next_after(now)
    if before is None or before.rule is None or before.rule.schedule != rule.schedule or before.slot is None:
        return following
    is_done = rotated_at is not None and rotated_at >= before.slot
    if before.slot <= now and (is_done or not rule.is_open(before.slot, now)):
        return following
    return min(before.slot, following)  # a clock that was set back has slots before it


def next_warning(key: Key | None, warned_at: Instant) -> Instant:
    """Return when to warn next of the end of a secret: daily, from two weeks or a quarter of its life before it."""
    return max(warned_from(key), warned_at + DAY)


def warned_from(key: Key | None) -> Instant:
    return _ahead(key, WARN_AHEAD, 4)


def _ahead(key: Key | None, seconds: float, share: int) -> Instant:
    """So many seconds before the end of a secret, or a share of its life; never where too little is known."""
    if key is None or key.expires_at is None or key.made_at is None:
        return inf
    return key.expires_at - min(seconds, (key.expires_at - key.made_at) / share)


def overlap(holder: SecretHolder, now: Instant) -> float:
    """Seconds for which both secrets live after a rotation now: at most half the time until the next one."""
    rule = Rule.of(holder)
    return LONGEST_OVERLAP if rule is None else min(LONGEST_OVERLAP, (rule.next_after(now) - now) / 2)


async def find_plan(context: Context, mount_id: str, role: str = "") -> Found[Plan] | None:
    return await context.records.find_fresh(keys.rotation_plan(mount_id, role), Plan)


async def find_undamaged_plan(context: Context, mount_id: str, role: str = "") -> Found[Plan] | None:
    """Return a plan like `find_plan`, where no plan is acceptable: a damaged one is recomputed."""
    return next(iter(await context.records.find_undamaged([keys.rotation_plan(mount_id, role)], Plan)), None)


def replace_plan(found: Found[Plan] | None, expects: Mapping[str, int], after: Plan | None) -> Changes:
    """Takes a plan from one state to the next, and its due entry with it. `expects`: its entry, damaged or not."""
    changes = Changes(expects, deletes=tuple(key for key, version in expects.items() if version != ABSENT))
    if found is not None:
        changes |= Changes(deletes=(found.record.due_key,))
    return changes | Changes(puts={after.key: after, after.due_key: Due()} if after else {})


async def replanned(
    context: Context,
    mount_id: str,
    holder: SecretHolder | None,
    now: Instant,
    rotated: Rotation | None = None,
    role: str = "",
) -> tuple[Plan | None, Changes]:
    """Return the plan of a holder that is about to be written (`None`: removed), and the changes for it.

    `rotated` is the rotation that has just succeeded, and is about to be written with it.
    """
    before, expects = await context.records.find_for_writing(keys.rotation_plan(mount_id, role), Plan)
    known = before.record if before else None
    if rotated is None:
        found, grounds = await context.records.find_for_writing(keys.rotation(mount_id, role), Rotation)
        rests_on = Changes(grounds)
        rotation = found.record if found else None
    else:
        rests_on, rotation = Changes(), rotated
        known = evolve(known, error="", attempts=0) if known else None
    after = make_plan(mount_id, holder, rotation, known, now, role) if holder is not None else None
    return after, rests_on | replace_plan(before, expects, after)
