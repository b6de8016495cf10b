"""Limit the number of leases of a role, of a mount and of all mounts.

Leases that are being created or removed count too, because they may have objects in Azure. There is no counter that
could become wrong: the entries are counted for each new lease. A guard entry serialises requests that are counted
together, but only if there is a limit.
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
    """Leases that are counted together: of a role, of a whole mount (no role), or of all mounts (neither)."""

    mount_id: str = ""
    role: str = ""

    @property
    def what(self) -> str:
        if self.role:
            return "of the role"
        return "of the mount" if self.mount_id else "of all mounts"


@frozen
class Guard:
    """The number of leases when the last one was admitted, including it."""

    count: int


async def room_for_lease(
    context: Context, mounts: Found[MountTable], mount_id: str, role: str, role_limit: int
) -> Changes:
    """Return what the commit of an intent must contain for a new lease of a role.

    It expects the mounts and the quotas that define the limits; the caller expects the role. Refuse with
    `LEASE_COUNT_EXCEEDED` if a limit is reached.
    """
    quotas = await context.records.find(keys.QUOTAS, Quotas)
    changes = Changes({**mounts.expected, **expected(quotas, keys.QUOTAS)})
    mount = mounts.record.by_id[mount_id]
    for counted, limit in _limits(mount, role, role_limit, quotas.record if quotas else Quotas()):
        changes |= await _room(context, mounts.record, counted, limit)
    return changes


def _limits(mount: Mount, role: str, role_limit: int, quotas: Quotas) -> list[tuple[Counted, int]]:
    """Return all limits of a lease: of its mount, of its role, and of the most specific quota."""
    limits = [(Counted(mount.id), mount.max_leases), (Counted(mount.id, role), role_limit)]
    quota = quotas.lease_count_of(mount.path, role)
    if quota is not None:
        counted = Counted(mount.id, quota.role) if quota.path else Counted()
        limits.append((counted, quota.max_leases))
    return [(counted, limit) for counted, limit in limits if limit]


async def _room(context: Context, mounts: MountTable, counted: Counted, limit: int) -> Changes:
    """Return the changes like `room_for_lease`, for one limit. The guard is read before counting."""
    key = keys.lease_guard(counted.mount_id, counted.role)
    _, expects = await context.records.find_for_writing(key, Guard)
    engines = [counted.mount_id] if counted.mount_id else [each.id for each in mounts.mounts if each.kind == SECRET]
    count = await _count(context, engines, counted.role, limit)
    if count >= limit:
        raise Refused(Code.LEASE_COUNT_EXCEEDED, counted.what, retry_after=COME_AGAIN)
    return Changes(expects, {key: Guard(count + 1)})


async def _count(context: Context, mount_ids: Iterable[str], role: str, enough: int) -> int:
    """Count the leases and lease intents of some mounts, until there are `enough`. Without a role, of all roles.

    A lease has the id of its intent. Intents are read first, so that one that becomes a lease in between is not missed.
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
