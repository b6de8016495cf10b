"""The end of a mount: the first commit frees its path and stops it from answering, then its objects are removed.

The mount's objects in Azure are passed to the journal, and its leases and tokens are ended. When nothing is left, its
storage is wiped. Until then, the mount stays in the table as a retired mount, because removing objects needs its
configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from attrs import Factory, evolve, frozen

from ..background import Intent, different_reasons, find_intent, rescheduled, undo_until
from ..context import NO_FENCE, Context, Due, Job, queue
from ..deadline import Deadline
from ..effects import MOST_COMMITTED, Instant, ListKeys, gather
from ..errors import CloudidError, EntryDamaged
from ..events import MountChanged
from ..mounts import AUTH, Mount, changing, mount_table
from ..provider import Removal, forget_mount
from ..quotas import Quotas, forget_quotas
from ..store import Changes, keys, retry_on_conflict
from ..tokens import Token
from .record import LEASES_AT_ONCE, Lease, find_undamaged_leases
from .revocation import end_leases
from .scope import Scope
from .synchronous import LANES, Attempts

AGAIN: Final = 60.0
"""Seconds between two checks of a retired mount that waits for its leases."""
PAGE: Final = LEASES_AT_ONCE
"""How many leases, tokens or intents one commit changes."""
ENTRIES: Final = MOST_COMMITTED - 10
"""How many entries one commit deletes, besides those that it expects."""
MOST_EXAMINED: Final = 1000
"""Maximum number of leases and intents that are read to explain why a mount still exists."""


@frozen(kw_only=True)
class Remains:
    """The objects in Azure that remain of a retired mount, according to its records."""

    leases: int = 0
    intents: int = 0
    roles: int = 0
    """Roles that own an app registration or a secret."""
    damaged: int = 0
    """Leases and intents whose entries are damaged. They can only be dropped."""
    is_rotating: bool = False
    attempts: int = 0
    """The highest number of attempts to remove an object."""
    next_at: Instant | None = None
    """When the next attempt is scheduled."""
    reasons: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return self.leases + self.intents + self.roles + self.is_rotating


@retry_on_conflict
async def retire(context: Context, mount: Mount, now: Instant, due_at: Instant) -> None:
    """Stop a mount from answering, and schedule its removal. Do nothing if the mount no longer exists.

    Its quotas are deleted immediately, because a new mount may be created at its path. The entry of its configuration
    is rewritten (empty if it was damaged), so that pending requests that expect it conflict.
    """
    table = await mount_table(context.records)
    found = table.record.by_id.get(mount.id)
    if found is None:
        return
    due = Changes(puts={keys.due(due_at, queue.MOUNT, mount.id, ""): Due()})
    changes = changing(table, table.record.with_retired(found, now)) | due
    if form := context.components.of(mount).config:
        key = keys.config(mount.id)
        config, expects = await context.records.find_for_writing(key, form)
        changes |= Changes(expects, {key: config.record if config else form()})
    quotas, expects = await context.records.find_for_writing(keys.QUOTAS, Quotas)
    if quotas is not None:
        changes |= Changes(expects, {keys.QUOTAS: quotas.record.without_mount(found.path)})
    await context.records.commit(changes)
    forget_quotas(context)
    forget_mount(context.caches, mount.id)


async def remove_now(context: Context, mount: Mount, now: Instant, deadline: Deadline) -> Attempts:
    """Try once, within a request, to remove all objects of a retired mount from Azure, as long as there is time."""
    scope, attempts = Scope(mount), Attempts(context, now, deadline)
    await context.components.of(mount).release(context, mount, now, NO_FENCE)
    await attempts.mark(scope, attempts.due_at)
    await attempts.work_off(scope)
    prefix, after = keys.intents(mount.id), ""
    while not await attempts.are_over() and (page := await ListKeys(prefix, after, LANES)):
        after = page[-1]
        attempts.left += len(page)
        await gather([attempts.note(_undo_intent(attempts, mount, key.removeprefix(prefix))) for key in page])
    return attempts


async def try_at_once(context: Context, mount: Mount, now: Instant, deadline: Deadline) -> None:
    """Schedule the removal of all objects of a retired mount now.

    Intents whose requests may still be running are not changed.
    """
    await Attempts(context, now, deadline).mark(Scope(mount), now)
    prefix, after = keys.intents(mount.id), ""
    while page := await ListKeys(prefix, after, PAGE):
        after = page[-1]
        await deadline.remaining()
        for key in page:
            await _hasten(context, mount, key.removeprefix(prefix), now)


@retry_on_conflict
async def _hasten(context: Context, mount: Mount, intent_id: str, now: Instant) -> None:
    with suppress(EntryDamaged):
        found = await find_intent(context, mount.id, intent_id)
        if found is not None and found.record.attempts and found.record.due_at > now:
            await context.records.commit(rescheduled(found, evolve(found.record, due_at=now)))


async def _undo_intent(attempts: Attempts, mount: Mount, intent_id: str) -> Removal | None:
    """Try once to undo an intent that is due. Other intents belong to requests that may still be running."""
    found = await find_intent(attempts.context, mount.id, intent_id)
    if found is None:
        return None
    if found.record.due_at > attempts.now:
        raise CloudidError("a request that may still be in progress uses it")
    return await undo_until(attempts.job(mount.id, intent_id, attempts.ends_at), found, attempts.due_at)


async def what_remains(context: Context, mount: Mount) -> Remains:
    """Return what remains of a retired mount, and why.

    Intents are read last, because objects move to them from everything else.
    """
    rotations = await ListKeys(keys.due_queue(mount.id, queue.ROTATION), "", 1)
    rotates_at = [queue.parse(key)[0] for key in rotations if queue.is_named(key)]
    roles = await context.components.of(mount).count_kept(context, mount)
    leases = await context.records.names(keys.mount_leases(mount.id))
    intents = await context.records.names(keys.intents(mount.id))
    known_leases, damaged_leases = await context.records.find_all_fresh(
        [keys.lease(lease_id) for lease_id in leases[:MOST_EXAMINED]], Lease
    )
    known_intents, damaged_intents = await context.records.find_all_fresh(
        [keys.intent(mount.id, intent_id) for intent_id in intents[:MOST_EXAMINED]], Intent
    )
    pending: list[Lease | Intent] = [found.record for found in known_leases]
    pending += [found.record for found in known_intents]
    due_times = [record.due_at for record in pending] + rotates_at
    return Remains(
        leases=len(leases),
        intents=len(intents),
        roles=roles,
        is_rotating=bool(rotations),
        attempts=max((record.attempts for record in pending), default=0),
        next_at=min(due_times, default=None),
        damaged=len(damaged_leases) + len(damaged_intents),
        reasons=different_reasons(record.reason for record in pending),
    )


@frozen(kw_only=True)
class Dropped:
    """The records of a retired mount that were dropped, although their objects remain in Azure."""

    leases: list[Lease] = Factory(list)
    intents: list[Intent] = Factory(list)
    damaged: list[str] = Factory(list)
    """Ids of leases and intents whose entries were damaged, so that their objects are unknown."""


async def drop_remains(context: Context, mount: Mount, now: Instant, deadline: Deadline) -> Dropped:
    """Drop the records of all objects of a retired mount in Azure. The background work wipes its storage."""
    dropped = Dropped()
    await context.components.of(mount).release(context, mount, now, NO_FENCE)
    for prefix, drop in ((keys.mount_leases(mount.id), _drop_leases), (keys.intents(mount.id), _drop_intents)):
        while page := await ListKeys(prefix, "", PAGE):
            await deadline.remaining()
            await drop(context, mount, page, prefix, dropped)
    for prefix in (keys.roles(mount.id), keys.static_roles(mount.id), keys.static_rotations(mount.id)):
        while page := await ListKeys(prefix, "", ENTRIES):  # `release` has passed over the damaged ones
            await context.records.commit(Changes(deletes=page))
    due_keys = await ListKeys(keys.due_queue(mount.id, queue.ROTATION))
    await context.records.commit(Changes(deletes=(keys.rotation(mount.id), *due_keys)))
    return dropped


@retry_on_conflict
async def _drop_leases(context: Context, mount: Mount, page: Sequence[str], prefix: str, dropped: Dropped) -> None:
    lease_ids = [key.removeprefix(prefix) for key in page]
    leases, damaged = await context.records.find_all_fresh([keys.lease(each) for each in lease_ids], Lease)
    changes = Changes(deletes=tuple(page))
    damaged_ids = [each.key.removeprefix(keys.LEASES) for each in damaged]
    for each, lease_id in zip(damaged, damaged_ids, strict=True):
        changes |= Changes({each.key: each.version}, deletes=(each.key, keys.stuck(mount.id, lease_id)))
    for found in leases:
        deletes = found.record.removal.deletes
        changes |= Changes(found.expected, deletes=deletes, events=(found.record.event("dropped"),))
    await context.records.commit(changes)
    dropped.leases.extend(found.record for found in leases)
    dropped.damaged.extend(damaged_ids)


@retry_on_conflict
async def _drop_intents(context: Context, mount: Mount, page: Sequence[str], prefix: str, dropped: Dropped) -> None:
    intents, damaged = await context.records.find_all_fresh(page, Intent)
    changes = Changes()
    for each in damaged:
        changes |= Changes({each.key: each.version}, deletes=(each.key,))
    for found in intents:
        deletes = (found.key, found.record.due_key)
        changes |= Changes(found.expected, deletes=deletes, events=(found.record.event("dropped"),))
    await context.records.commit(changes)
    dropped.intents.extend(found.record for found in intents)
    dropped.damaged.extend(each.key.removeprefix(prefix) for each in damaged)


async def wipe_mount(job: Job) -> None:
    """Do one round for a retired mount. The next one is scheduled soon unless this was the last."""
    context = job.context
    table = await mount_table(context.records)
    mount = table.record.retired.get(job.mount_id)
    if mount is None:
        await context.records.commit(Changes({**job.fence, **table.expected}, deletes=(job.key,)))
        return
    await context.components.of(mount).release(context, mount, job.now, job.fence)
    if mount.kind == AUTH:
        await _end_tokens(job)
    for prefix in (keys.mount_leases(mount.id), keys.batch_leases(mount.id)):
        await _end_leases(job, prefix)
    if job.now < quiet_at(context, mount) or await _is_something_left(job, mount):
        again = keys.due(max(job.now + AGAIN, quiet_at(context, mount)), queue.MOUNT, mount.id, "")
        await context.records.commit(Changes(job.fence, {again: Due()}, (job.key,)))
        return
    while page := await ListKeys(keys.mount(mount.id), "", ENTRIES):
        await context.records.commit(Changes(job.fence, deletes=page))
    table = await mount_table(context.records)
    expects = {**job.fence, **table.expected}
    wiped = MountChanged(mount_accessor=mount.accessor, path=mount.path, state="wiped")
    without = {keys.MOUNTS: table.record.without(mount.id)}
    await context.records.commit(Changes(expects, without, (job.key,), (wiped,)))


def quiet_at(context: Context, mount: Mount) -> Instant:
    """Return when every request has ended that was dispatched to the mount before it was retired."""
    return (mount.retired_at or 0.0) + context.settings.request_deadline + context.settings.request_grace


async def _is_something_left(job: Job, mount: Mount) -> bool:
    """Return whether objects of the mount must still be removed from Azure.

    Intents are read last: other work moves objects from rotations and leases to intents, never back.
    """
    rotation = keys.due_queue(job.mount_id, queue.ROTATION)
    for prefix in (rotation, keys.mount_leases(job.mount_id), keys.intents(job.mount_id)):
        if await ListKeys(prefix, "", 1):
            return True
    return await job.context.components.of(mount).count_kept(job.context, mount) > 0


async def _end_leases(job: Job, prefix: str) -> None:
    """Schedule the revocation of all leases of an index that are not being revoked already."""
    after = ""
    while page := await ListKeys(prefix, after, PAGE):
        after = page[-1]
        leases = await find_undamaged_leases(job.context, (key.removeprefix(prefix) for key in page))
        alive = [found.record.id for found in leases if not found.record.revoking]
        await end_leases(job.context, alive, job.now, fence=job.fence)


async def _end_tokens(job: Job) -> None:
    """Delete all tokens of a mount, and schedule what depends on them. To callers, they are already invalid."""
    after = ""
    while page := await ListKeys(keys.TOKENS, after, PAGE):
        after = page[-1]
        changes = Changes()
        for found in await job.context.records.find_undamaged(page, Token):
            if found.record.mount_id == job.mount_id and not found.record.released:
                changes |= Changes(found.expected) | found.record.ending(job.now)
        if changes.expects:
            await job.context.records.commit(Changes(job.fence) | changes)
