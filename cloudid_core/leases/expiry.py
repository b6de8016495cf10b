"""What the background does for leases, intents and tokens that are due."""

from __future__ import annotations

from typing import Final

from ..background import find_intent, undo
from ..context import Due, Job, queue
from ..effects import ListKeys, Now
from ..errors import EntryDamaged
from ..store import Changes, keys
from ..tokens import find_token, settle_children
from .record import find_lease
from .revocation import end_leases, revoke

PAGE: Final = 100
"""How many leases are ended in one commit."""


async def end_lease_when_due(job: Job) -> None:
    """Revoke a lease that has expired or is to end. A damaged one is listed among those that are stuck."""
    try:
        found = await find_lease(job.context, job.ref)
    except EntryDamaged:
        await job.context.records.commit(Changes(job.fence, {keys.stuck(job.mount_id, job.ref): Due()}))
        raise
    if found is None or found.record.due_key != job.key:
        await queue.drop(job, keys.lease(job.ref), found)
    else:
        await revoke(job, found)


async def end_intent(job: Job) -> None:
    """Undo an intent whose request can no longer live."""
    found = await find_intent(job.context, job.mount_id, job.ref)
    if found is None or found.record.due_key != job.key:
        await queue.drop(job, keys.intent(job.mount_id, job.ref), found)
    else:
        await undo(job, found)


async def end_token(job: Job) -> None:
    """End the leases and children of a dead token; look again later if it is alive.

    Its entry goes first, so that it gets no more leases and children. The due entry goes last, so that this is repeated
    until nothing is left.
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
    """End the leases of a token, a page at a time; false when there is no time for all of them."""
    prefix = keys.token_leases(job.ref)
    while page := await ListKeys(prefix, "", PAGE):
        if await Now() >= job.deadline.at:
            return False
        await end_leases(job.context, [key.removeprefix(prefix) for key in page], job.now, fence=job.fence)
        # A lease that was ending already, or is gone, no longer belongs to the token either.
        await job.context.records.commit(Changes(job.fence, deletes=page))
    return True
