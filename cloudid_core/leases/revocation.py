"""The end of a lease: what it holds at the provider is removed, however often that has to be tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from attrs import evolve

from ..background import queue
from ..background.journal import UNDER_WAY, abandoned_intent, attempt, reason_text
from ..background.queue import Due, Job
from ..effects import Instant
from ..errors import Code, Conflict, Refused
from ..foundation.context import Context
from ..provider.provisioned import Removal
from ..store.records import ATTEMPTS, Found
from .record import Lease, ending, find_lease, rescheduled

NO_FENCE: Final[Mapping[str, int]] = MappingProxyType({})


async def end_lease(context: Context, lease_id: str, now: Instant, *, fence: Mapping[str, int] = NO_FENCE) -> bool:
    """Have a lease revoked as soon as possible; false when there is none. Its credentials are no longer renewable."""
    for _ in range(ATTEMPTS):
        found = await find_lease(context, lease_id)
        if found is None:
            return False
        puts, deletes = ending(found.record, now)
        try:
            await context.records.commit({**fence, **found.expected}, puts, deletes)
        except Conflict:
            continue
        return True
    raise Refused(Code.STORE_CONTENDED)


async def end_leases(
    context: Context, lease_ids: Sequence[str], now: Instant, *, fence: Mapping[str, int] = NO_FENCE
) -> None:
    """Have leases revoked as soon as possible, in one commit where nobody else changes one of them at the same time."""
    expects, puts, deletes = dict(fence), dict[str, object](), list[str]()
    for lease_id in lease_ids:
        found = await find_lease(context, lease_id)
        if found is not None and not (found.record.revoking and found.record.due_at <= now):
            expects |= found.expected
            more_puts, more_deletes = ending(found.record, now)
            puts |= more_puts
            deletes += more_deletes
    if not puts:
        return
    try:
        await context.records.commit(expects, puts, tuple(deletes))
    except Conflict:
        for lease_id in lease_ids:
            await end_lease(context, lease_id, now, fence=fence)


async def forget_lease(context: Context, lease_id: str, now: Instant) -> bool:
    """Drop a lease at once (`revoke-force`); false when there is none. Its objects go back to the journal, which never
    forgets one."""
    for _ in range(ATTEMPTS):
        found = await find_lease(context, lease_id)
        if found is None:
            return False
        lease = found.record
        puts = abandoned_intent(lease.id.rpartition("/")[2], lease.mount_id, lease.provisioned, now)
        try:
            await context.records.commit(found.expected, puts, lease.deletes())
        except Conflict:
            continue
        return True
    raise Refused(Code.STORE_CONTENDED)


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
    puts, deletes = rescheduled(lease, claimed)
    puts[claimed.stuck_key] = Due()
    await job.context.records.commit({**job.fence, **found.expected}, puts, deletes)
    await _note(job, lease.id, await attempt(job, lease.provisioned, since=lease.issued_at))


async def _note(job: Job, lease_id: str, removal: Removal) -> None:
    """Write down what is left of a lease. Only the duty holder changes what one holds, but anybody its due time."""
    records = job.context.records
    for _ in range(ATTEMPTS):
        found = await find_lease(job.context, lease_id)
        if found is None:
            return
        puts: dict[str, object] = {}
        deletes: tuple[str, ...] = ()
        if removal.left.is_empty:
            deletes = found.record.deletes()
        else:
            puts[found.key] = evolve(found.record, provisioned=removal.left, reason=reason_text(removal))
        try:
            await records.commit({**job.fence, **found.expected}, puts, deletes)
        except Conflict:
            continue
        return
    raise Refused(Code.STORE_CONTENDED)
