"""The background's part in rotations: the next step of one, and what a plan says, whenever that is due.

At the end of a rotation the keys that were replaced are removed, once the one in use has been proven again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import Final

from attrs import evolve

from ..context import Context, Job, queue
from ..credentials import Key, SecretHolder
from ..deadline import Deadline
from ..effects import Instant, Now
from ..errors import CloudidError, Code, Conflict, EntryDamaged, Refused, reason_of
from ..events import RootSecretAtRisk
from ..mounts import Mount, mount_table
from ..provider import PROOFS, SECRET, Client, find_application
from ..routing import mount_client
from ..store import Changes, Found, expected, keys
from .plan import Plan, find_plan, find_undamaged_plan, make_plan, next_warning, replace_plan, replanned
from .record import Phase, Rotation, find_rotation, find_undamaged_rotation, overruled, role_of
from .root import Subject, find_holder, find_root, is_used_elsewhere
from .start import abandoned_key, give_up, start
from .switch import CHANGED, PROOF_SECONDS, accepted, is_home, prove_and_switch, switch_back

PROVING_LIMIT: Final = 3600.0
"""Seconds after which a secret that does not come to be accepted is given up."""
INTERRUPTED: Final = "the rotation was interrupted before the new secret was stored"
WINDOW_OVER: Final = "the rotation window ended before Azure accepted the new secret"
NOT_ACCEPTED: Final = "Azure does not accept the new secret"
OVERRULED: Final = "the configuration was changed: client secrets of the mount's app registration remain in Azure"
SHARED: Final = "a replaced secret remains in Azure, because another mount uses it"
STUCK: Final = "Azure accepts neither the new secret nor the previous one"
EXPIRES: Final = "the secret is about to expire"
SLACK: Final = 1.0
"""Seconds by which a plan may be late before it is recomputed."""


async def advance(job: Job) -> None:
    """Take a rotation on. The attempt is claimed by a commit first; what goes wrong is noted, and tried again later."""
    role = role_of(job.ref)
    found = await find_rotation(job.context, job.mount_id, role)
    mount = (await mount_table(job.context.records)).record.with_storage(job.mount_id)
    if found is None or mount is None or found.record.is_idle or found.record.due_key != job.key:
        await queue.drop(job, keys.rotation(job.mount_id, role), found)
        return
    attempts = found.record.attempts + 1
    claimed = evolve(found.record, attempts=attempts, due_at=await _retry_at(job, found.record, attempts))
    subject = Subject(context=job.context, mount=mount, role=role, fence=job.fence)
    claim = await subject.write(found, claimed)
    try:
        await _step(job, subject, claim)
    except Conflict:
        raise
    except CloudidError as failure:
        noted = evolve(claimed, error=reason_of(failure))
        expects = {**job.fence, **claim.expected}
        await job.context.records.commit(Changes(expects, {claim.key: noted}, events=(noted.event,)))


async def _retry_at(job: Job, rotation: Rotation, attempts: int) -> Instant:
    """Return when to try again, at the latest when the secret is to be given up."""
    again = await queue.retry_at(job, attempts)
    until = rotation.until if rotation.phase is Phase.PROVING else None
    return again if until is None or until <= job.now else min(again, until)


async def _step(job: Job, subject: Subject, claim: Found[Rotation]) -> None:
    rotation, holder = claim.record, await subject.holder()
    if rotation.phase is Phase.OVERLAPPING:
        await retire(job, subject, holder, claim)
    elif rotation.phase is Phase.ADDING:
        await give_up(subject, claim, job.now, INTERRUPTED)
    elif holder is None or subject.mount.retired_at is not None:
        await give_up(subject, claim, job.now, CHANGED)
    elif rotation.until is not None and job.now >= rotation.until:
        await give_up(subject, claim, job.now, WINDOW_OVER)
    elif job.now >= rotation.started_at + PROVING_LIMIT:
        await give_up(subject, claim, job.now, NOT_ACCEPTED)
    else:
        client = await mount_client(job.context, job.mount_id, Deadline(job.now + PROOF_SECONDS))
        await prove_and_switch(subject, client, claim)


async def retire(job: Job, subject: Subject, holder: Found[SecretHolder] | None, found: Found[Rotation]) -> None:
    """Remove what the secret in use has replaced; go back to the secret before it if it no longer works.

    Nothing is removed that any mount of this service is configured with, nor anything of a configuration that someone
    else has changed.
    """
    rotation = found.record
    if rotation.current is None or holder is None or holder.record.client_secret != rotation.current.secret:
        await subject.write(found, overruled(rotation, OVERRULED))
        return
    client = await mount_client(job.context, job.mount_id, job.deadline)
    is_used = bool(rotation.role) or client.credentials.client_secret == rotation.current.secret
    if not is_used or not is_home(client, holder.record, rotation):
        await subject.write(found, overruled(rotation, OVERRULED))
    elif await accepted(subject, client, rotation, rotation.current):
        again = await subject.holder()
        if again is None or again.record.client_secret != rotation.current.secret:  # perhaps that which is to go
            raise Conflict(f"the secret of {holder.key} was changed by another request")
        await _remove_replaced(subject, client, found, job.now)
    elif rotation.replaced and await accepted(subject, client, rotation, rotation.replaced):
        await switch_back(subject, holder, found, job.now)
    elif rotation.replaced or rotation.outgoing:
        await subject.write(found, evolve(rotation, error=STUCK))
    else:  # a first secret: nothing waits for it to be accepted again
        await subject.write(found, evolve(rotation, phase=Phase.IDLE, attempts=0, error=STUCK))


async def _remove_replaced(subject: Subject, client: Client, found: Found[Rotation], now: Instant) -> None:
    rotation = found.record
    left: list[Key] = []
    shared: list[Key] = []
    note = rotation.note
    for key in (*rotation.outgoing, *((rotation.replaced,) if rotation.replaced else ())):
        if not key.id:
            continue  # its id is unknown: it stays, as the note says
        if await is_used_elsewhere(subject.context, "" if rotation.role else rotation.mount_id, key.secret):
            note = SHARED
            shared.append(key)
        elif not await _try_remove(client, rotation, key, now):
            left.append(key)
    after = evolve(rotation, replaced=None, outgoing=(*left, *shared), note=note)
    if not left:
        after = evolve(after, phase=Phase.IDLE, attempts=0, error="")
    await subject.write(found, after)


async def _try_remove(client: Client, rotation: Rotation, key: Key, now: Instant) -> bool:
    """Try to remove a key. Return whether it certainly no longer exists: one that is not found may not be shown yet."""
    if await PROOFS[key.proof].remove(client, rotation.home.object_id, key.name, key.id):
        return True
    application = await find_application(client, rotation.home.object_id)
    settled = key.made_at is None or now >= key.made_at + client.settings.settle_time
    return settled and all(password.key_id != key.id for password in (application.passwords if application else ()))


async def forgotten(context: Context, mount_id: str, role: str, now: Instant, *, leaves_last: bool) -> Changes:
    """Removes the rotation of a static role with the role; the journal removes its keys.

    `leaves_last`: but the secret in use, which others have. No one has any other key.

    Refused while a secret is being made: it is not known yet by which key it can be removed.
    """
    found, expects = await context.records.find_for_writing(keys.rotation(mount_id, role), Rotation)
    _, planned = await replanned(context, mount_id, None, now, role=role)
    changes = planned | Changes(expects, deletes=(keys.rotation(mount_id, role),))
    if found is None:
        return changes
    rotation = found.record
    if rotation.phase is Phase.ADDING:
        raise Refused(Code.ROLE_CHANGE_PENDING, retry_after=max(1.0, rotation.due_at - now))
    for key in rotation.known_keys:
        if not (leaves_last and key is rotation.in_use and key.proof == SECRET):
            changes |= abandoned_key(rotation, now, key).abandonment
    return changes | Changes(deletes=(rotation.due_key,))


async def release_former(context: Context, mount: Mount, now: Instant, fence: Mapping[str, int]) -> None:
    """Give the journal the root secrets that a retired mount has made and that no configuration has any more.

    They stay where the mount cannot remove them: its configuration is that of another application, empty or damaged.
    """
    with suppress(EntryDamaged, Refused):
        found, root = await find_undamaged_rotation(context, mount.id), await find_root(context, mount)
        client = await mount_client(context, mount.id, Deadline(now))
        if not (found and root and found.record.is_idle and is_home(client, root.record, found.record)):
            return
        changes = Changes({**fence, **found.expected, **root.expected}, deletes=(found.key,))
        for key in found.record.known_keys:
            is_former = key.made_at is not None and key.secret != root.record.client_secret
            if is_former and not await is_used_elsewhere(context, mount.id, key.secret):
                changes |= abandoned_key(found.record, now, key).abandonment
        if changes.puts:
            await context.records.commit(changes)


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
    """Return the plan after a warning about the end of the secret, if one is due."""
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
    subject = Subject(context=job.context, mount=mount, role=plan.role, fence=job.fence)
    try:
        added = await start(subject, job.deadline, job.now, until=until)
        client = await mount_client(job.context, mount.id, Deadline(await Now() + PROOF_SECONDS))
        await prove_and_switch(subject, client, added)
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
    """Make missing plans, and recompute those that a clock which was set back has left far in the future.

    Stores from before automated rotation have configurations without plans.
    """
    now = await Now()
    for mount in (await mount_table(context.records)).record.live:
        for role in ("", *await context.records.names(keys.static_roles(mount.id))):
            with suppress(Conflict, EntryDamaged):  # another node was faster, or the operator has to rewrite it
                if holder := await find_holder(context, mount, role):
                    before = await find_undamaged_plan(context, mount.id, role)
                    plan, changes = await replanned(context, mount.id, holder.record, now, role=role)
                    if plan is not None and (before is None or plan.due_at + SLACK < before.record.due_at):
                        await context.records.commit(Changes(holder.expected) | changes)
