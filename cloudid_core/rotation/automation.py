"""The background's part in automated rotation: it does what a plan says when that is due."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import Final

from attrs import evolve

from ..context import Context, Job, queue
from ..credentials import RootCredential
from ..deadline import Deadline
from ..effects import Instant, Now
from ..errors import CloudidError, Conflict, EntryDamaged, reason_of
from ..events import RootSecretAtRisk
from ..mounts import Mount, mount_table
from ..routing import mount_client
from ..store import Changes, Found, expected, keys
from .plan import Plan, find_plan, find_undamaged_plan, make_plan, next_warning, replace_plan, replanned
from .record import Phase, Rotation, find_rotation
from .root import find_root
from .start import start
from .switch import PROOF_SECONDS, prove_and_switch

EXPIRES: Final = "the root secret is about to expire"
SLACK: Final = 1.0
"""Seconds by which a plan may be late before it is made anew."""


async def follow_plan(job: Job) -> None:
    """Rotate, warn, or put the plan off, as its records now say."""
    context = job.context
    found = await find_plan(context, job.mount_id)
    if found is None or found.record.due_key != job.key:
        await queue.drop(job, keys.rotation_plan(job.mount_id), found)
        return
    mount = (await mount_table(context.records)).record.by_id.get(job.mount_id)
    root = await find_root(context, mount) if mount is not None else None
    rotation = await find_rotation(context, job.mount_id)
    rests_on = Changes({**job.fence, **expected(rotation, keys.rotation(job.mount_id))})
    if root is not None:
        rests_on |= Changes(root.expected)
    plan = _current(job, root, rotation, found.record)
    if mount is None or plan is None:
        await context.records.commit(rests_on | replace_plan(found, found.expected, None))
    elif plan.rotate_at is None or job.now < plan.rotate_at:
        after, warning = _warned(plan, root, rotation, job.now)
        await context.records.commit(rests_on | replace_plan(found, found.expected, after) | warning)
    else:
        attempts = plan.attempts + 1
        again = await queue.retry_at(job, attempts)
        claimed = evolve(plan, attempts=attempts, not_before=again, rotate_at=again, due_at=again)
        await context.records.commit(rests_on | replace_plan(found, found.expected, claimed))
        await _attempt(job, mount, plan, rotation)


def _current(
    job: Job, root: Found[RootCredential] | None, rotation: Found[Rotation] | None, before: Plan
) -> Plan | None:
    if root is None:
        return None
    return make_plan(job.mount_id, root.record, rotation.record if rotation else None, before, job.now)


def _warned(
    plan: Plan, root: Found[RootCredential] | None, rotation: Found[Rotation] | None, now: Instant
) -> tuple[Plan, Changes]:
    """The plan after a warning about the end of the secret, if that is due."""
    key = rotation.record.key_of(root.record.client_secret) if root and rotation else None
    if key is None or key.expires_at is None or now < next_warning(key, plan.warned_at):
        return plan, Changes()
    due_at = min(inf if plan.rotate_at is None else plan.rotate_at, next_warning(key, now))
    event = RootSecretAtRisk(mount_id=plan.mount_id, reason=EXPIRES, expires_at=key.expires_at)
    return evolve(plan, warned_at=now, due_at=due_at), Changes(events=(event,))


async def _attempt(job: Job, mount: Mount, plan: Plan, rotation: Found[Rotation] | None) -> None:
    """Rotate, unless a rotation is under way. What goes wrong is noted in the plan, and tried again in its window."""
    if rotation is not None and rotation.record.phase in (Phase.ADDING, Phase.PROVING):
        return
    until = plan.rule.end_of(plan.slot, job.now) if plan.rule and plan.slot is not None else None
    try:
        added = await start(job.context, mount, job.deadline, job.now, until=until, fence=job.fence)
        client = await mount_client(job.context, mount.id, Deadline(await Now() + PROOF_SECONDS))
        await prove_and_switch(job.context, mount, client, added, job.fence)
    except Conflict:
        raise
    except CloudidError as failure:
        await _note(job, reason_of(failure))


async def _note(job: Job, error: str) -> None:
    found = await find_plan(job.context, job.mount_id)
    if found is not None:
        noted = evolve(found.record, error=error)
        event = RootSecretAtRisk(mount_id=job.mount_id, reason=error)
        await job.context.records.commit(Changes({**job.fence, **found.expected}, {found.key: noted}, events=(event,)))


async def keep_plans(context: Context) -> None:
    """Make the plans that are missing, and those anew that a clock which was set back has left far in the future.

    Stores from before automated rotation have configurations without plans.
    """
    now = await Now()
    for mount in (await mount_table(context.records)).record.live:
        with suppress(Conflict, EntryDamaged):  # another node was faster, or the operator has to write it anew
            await _keep_plan(context, mount, now)


async def _keep_plan(context: Context, mount: Mount, now: Instant) -> None:
    root = await find_root(context, mount)
    if root is None:
        return
    before = await find_undamaged_plan(context, mount.id)
    plan, changes = await replanned(context, mount.id, root.record, now)
    if plan is not None and (before is None or plan.due_at + SLACK < before.record.due_at):
        await context.records.commit(Changes(root.expected) | changes)
