"""Hierarchy: the children and leases of a token, and what happens to them when the token ends.

A child names its parent, and every use of a token checks all its ancestors. So a revocation takes effect immediately
for all descendants, and their entries are deleted in the background, generation by generation. If the children outlive
their parent, its entry stays, marked `released`, until the last child is an orphan.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..context import Context, Due, Job, queue
from ..effects import Instant, ListKeys
from ..errors import Conflict, EntryDamaged
from ..mounts import TOKEN
from ..store import Changes, Found, keys, retry_on_conflict
from .authenticate import find_token
from .record import Token

PAGE: Final = 200
"""How many children one background job ends."""


def tie(owner: Found[Token]) -> Changes:
    """Return what the commit of a new child or lease of `owner` must contain, so that it ends with the owner."""
    token = owner.record
    changes = Changes(owner.expected)
    if not token.has_dependants:
        changes |= Changes(puts={owner.key: replace(token, has_dependants=True)})
    if token.expires_at is not None:
        changes |= Changes(puts={token.due_key(token.expires_at): Due()})
    return changes


@retry_on_conflict
async def revoke(context: Context, token_id: str, now: Instant, *, release: bool = False) -> bool:
    """End a token and its descendants immediately. Return whether the background work has something to delete.

    Do nothing if the token does not exist. `release`: the children become orphans.
    """
    try:
        found = await find_token(context, token_id)
    except EntryDamaged as damaged:
        await context.records.commit(_ending_damaged(damaged, token_id, now))
        return True
    if found is None or found.record.released:
        return False
    token = found.record
    changes = Changes(found.expected) | token.ending(now)
    if release and token.has_dependants and not token.is_wrapping:  # what it wraps was never handed out
        changes |= Changes(puts={token.key: replace(token, released=True, mac="")})
    await context.records.commit(changes)
    return token.has_dependants


def _ending_damaged(damaged: EntryDamaged, token_id: str, now: Instant) -> Changes:
    """Return the change that deletes a damaged token and its wrapped response.

    It also schedules the end of its children and leases.
    """
    due_key = keys.due(now, queue.TOKEN, TOKEN.id, token_id)
    return Changes({damaged.key: damaged.version}, {due_key: Due()}, (damaged.key, keys.wrapped(token_id)))


async def settle_children(job: Job, *, released: bool) -> bool:
    """End children of an ended token, or make those of a released token orphans. Return whether all are done."""
    prefix = keys.children(job.ref)
    for key in await ListKeys(prefix, "", PAGE):
        try:
            await _settle(job, key, key.removeprefix(prefix), released)
        except Conflict:
            continue
    return not await ListKeys(prefix, "", 1)


async def _settle(job: Job, index_key: str, child_id: str, released: bool) -> None:
    changes = Changes(job.fence)
    try:
        child = await find_token(job.context, child_id)
    except EntryDamaged as damaged:
        ended = Changes() if released else _ending_damaged(damaged, child_id, job.now)
        await job.context.records.commit(changes | Changes(deletes=(index_key,)) | ended)
        return
    if child is None:
        changes |= Changes(deletes=(index_key,))
    elif released:
        changes |= Changes(child.expected, {child.key: replace(child.record, parent="")}, (index_key,))
    else:
        changes |= Changes(child.expected) | child.record.ending(job.now)
    await job.context.records.commit(changes)
