"""The end of a rotation: the keys that were replaced are removed, once the one in use has been proven again."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ..context import Context, Job
from ..credentials import Key, SecretHolder
from ..effects import Instant
from ..errors import Code, Refused
from ..mounts import Mount
from ..provider import PROOFS, SECRET, Client, find_application
from ..routing import mount_client
from ..store import Changes, Found, keys
from .add import abandoned_key
from .plan import replanned
from .record import Phase, Rotation, changed, overruled
from .root import is_used_elsewhere
from .switch import accepted, is_home, switch_back

OVERRULED: Final = "the configuration was changed: keys of the root application were left at the provider"
SHARED: Final = "a secret that was replaced was left at the provider: another mount uses it"
STUCK: Final = "neither the new secret nor the one before it is accepted"


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
