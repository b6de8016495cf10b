"""The start of a rotation, on request or by a plan: what must hold before a new secret is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..context import NO_FENCE, Context
from ..credentials import RootCredential
from ..deadline import Deadline
from ..effects import Instant, ListKeys
from ..errors import Code, Refused
from ..mounts import Mount
from ..routing import mount_client
from ..store import Found, expected, keys
from .add import add
from .record import Rotation, find_rotation
from .root import find_root, is_managed, is_used_elsewhere

MOST_KEYS: Final = 8
"""How many secrets that a mount made may live at the same time."""


async def managed_root(context: Context, mount: Mount) -> Found[RootCredential]:
    """The configuration of a mount whose root secret can be replaced. Refuses with the reason why it cannot."""
    root = await find_root(context, mount)
    if root is None:
        raise Refused(Code.CONFIG_MISSING)
    if not is_managed(context, root.record):
        raise Refused(Code.ROOT_SECRET_UNMANAGED)
    return root


async def start(
    context: Context,
    mount: Mount,
    deadline: Deadline,
    now: Instant,
    *,
    force: bool = False,
    until: Instant | None = None,
    fence: Mapping[str, int] = NO_FENCE,
) -> Found[Rotation]:
    """Make a new secret and store it, to be proven. It is given up if it is not in use at `until`.

    A record of rotations that is damaged is replaced by force: secrets that only it named stay at the provider.
    """
    root = await managed_root(context, mount)
    if not force and await is_used_elsewhere(context, mount.id, root.record.client_secret):
        raise Refused(Code.ROOT_SECRET_SHARED)
    key = keys.rotation(mount.id)
    if force:
        before, expects = await context.records.find_for_writing(key, Rotation)
    else:
        before = await find_rotation(context, mount.id)
        expects = expected(before, key)
    if await _living(mount.id, before.record if before else None) >= MOST_KEYS:
        raise Refused(Code.ROOT_SECRETS_LEFT)
    client = await mount_client(context, mount.id, deadline)
    return await add(context, mount.id, root, before, expects, client, now, until=until, fence=fence)


async def _living(mount_id: str, rotation: Rotation | None) -> int:
    """How many secrets that a mount made may be alive: those of its rotation, and those that the journal removes."""
    known = [key for key in rotation.known_keys if key.made_at is not None] if rotation else []
    abandoned = await ListKeys(f"{keys.intents(mount_id)}rotation-", "", MOST_KEYS)
    return len(known) + len(abandoned)
