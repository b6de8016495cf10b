"""The end of a mount: it answers no more from the first commit on; the rest is done in the background, however often.

What the mount keeps at the provider is given up, its leases and tokens are ended, and when nothing is left to be undone
its storage is wiped. Until then it stays in the table, retired: to undo something takes its configuration.
"""

from __future__ import annotations

from typing import Final

from ..background import queue
from ..background.queue import Due, Job
from ..effects import Instant, ListKeys
from ..events import MountChanged
from ..foundation.context import Context
from ..leases.record import find_lease
from ..leases.revocation import end_leases
from ..store import keys
from ..store.changes import Changes
from ..tokens.authenticate import find_token
from .table import AUTH, Mount, MountTable, change_mounts, mount_table

AGAIN: Final = 60.0
"""Seconds after which a mount is looked at again that waits for its leases."""
PAGE: Final = 100


async def retire(context: Context, mount: Mount, now: Instant) -> None:
    """Have a mount answer no more, and the rest done soon. Nothing is to be done for one that is gone already."""

    def retired(table: MountTable) -> MountTable:
        found = table.by_id.get(mount.id)
        return table.with_retired(found, now) if found else table

    await change_mounts(context.records, retired, {keys.due(now, queue.MOUNT, mount.id, ""): Due()})


async def wipe_mount(job: Job) -> None:
    """One round for a retired mount; the next one is due soon unless it was the last."""
    context = job.context
    table = await mount_table(context.records)
    mount = table.record.retired.get(job.mount_id)
    if mount is None:
        await context.records.commit(Changes({**job.fence, **table.expected}, deletes=(job.key,)))
        return
    await context.components.release(context, mount, job.now, job.fence)
    await (_end_tokens(job) if mount.kind == AUTH else _end_leases(job))
    if job.now < quiet_at(context, mount) or await _is_something_left(job):
        again = keys.due(max(job.now + AGAIN, quiet_at(context, mount)), queue.MOUNT, mount.id, "")
        await context.records.commit(Changes(job.fence, {again: Due()}, (job.key,)))
        return
    while page := await ListKeys(keys.mount(mount.id), "", PAGE):
        await context.records.commit(Changes(job.fence, deletes=page))
    table = await mount_table(context.records)
    expects = {**job.fence, **table.expected}
    wiped = MountChanged(mount_accessor=mount.accessor, path=mount.path, state="wiped")
    changes = Changes(expects, {keys.MOUNTS: table.record.without(mount.id)}, (job.key,), (wiped,))
    await context.records.commit(changes)


def quiet_at(context: Context, mount: Mount) -> Instant:
    """When no request is alive any more that found the mount while it still answered."""
    return (mount.retired_at or 0.0) + context.settings.request_deadline + context.settings.request_grace


async def _is_something_left(job: Job) -> bool:
    """Whether something of the mount is still to be undone at the provider."""
    rotation = keys.due_queue(job.mount_id, queue.ROTATION)
    for prefix in (keys.mount_leases(job.mount_id), keys.intents(job.mount_id), rotation):
        if await ListKeys(prefix, "", 1):
            return True
    return False


async def _end_leases(job: Job) -> None:
    """Have all leases of a mount revoked that are not being revoked already."""
    prefix = keys.mount_leases(job.mount_id)
    after = ""
    while page := await ListKeys(prefix, after, PAGE):
        after = page[-1]
        alive = [
            found.record.id
            for key in page
            if (found := await find_lease(job.context, key.removeprefix(prefix))) and not found.record.revoking
        ]
        await end_leases(job.context, alive, job.now, fence=job.fence)


async def _end_tokens(job: Job) -> None:
    """Delete all tokens of a mount, and make what depends on them due. Callers find them dead already."""
    after = ""
    while page := await ListKeys(keys.TOKENS, after, PAGE):
        after = page[-1]
        changes = Changes()
        for key in page:
            found = await find_token(job.context, key.removeprefix(keys.TOKENS))
            if found is not None and found.record.mount_id == job.mount_id and not found.record.released:
                changes |= Changes(found.expected) | found.record.ending(job.now)
        if changes.expects:
            await job.context.records.commit(Changes(job.fence) | changes)
