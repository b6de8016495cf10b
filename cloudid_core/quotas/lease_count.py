"""How many leases there may be at a time, of a role and of a whole mount.

What is under way counts, and what is still being removed: both may be objects at the provider. Nothing is counted up
and down, so nothing can be forgotten: the entries are counted when one more is wanted. A guard entry makes requests for
the same role or mount wait for each other, but only where there is a limit.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..background.journal import Intent
from ..effects import ListKeys
from ..errors import Code, Refused
from ..foundation.context import Context
from ..mounts.table import Mount
from ..store import keys
from ..store.changes import Changes

PAGE: Final = 1000
COME_AGAIN: Final = 30.0
"""Seconds after which a lease may have ended."""


@frozen
class Guard:
    """How many leases there were when room was last made for one, that one included."""

    count: int


async def room_for_lease(context: Context, mount: Mount, role: str, role_limit: int) -> Changes:
    """What the commit of an intent must hold for a lease of a role to have room.

    Refuses with `LEASE_COUNT_EXCEEDED` when there is none.
    """
    changes = Changes()
    for counted, limit in (("", mount.max_leases), (role, role_limit)):
        if limit:
            changes |= await _room(context, mount.id, counted, limit)
    return changes


async def _room(context: Context, mount_id: str, role: str, limit: int) -> Changes:
    """As `room_for_lease`, under one limit; no role: of the whole mount. The guard is read before it is counted."""
    key = keys.lease_guard(mount_id, role)
    _, expects = await context.records.find_for_writing(key, Guard)
    count = await _count(context, mount_id, role, limit)
    if count >= limit:
        raise Refused(Code.LEASE_COUNT_EXCEEDED, "of the role" if role else "of the mount", retry_after=COME_AGAIN)
    return Changes(expects, {key: Guard(count + 1)})


async def _count(context: Context, mount_id: str, role: str, enough: int) -> int:
    """How many leases and intents for leases there are, counted until there are `enough`.

    A lease has the id of its intent. The intents come first, so that one that becomes a lease meanwhile is not missed.
    """
    ids = set[str]()
    after, prefix = "", keys.intents(mount_id)
    while len(ids) < enough and (page := await ListKeys(prefix, after, PAGE)):
        if role:
            intents = await context.records.find_undamaged(page, Intent)
            ids.update(found.key.removeprefix(prefix) for found in intents if found.record.role == role)
        else:
            ids.update(key.removeprefix(prefix) for key in page)
        after = page[-1]
    after = ""
    while len(ids) < enough and (page := await ListKeys(keys.mount_leases(mount_id), after, PAGE)):
        segments = (key.split("/") for key in page)
        ids.update(each[-1] for each in segments if not role or each[-2] == role)
        after = page[-1]
    return len(ids)
