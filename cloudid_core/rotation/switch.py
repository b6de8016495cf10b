"""The middle of a rotation: prove the new secret and give it to its holder, or restore the old one."""

from __future__ import annotations

from typing import Final

from attrs import evolve
from msgspec.structs import replace

from ..credentials import Key, SecretHolder, present
from ..deadline import Deadline
from ..effects import Instant, Now
from ..errors import ProviderProblem
from ..mounts import mount_table
from ..provider import PROOFS, Client, wait_until_proven
from ..store import Changes, Found, retry_on_conflict
from .plan import overlap, replanned
from .record import Phase, Rotation
from .root import Subject
from .start import give_up

IN_A_ROW: Final = 3
"""How often in a row the provider must accept a key."""
PROOF_SECONDS: Final = 20.0
"""Maximum seconds for this proof in the background, because other work waits for it."""
CHANGED: Final = "the configuration was changed while a new client secret was tested"
STOPPED_WORKING: Final = "Azure stopped accepting the new secret, so the previous one was restored"


def is_home(client: Client, holder: SecretHolder, rotation: Rotation) -> bool:
    """Return whether the application whose secret is rotated still belongs to the holder."""
    client_id = holder.target or client.credentials.client_id
    return (client.tenant, client_id) == (rotation.home.tenant, rotation.home.client_id)


async def prove_and_switch(subject: Subject, client: Client, found: Found[Rotation]) -> Found[Rotation]:
    """Prove the new secret and give it to its holder. Return the resulting rotation.

    `OVERLAPPING` means that it succeeded, here or in another request. `PROVING` means that the deadline came first. If
    the configuration was changed or the mount was disabled meanwhile, the configuration keeps its secret and the new
    one is abandoned.
    """
    new = found.record.new
    if new is None or not await _is_proven(subject, client, found.record, new):
        return found
    return await _switch_to(subject, client, found, new)


@retry_on_conflict
async def _switch_to(subject: Subject, client: Client, proven: Found[Rotation], new: Key) -> Found[Rotation]:
    holder, found, now = await subject.holder(), await subject.rotation(), await Now()
    if found is None or found.record.new != new:
        return found or proven
    rotation = found.record
    is_live = subject.mount.id in (await mount_table(subject.context.records)).record.by_id
    is_held = holder is not None and holder.record.client_secret == rotation.replaced_secret
    if holder is None or not (is_live and is_held and is_home(client, holder.record, rotation)):
        return await give_up(subject, found, now, CHANGED)
    seconds = overlap(holder.record, now)
    after = evolve(
        rotation,
        phase=Phase.OVERLAPPING,
        new=None,
        current=new,
        due_at=now + seconds,
        overlap=seconds,
        until=None,
        attempts=0,
        rotated_at=now,
        error="",
    )
    return await _switch(subject, holder, new, found, after, now)


async def _is_proven(subject: Subject, client: Client, rotation: Rotation, key: Key) -> bool:
    credentials = present(subject.context, subject.mount, client, rotation.home.client_id, key)
    return await wait_until_proven(client, credentials, PROOFS[key.proof].family, needed=IN_A_ROW)


async def accepted(subject: Subject, client: Client, rotation: Rotation, key: Key) -> bool:
    """Return whether the provider accepts a key several times in a row."""
    patient = replace(client, deadline=Deadline(await Now() + PROOF_SECONDS))
    try:
        return await _is_proven(subject, patient, rotation, key)
    except ProviderProblem as problem:
        if problem.status not in (400, 401):
            raise
        return False


async def switch_back(subject: Subject, holder: Found[SecretHolder], found: Found[Rotation], now: Instant) -> None:
    """Restore the replaced secret. The new one, which no longer works, is removed later."""
    rotation = found.record
    if rotation.current is None or rotation.replaced is None:
        return
    after = evolve(
        rotation,
        current=rotation.replaced,
        replaced=None,
        outgoing=(*rotation.outgoing, rotation.current),
        due_at=now + rotation.overlap,
        attempts=0,
        error="",
        note=STOPPED_WORKING,
    )
    await _switch(subject, holder, rotation.replaced, found, after, now)


async def _switch(
    subject: Subject, holder: Found[SecretHolder], key: Key, found: Found[Rotation], after: Rotation, now: Instant
) -> Found[Rotation]:
    """Update the holder, the rotation and the plan in one commit."""
    holding = holder.record.holding(key)
    _, planned = await replanned(subject.context, after.mount_id, holding, now, after, after.role)
    return await subject.write(found, after, Changes(holder.expected, {holder.key: holding}) | planned)
