"""The start of a rotation, on request or by a plan: what must hold before a new secret is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..context import NO_FENCE, Context
from ..credentials import RootCredential, SecretHolder
from ..deadline import Deadline
from ..effects import Instant, ListKeys
from ..errors import Code, Refused
from ..mounts import Mount
from ..routing import mount_client
from ..store import NO_CHANGES, Found, expected, keys
from .add import add
from .record import Rotation, find_rotation
from .root import find_holder, find_root, is_managed, is_used_elsewhere

MOST_KEYS: Final = 8
"""How many secrets of a mount or static role, made here, may live at the same time."""


async def managed_root(context: Context, mount: Mount) -> Found[RootCredential]:
    """The configuration of a mount whose root secret can be replaced. Refuses with the reason why it cannot."""
    root = await find_root(context, mount)
    if root is None:
        raise Refused(Code.CONFIG_MISSING)
    if not is_managed(context, root.record):
        raise Refused(Code.ROOT_SECRET_UNMANAGED)
    return root


async def rotated_holder(context: Context, mount: Mount, role: str) -> Found[SecretHolder]:
    """What holds the secret that is to be replaced: the configuration of a mount, or a static role of it."""
    if not role:
        root = await managed_root(context, mount)
        return Found(root.key, root.record, root.version)
    holder = await find_holder(context, mount, role)
    if holder is None:
        raise Refused(Code.NOT_FOUND, "the role does not exist")
    return holder


async def start(
    context: Context,
    mount: Mount,
    deadline: Deadline,
    now: Instant,
    *,
    role: str = "",
    force: bool = False,
    until: Instant | None = None,
    fence: Mapping[str, int] = NO_FENCE,
) -> Found[Rotation]:
    """Make a new secret and store it, to be proven. It is given up if it is not in use at `until`.

    A record of rotations that is damaged is replaced by force: secrets that only it named stay at the provider.
    """
    holder = await rotated_holder(context, mount, role)
    if not (force or role) and await is_used_elsewhere(context, mount.id, holder.record.client_secret):
        raise Refused(Code.ROOT_SECRET_SHARED)
    grounds = await context.components.of(mount).may_rotate(context, mount, role) if role else NO_CHANGES
    key = keys.rotation(mount.id, role)
    if force:
        before, expects = await context.records.find_for_writing(key, Rotation)
    else:
        before = await find_rotation(context, mount.id, role)
        expects = expected(before, key)
    if await _living(before.record if before else Rotation(mount_id=mount.id, role=role)) >= MOST_KEYS:
        raise Refused(Code.ROOT_SECRETS_LEFT)
    client = await mount_client(context, mount.id, deadline)
    expects |= grounds.expects
    return await add(context, mount, holder, before, expects, client, now, role=role, until=until, fence=fence)


async def _living(rotation: Rotation) -> int:
    """How many secrets that a rotation made may be alive: those that it knows, and those that the journal removes."""
    known = [key for key in rotation.known_keys if key.made_at is not None]
    abandoned = await ListKeys(f"{keys.intents(rotation.mount_id)}{rotation.abandons}", "", MOST_KEYS)
    return len(known) + len(abandoned)
