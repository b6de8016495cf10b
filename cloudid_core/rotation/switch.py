"""The middle of a rotation: the new secret is proven and put into the configuration, or the old one is put back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve
from msgspec.structs import replace

from ..context import NO_FENCE, Context
from ..credentials import RootCredential
from ..deadline import Deadline
from ..effects import Instant, Now
from ..errors import ProviderProblem
from ..mounts import Mount
from ..provider import Client, wait_until_accepted
from ..store import Changes, Found, retry_on_conflict
from .add import give_up
from .plan import overlap, replanned
from .record import Key, Phase, Rotation, changed, find_rotation
from .root import find_root

PROOFS: Final = 3
"""How often in a row the provider must accept a secret."""
PROOF_SECONDS: Final = 20.0
"""How long that may take in the background: other work waits for it."""
CHANGED: Final = "the configuration was changed while a new secret was proven"
STOPPED_WORKING: Final = "the new secret stopped working: the one before it was put back"


def is_home(client: Client, rotation: Rotation) -> bool:
    """Whether a client proves itself as the application that is rotated."""
    return (client.tenant, client.credentials.client_id) == (rotation.home.tenant, rotation.home.client_id)


async def prove_and_switch(
    context: Context, mount: Mount, client: Client, found: Found[Rotation], fence: Mapping[str, int] = NO_FENCE
) -> Found[Rotation]:
    """Prove the new secret and put it into the configuration. Answers the rotation as it is then.

    `OVERLAPPING`: it succeeded here or in another request. `PROVING`: the deadline came first. A configuration that was
    changed meanwhile keeps what it has, and the new secret is given up.
    """
    new = found.record.new
    if new is None or not await wait_until_accepted(client, found.record.home.client_id, new.secret, needed=PROOFS):
        return found
    return await _switch_to(context, mount, client, found, new, fence)


@retry_on_conflict
async def _switch_to(
    context: Context, mount: Mount, client: Client, proven: Found[Rotation], new: Key, fence: Mapping[str, int]
) -> Found[Rotation]:
    root = await find_root(context, mount)
    found = await find_rotation(context, mount.id)
    now = await Now()
    if found is None or found.record.new != new or found.record.replaced is None:
        return found or proven
    rotation = found.record
    if root is None or root.record.client_secret != found.record.replaced.secret or not is_home(client, rotation):
        return await give_up(context, found, now, CHANGED, fence=fence)
    seconds = overlap(root.record, now)
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
    return await _switch(context, root, new, found, after, now, fence)


async def accepted(client: Client, rotation: Rotation, key: Key) -> bool:
    """Whether the provider accepts a secret again and again."""
    patient = replace(client, deadline=Deadline(await Now() + PROOF_SECONDS))
    try:
        return await wait_until_accepted(patient, rotation.home.client_id, key.secret, needed=PROOFS)
    except ProviderProblem as problem:
        if problem.status not in (400, 401):
            raise
        return False


async def switch_back(
    context: Context,
    root: Found[RootCredential],
    found: Found[Rotation],
    now: Instant,
    fence: Mapping[str, int],
) -> None:
    """Put the secret back that was replaced; the new one, which does not work any more, is removed later."""
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
    await _switch(context, root, rotation.replaced, found, after, now, fence)


async def _switch(
    context: Context,
    root: Found[RootCredential],
    key: Key,
    found: Found[Rotation],
    after: Rotation,
    now: Instant,
    fence: Mapping[str, int],
) -> Found[Rotation]:
    """Configuration, rotation and plan change in one commit."""
    config = evolve(root.record, client_secret=key.secret)
    _, planned = await replanned(context, after.mount_id, config, now, after)
    configured = Changes({**fence, **root.expected}, {root.key: config})
    version = await context.records.commit(configured | changed(found, after) | planned)
    return Found(found.key, after, version)
