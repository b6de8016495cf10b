"""How many leases there may be at a time, of a role, of a whole mount and of all mounts.

What is under way counts, and what is still being removed: both may be objects at the provider. Nothing is counted up
and down, so nothing can be forgotten: the entries are counted when one more is wanted. A guard entry makes requests for
what is counted together wait for each other, but only where there is a limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from ..background import Intent
from ..context import Context
from ..effects import ListKeys
from ..errors import Code, Refused
from ..mounts import SECRET, Mount, MountTable
from ..store import Changes, Found, expected, keys
from .record import Quotas

PAGE: Final = 1000
COME_AGAIN: Final = 30.0
"""Seconds after which a lease may have ended."""


@frozen
class Counted:
    """What is counted together: the leases of a role, of a whole mount (no role), or of all mounts (neither)."""

    mount_id: str = ""
    role: str = ""

    @property
    def what(self) -> str:
        if self.role:
            return "of the role"
        return "of the mount" if self.mount_id else "of all mounts"


@frozen
class Guard:
    """How many leases there were when room was last made for one, that one included."""

    count: int


async def room_for_lease(
    context: Context, mounts: Found[MountTable], mount_id: str, role: str, role_limit: int
) -> Changes:
    """What the commit of an intent must hold for a lease of a role to have room.

    It expects the mounts and the quotas that the limits are from; the caller expects the role. Refuses with
    `LEASE_COUNT_EXCEEDED` when there is no room.
    """
    quotas = await context.records.find(keys.QUOTAS, Quotas)
    changes = Changes({**mounts.expected, **expected(quotas, keys.QUOTAS)})
    mount = mounts.record.by_id[mount_id]
    for counted, limit in _limits(mount, role, role_limit, quotas.record if quotas else Quotas()):
        changes |= await _room(context, mounts.record, counted, limit)
    return changes


def _limits(mount: Mount, role: str, role_limit: int, quotas: Quotas) -> list[tuple[Counted, int]]:
    """All limits of a lease: that of its mount, that of its role, and that of the most specific quota."""
    limits = [(Counted(mount.id), mount.max_leases), (Counted(mount.id, role), role_limit)]
    quota = quotas.lease_count_of(mount.path, role)
    if quota is not None:
        counted = Counted(mount.id, quota.role) if quota.path else Counted()
        limits.append((counted, quota.max_leases))
    return [(counted, limit) for counted, limit in limits if limit]


async def _room(context: Context, mounts: MountTable, counted: Counted, limit: int) -> Changes:
    """As `room_for_lease`, under one limit. The guard is read before anything is counted."""
    key = keys.lease_guard(counted.mount_id, counted.role)
    _, expects = await context.records.find_for_writing(key, Guard)
    engines = [counted.mount_id] if counted.mount_id else [each.id for each in mounts.mounts if each.kind == SECRET]
    count = await _count(context, engines, counted.role, limit)
    if count >= limit:
        raise Refused(Code.LEASE_COUNT_EXCEEDED, counted.what, retry_after=COME_AGAIN)
    return Changes(expects, {key: Guard(count + 1)})


async def _count(context: Context, mount_ids: Iterable[str], role: str, enough: int) -> int:
    """How many leases and intents for leases some mounts have, counted until there are `enough`; no role: of all roles.

    A lease has the id of its intent. The intents come first, so that one that becomes a lease meanwhile is not missed.
    """
    ids = set[str]()
    for mount_id in mount_ids:
        after, prefix = "", keys.intents(mount_id)
        while len(ids) < enough and (page := await ListKeys(prefix, after, PAGE)):
            for found in await context.records.find_undamaged(page, Intent):
                if found.record.role and role in ("", found.record.role):
                    ids.add(found.key.removeprefix(prefix))
            after = page[-1]
        after = ""
        while len(ids) < enough and (page := await ListKeys(keys.mount_leases(mount_id), after, PAGE)):
            segments = (key.split("/") for key in page)
            ids.update(each[-1] for each in segments if not role or each[-2] == role)
            after = page[-1]
    return len(ids)
