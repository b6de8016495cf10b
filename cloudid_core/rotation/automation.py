"""The background's part in automated rotation: it does what a plan says when that is due."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import Final

from attrs import evolve

from ..context import Context, Job, queue
from ..credentials import SecretHolder
from ..deadline import Deadline
from ..effects import Instant, Now
from ..errors import CloudidError, Conflict, EntryDamaged, reason_of
from ..events import RootSecretAtRisk
from ..mounts import Mount, mount_table
from ..routing import mount_client
from ..store import Changes, Found, expected, keys
from .plan import Plan, find_plan, find_undamaged_plan, make_plan, next_warning, replace_plan, replanned
from .record import Phase, Rotation, find_rotation, role_of
from .root import find_holder
from .start import start
from .switch import PROOF_SECONDS, prove_and_switch

EXPIRES: Final = "the secret is about to expire"
SLACK: Final = 1.0
"""Seconds by which a plan may be late before it is made anew."""


async def follow_plan(job: Job) -> None:
    """Rotate, warn, or put the plan off, as its records now say."""
    context = job.context
    role = role_of(job.ref)
    found = await find_plan(context, job.mount_id, role)
    if found is None or found.record.due_key != job.key:
        await queue.drop(job, keys.rotation_plan(job.mount_id, role), found)
        return
    mount = (await mount_table(context.records)).record.by_id.get(job.mount_id)
    holder = await find_holder(context, mount, role) if mount is not None else None
    rotation = await find_rotation(context, job.mount_id, role)
    rests_on = Changes({**job.fence, **expected(rotation, keys.rotation(job.mount_id, role))})
    if holder is not None:
        rests_on |= Changes(holder.expected)
    last = rotation.record if rotation else None
    plan = make_plan(job.mount_id, holder.record, last, found.record, job.now, role) if holder else None
    if mount is None or plan is None:
        await context.records.commit(rests_on | replace_plan(found, found.expected, None))
    elif plan.rotate_at is None or job.now < plan.rotate_at:
        after, warning = _warned(plan, holder, rotation, job.now)
        await context.records.commit(rests_on | replace_plan(found, found.expected, after) | warning)
    else:
        attempts = plan.attempts + 1
        again = await queue.retry_at(job, attempts)
        claimed = evolve(plan, attempts=attempts, not_before=again, rotate_at=again, due_at=again)
        await context.records.commit(rests_on | replace_plan(found, found.expected, claimed))
        await _attempt(job, mount, plan, rotation)


def _warned(
    plan: Plan, holder: Found[SecretHolder] | None, rotation: Found[Rotation] | None, now: Instant
) -> tuple[Plan, Changes]:
    """The plan after a warning about the end of the secret, if that is due."""
    key = rotation.record.key_of(holder.record.client_secret) if holder and rotation else None
    if key is None or key.expires_at is None or now < next_warning(key, plan.warned_at):
        return plan, Changes()
    due_at = min(inf if plan.rotate_at is None else plan.rotate_at, next_warning(key, now))
    event = RootSecretAtRisk(mount_id=plan.mount_id, role=plan.role, reason=EXPIRES, expires_at=key.expires_at)
    return evolve(plan, warned_at=now, due_at=due_at), Changes(events=(event,))


async def _attempt(job: Job, mount: Mount, plan: Plan, rotation: Found[Rotation] | None) -> None:
    """Rotate, unless a rotation is under way. What goes wrong is noted in the plan, and tried again in its window."""
    if rotation is not None and rotation.record.phase in (Phase.ADDING, Phase.PROVING):
        return
    until = plan.rule.end_of(plan.slot, job.now) if plan.rule and plan.slot is not None else None
    try:
        added = await start(job.context, mount, job.deadline, job.now, role=plan.role, until=until, fence=job.fence)
        client = await mount_client(job.context, mount.id, Deadline(await Now() + PROOF_SECONDS))
        await prove_and_switch(job.context, mount, client, added, job.fence)
    except Conflict:
        raise
    except CloudidError as failure:
        await _note(job, plan.role, reason_of(failure))


async def _note(job: Job, role: str, error: str) -> None:
    found = await find_plan(job.context, job.mount_id, role)
    if found is not None:
        noted = evolve(found.record, error=error)
        event = RootSecretAtRisk(mount_id=job.mount_id, role=role, reason=error)
        await job.context.records.commit(Changes({**job.fence, **found.expected}, {found.key: noted}, events=(event,)))


async def keep_plans(context: Context) -> None:
    """Make the plans that are missing, and those anew that a clock which was set back has left far in the future.

    Stores from before automated rotation have configurations without plans.
    """
    now = await Now()
    for mount in (await mount_table(context.records)).record.live:
        for role in ("", *await context.records.names(keys.static_roles(mount.id))):
            with suppress(Conflict, EntryDamaged):  # another node was faster, or the operator has to write it anew
                if holder := await find_holder(context, mount, role):
                    before = await find_undamaged_plan(context, mount.id, role)
                    plan, changes = await replanned(context, mount.id, holder.record, now, role=role)
                    if plan is not None and (before is None or plan.due_at + SLACK < before.record.due_at):
                        await context.records.commit(Changes(holder.expected) | changes)
