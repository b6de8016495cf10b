"""The end of a lease: its objects are removed from Azure, with as many attempts as needed.

Attempts of requests and of the background work may overlap: removing is idempotent, and only the attempt that was
claimed last stores the result. The background work ends leases, intents and tokens that are due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve

from ..background import UNDER_WAY, abandoned_intent, attempt, find_intent, reason_text, undo
from ..context import NO_FENCE, Context, Due, Job, queue
from ..effects import Instant, ListKeys, Now
from ..errors import Conflict, EntryDamaged
from ..provider import Removal
from ..store import Changes, Found, keys, retry_on_conflict
from ..tokens import find_token, settle_children
from .record import LEASES_AT_ONCE, Lease, ending, find_lease, find_undamaged_leases, rescheduled, revoking

PAGE: Final = LEASES_AT_ONCE
"""How many leases are ended in one commit."""


async def end_leases(
    context: Context, lease_ids: Sequence[str], due_at: Instant, *, fence: Mapping[str, int] = NO_FENCE
) -> None:
    """Schedule the revocation of leases at a time or earlier. They can no longer be renewed.

    This takes one commit, or one for each lease if another request changes one of them.
    """
    changes = Changes()
    for found in await find_undamaged_leases(context, lease_ids):
        if not _ends_by(found.record, due_at):
            changes |= ending(found, due_at)
    if changes.is_empty:
        return
    try:
        await context.records.commit(Changes(fence) | changes)
    except Conflict:
        for lease_id in lease_ids:
            await end_lease(context, lease_id, due_at, fence=fence)


@retry_on_conflict
async def end_lease(context: Context, lease_id: str, due_at: Instant, *, fence: Mapping[str, int] = NO_FENCE) -> bool:
    """Schedule the revocation of a lease at a time or earlier. It can no longer be renewed.

    Return whether it exists.
    """
    leases = await find_undamaged_leases(context, (lease_id,))
    for found in leases:
        if not _ends_by(found.record, due_at):
            await context.records.commit(Changes(fence) | ending(found, due_at))
    return bool(leases)


def _ends_by(lease: Lease, due_at: Instant) -> bool:
    return lease.revoking and lease.due_at <= due_at


@retry_on_conflict
async def forget_lease(context: Context, lease_id: str, mount_id: str, now: Instant) -> bool:
    """Drop a lease immediately (`revoke-force`), and leave its objects to the journal. Return whether it exists.

    The objects of a damaged lease are unknown, so only its entries are deleted.
    """
    try:
        found = await find_lease(context, lease_id)
    except EntryDamaged as damaged:
        entries = (damaged.key, keys.mount_lease(mount_id, lease_id), keys.stuck(mount_id, lease_id))
        await context.records.commit(Changes({damaged.key: damaged.version}, deletes=entries))
        return True
    if found is None:
        return False
    lease = found.record
    intent_id = lease.id.rpartition("/")[2]
    given_up = abandoned_intent(intent_id, lease.mount_id, lease.provisioned, now, role=lease.role)
    await context.records.commit(Changes(found.expected) | lease.removal | given_up.abandonment)
    return True


@retry_on_conflict
async def revoke_now(job: Job, due_at: Instant) -> Removal | None:
    """Try once, within a request, to remove the objects of a lease. Return `None` if there is no such lease.

    The next attempt is due after a pause. If this one is interrupted, the next is due at `due_at`, when no call of this
    attempt can still be pending.
    """
    found = await find_lease(job.context, job.ref)
    return await _attempt(job, found, due_at=due_at) if found else None


async def _attempt(job: Job, found: Found[Lease], *, due_at: Instant) -> Removal:
    """Remove the objects of a lease, and then the lease. If objects remain, store the reason.

    A commit claims the attempt first. So a node that has lost the leadership does not call Azure, and the next attempt
    is scheduled even if this one is interrupted.
    """
    lease = found.record
    claimed = evolve(lease, revoking=True, attempts=lease.attempts + 1, due_at=due_at, reason=UNDER_WAY)
    changes = Changes(job.fence, {claimed.stuck_key: Due()}) | rescheduled(found, claimed) | revoking(lease)
    await job.context.records.commit(changes)
    removal = await attempt(job, lease.provisioned, since=lease.issued_at)
    await _note(job, claimed, removal)
    return removal


@retry_on_conflict
async def _note(job: Job, claimed: Lease, removal: Removal) -> None:
    """Store what remains of a lease. Do nothing if another attempt was claimed since: that attempt stores it."""
    found = await find_lease(job.context, claimed.id)
    if found is None or found.record.attempts != claimed.attempts:
        return
    changes = Changes({**job.fence, **found.expected})
    if removal.left.is_empty:
        changes |= found.record.removal
    else:
        again = await queue.retry_after(job, claimed.attempts, found.record.due_at, removal.retry_after)
        left = evolve(found.record, provisioned=removal.left, reason=reason_text(removal), due_at=again)
        changes |= rescheduled(found, left) | Changes(events=(left.event("revocation failed", left.reason),))
    await job.context.records.commit(changes)


async def end_lease_when_due(job: Job) -> None:
    """Try once, in the background, to revoke a lease that has expired or was revoked.

    The next attempt follows after a pause.

    A damaged lease is listed among the stuck ones.
    """
    try:
        found = await find_lease(job.context, job.ref)
    except EntryDamaged:
        await job.context.records.commit(Changes(job.fence, {keys.stuck(job.mount_id, job.ref): Due()}))
        raise
    if found is None or found.record.due_key != job.key:
        await queue.drop(job, keys.lease(job.ref), found)
    else:
        await _attempt(job, found, due_at=await queue.retry_at(job, found.record.attempts + 1))


async def end_intent(job: Job) -> None:
    """Undo an intent whose request must have ended."""
    found = await find_intent(job.context, job.mount_id, job.ref)
    if found is None or found.record.due_key != job.key:
        await queue.drop(job, keys.intent(job.mount_id, job.ref), found)
    else:
        await undo(job, found)


async def end_token(job: Job) -> None:
    """End the leases and children of a token that has ended. If it is still valid, check again later.

    The token's entry is deleted first, so that it gets no more leases and children. The queue entry is deleted last, so
    that this is repeated until nothing is left.
    """
    records = job.context.records
    found = await find_token(job.context, job.ref)
    if found is not None and found.record.is_alive(job.now):
        ends_at = found.record.expires_at
        again = {} if ends_at is None else {found.record.due_key(ends_at): Due()}
        await records.commit(Changes(job.fence, deletes=(job.key,)) | Changes(found.expected, again))
        return
    released = found is not None and found.record.released
    if found is not None and not released:
        await records.commit(Changes({**job.fence, **found.expected}, deletes=found.record.own_keys))
    if await _end_leases(job) and await settle_children(job, released=released):
        entry = (found.key,) if found is not None and released else ()
        await records.commit(Changes(job.fence, deletes=(job.key, *entry)))


async def _end_leases(job: Job) -> bool:
    """End the leases of a token, page by page. Return whether there was enough time."""
    prefix = keys.token_leases(job.ref)
    while page := await ListKeys(prefix, "", PAGE):
        if await Now() >= job.deadline.at:
            return False
        await end_leases(job.context, [key.removeprefix(prefix) for key in page], job.now, fence=job.fence)
        # A lease that was ending already, or is gone, no longer belongs to the token either.
        await job.context.records.commit(Changes(job.fence, deletes=page))
    return True
