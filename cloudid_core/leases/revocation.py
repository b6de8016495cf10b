"""The end of a lease: what it holds at the provider is removed, however often that has to be tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from ..background import queue
from ..background.journal import UNDER_WAY, abandoned_intent, attempt, reason_text
from ..background.queue import NO_FENCE, Due, Job
from ..effects import Instant
from ..errors import Conflict
from ..foundation.context import Context
from ..provider.provisioned import Removal
from ..store.changes import Changes
from ..store.conflicts import retry_on_conflict
from ..store.records import Found
from .record import Lease, ending, find_lease, rescheduled


@retry_on_conflict
async def end_lease(context: Context, lease_id: str, now: Instant, *, fence: Mapping[str, int] = NO_FENCE) -> bool:
    """Make a lease due for revocation at once. It cannot be renewed any more. False if there is none."""
    found = await find_lease(context, lease_id)
    if found is None:
        return False
    await context.records.commit(Changes(fence) | ending(found, now))
    return True


async def end_leases(
    context: Context, lease_ids: Sequence[str], now: Instant, *, fence: Mapping[str, int] = NO_FENCE
) -> None:
    """Make leases due for revocation at once: in one commit, or one by one if another request changes one of them."""
    changes = Changes()
    for lease_id in lease_ids:
        found = await find_lease(context, lease_id)
        if found is not None and not (found.record.revoking and found.record.due_at <= now):
            changes |= ending(found, now)
    if changes.is_empty:
        return
    try:
        await context.records.commit(Changes(fence) | changes)
    except Conflict:
        for lease_id in lease_ids:
            await end_lease(context, lease_id, now, fence=fence)


@retry_on_conflict
async def forget_lease(context: Context, lease_id: str, now: Instant) -> bool:
    """Drop a lease at once (`revoke-force`). The journal goes on removing its objects. False if there is none."""
    found = await find_lease(context, lease_id)
    if found is None:
        return False
    lease = found.record
    given_up = abandoned_intent(lease.id.rpartition("/")[2], lease.mount_id, lease.provisioned, now)
    await context.records.commit(Changes(found.expected) | lease.removal | given_up)
    return True


async def revoke(job: Job, found: Found[Lease]) -> None:
    """Remove what a lease holds, and the lease when nothing is left. What could not be removed stays, with its reason.

    The attempt is claimed by a commit first: who has lost the duty does not touch the provider, and whatever becomes of
    the attempt, the next one is due.
    """
    lease = found.record
    attempts = lease.attempts + 1
    claimed = evolve(
        lease, revoking=True, attempts=attempts, due_at=await queue.retry_at(job, attempts), reason=UNDER_WAY
    )
    changes = Changes(job.fence, {claimed.stuck_key: Due()}) | rescheduled(found, claimed)
    await job.context.records.commit(changes)
    await _note(job, lease.id, await attempt(job, lease.provisioned, since=lease.issued_at))


@retry_on_conflict
async def _note(job: Job, lease_id: str, removal: Removal) -> None:
    """Write down what is left of a lease. Only the leader changes what a lease holds; any request may change its due
    time."""
    found = await find_lease(job.context, lease_id)
    if found is None:
        return
    changes = Changes({**job.fence, **found.expected})
    if removal.left.is_empty:
        changes |= found.record.removal
    else:
        left = evolve(found.record, provisioned=removal.left, reason=reason_text(removal))
        changes |= Changes(puts={found.key: left}, events=(left.event("revocation failed", left.reason),))
    await job.context.records.commit(changes)
