"""The background's part in a rotation: its next step, whenever that is due."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ..context import Job, queue
from ..deadline import Deadline
from ..effects import Instant
from ..errors import CloudidError, Conflict, reason_of
from ..mounts import Mount, mount_table
from ..routing import mount_client
from ..store import Changes, Found, keys
from .add import give_up
from .record import Phase, Rotation, changed, find_rotation, role_of
from .retire import retire
from .root import find_holder
from .switch import CHANGED, PROOF_SECONDS, prove_and_switch

PROVING_LIMIT: Final = 3600.0
"""Seconds after which a secret that does not come to be accepted is given up."""
INTERRUPTED: Final = "the rotation was interrupted before the new secret was stored"
WINDOW_OVER: Final = "the rotation window ended before the provider accepted the new secret"
NOT_ACCEPTED: Final = "the provider does not accept the new secret"


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
    version = await job.context.records.commit(Changes(job.fence) | changed(found, claimed))
    claim = Found(found.key, claimed, version)
    try:
        await _step(job, mount, claim)
    except Conflict:
        raise
    except CloudidError as failure:
        noted = evolve(claimed, error=reason_of(failure))
        expects = {**job.fence, **claim.expected}
        await job.context.records.commit(Changes(expects, {claim.key: noted}, events=(noted.event,)))


async def _retry_at(job: Job, rotation: Rotation, attempts: int) -> Instant:
    """When to try again; a secret that is to be given up at a time is looked at then."""
    again = await queue.retry_at(job, attempts)
    is_bounded = rotation.phase is Phase.PROVING and rotation.until is not None and job.now < rotation.until
    return min(again, rotation.until) if is_bounded and rotation.until is not None else again


async def _step(job: Job, mount: Mount, claim: Found[Rotation]) -> None:
    context, rotation = job.context, claim.record
    holder = await find_holder(context, mount, rotation.role)
    if rotation.phase is Phase.OVERLAPPING:
        await retire(job, mount, holder, claim)
    elif rotation.phase is Phase.ADDING:
        await give_up(context, claim, job.now, INTERRUPTED, fence=job.fence)
    elif holder is None or mount.retired_at is not None:
        await give_up(context, claim, job.now, CHANGED, fence=job.fence)
    elif rotation.until is not None and job.now >= rotation.until:
        await give_up(context, claim, job.now, WINDOW_OVER, fence=job.fence)
    elif job.now >= rotation.started_at + PROVING_LIMIT:
        await give_up(context, claim, job.now, NOT_ACCEPTED, fence=job.fence)
    else:
        client = await mount_client(context, mount.id, Deadline(job.now + PROOF_SECONDS))
        await prove_and_switch(context, mount, client, claim, job.fence)
