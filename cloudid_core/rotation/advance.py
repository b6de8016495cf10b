"""The background's part in a rotation: its next step, whenever that is due.

At its end the keys that were replaced are removed, once the one in use has been proven again.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ..context import Context, Job, queue
from ..credentials import Key, SecretHolder
from ..deadline import Deadline
from ..effects import Instant
from ..errors import CloudidError, Code, Conflict, Refused, reason_of
from ..mounts import Mount, mount_table
from ..provider import PROOFS, SECRET, Client, find_application
from ..routing import mount_client
from ..store import Changes, Found, keys
from .plan import replanned
from .record import Phase, Rotation, changed, find_rotation, overruled, role_of
from .root import find_holder, is_used_elsewhere
from .start import abandoned_key, give_up
from .switch import CHANGED, PROOF_SECONDS, accepted, is_home, prove_and_switch, switch_back

PROVING_LIMIT: Final = 3600.0
"""Seconds after which a secret that does not come to be accepted is given up."""
INTERRUPTED: Final = "the rotation was interrupted before the new secret was stored"
WINDOW_OVER: Final = "the rotation window ended before the provider accepted the new secret"
NOT_ACCEPTED: Final = "the provider does not accept the new secret"
OVERRULED: Final = "the configuration was changed: keys of the root application were left at the provider"
SHARED: Final = "a secret that was replaced was left at the provider: another mount uses it"
STUCK: Final = "neither the new secret nor the one before it is accepted"


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


async def retire(job: Job, mount: Mount, holder: Found[SecretHolder] | None, found: Found[Rotation]) -> None:
    """Remove what the secret in use has replaced; go back to the secret before it if it no longer works.

    Nothing is removed that any mount of this service is configured with, nor anything of a configuration that somebody
    else has changed.
    """
    rotation = found.record
    if rotation.current is None or holder is None or holder.record.client_secret != rotation.current.secret:
        await _write(job, found, overruled(rotation, OVERRULED))
        return
    client = await mount_client(job.context, job.mount_id, job.deadline)
    is_used = bool(rotation.role) or client.credentials.client_secret == rotation.current.secret
    if not is_used or not is_home(client, holder.record, rotation):
        await _write(job, found, overruled(rotation, OVERRULED))
    elif not (rotation.replaced or rotation.outgoing):
        await _remove_replaced(job, client, found)  # nothing was replaced: a first secret
    elif await accepted(job.context, mount, client, rotation, rotation.current):
        await _remove_replaced(job, client, found)
    elif rotation.replaced and await accepted(job.context, mount, client, rotation, rotation.replaced):
        await switch_back(job.context, holder, found, job.now, job.fence)
    else:
        await _write(job, found, evolve(rotation, error=STUCK))


async def _remove_replaced(job: Job, client: Client, found: Found[Rotation]) -> None:
    rotation = found.record
    left: list[Key] = []
    shared: list[Key] = []
    note = rotation.note
    for key in (*rotation.outgoing, *((rotation.replaced,) if rotation.replaced else ())):
        if not key.id:
            continue  # its id is unknown: it stays, as the note says
        if await is_used_elsewhere(job.context, "" if rotation.role else rotation.mount_id, key.secret):
            note = SHARED
            shared.append(key)
        elif not await _try_remove(client, rotation, key, job.now):
            left.append(key)
    after = evolve(rotation, replaced=None, outgoing=(*left, *shared), note=note)
    if not left:
        after = evolve(after, phase=Phase.IDLE, attempts=0, error="")
    await _write(job, found, after)


async def _try_remove(client: Client, rotation: Rotation, key: Key, now: Instant) -> bool:
    """Whether a key is certainly gone; one that is not found may not be shown yet."""
    if await PROOFS[key.proof].remove(client, rotation.home.object_id, key.name, key.id):
        return True
    application = await find_application(client, rotation.home.object_id)
    settled = key.made_at is None or now >= key.made_at + client.settings.settle_time
    return settled and all(password.key_id != key.id for password in (application.passwords if application else ()))


async def _write(job: Job, found: Found[Rotation], after: Rotation) -> None:
    await job.context.records.commit(Changes(job.fence) | changed(found, after))


async def forgotten(context: Context, mount_id: str, role: str, now: Instant, *, leaves_last: bool) -> Changes:
    """Removes the rotation of a static role with the role; the journal removes its keys.

    `leaves_last`: but the secret in use, which others have. Nobody has any other key.

    Refused while a secret is being made: nobody knows yet by which key it can be removed.
    """
    found, expects = await context.records.find_for_writing(keys.rotation(mount_id, role), Rotation)
    _, planned = await replanned(context, mount_id, None, now, role=role)
    changes = planned | Changes(expects, deletes=(keys.rotation(mount_id, role),))
    if found is None:
        return changes
    rotation = found.record
    if rotation.phase is Phase.ADDING:
        raise Refused(Code.ROLE_CHANGE_PENDING, retry_after=max(1.0, rotation.due_at - now))
    in_use = rotation.replaced if rotation.phase is Phase.PROVING else rotation.current
    for key in rotation.known_keys:
        if not (leaves_last and key is in_use and key.proof == SECRET):
            changes |= abandoned_key(rotation, now, key)
    return changes | Changes(deletes=(rotation.due_key,))
