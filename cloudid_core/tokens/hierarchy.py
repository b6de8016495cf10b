"""Families: what hangs on a token, and what becomes of it when the token ends.

A child names its parent, and every use of a token looks at all its ancestors: a revocation holds at once, for the whole
family. What is left in the store is cleared away in the background, generation by generation. Where the children are to
outlive their parent, its entry stays, marked `released`, until the last child has been made an orphan.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..background.queue import Due, Job
from ..effects import Instant, ListKeys
from ..errors import Code, Conflict, Refused
from ..foundation.context import Context
from ..store import keys
from ..store.records import ATTEMPTS, Found
from .authenticate import find_token
from .record import Token

PAGE: Final = 200
"""How many children one piece of work looks after."""


def tie(owner: Found[Token]) -> dict[str, object]:
    """What a commit that expects `owner` puts beside a child or lease of it, so that neither is ever overlooked."""
    token = owner.record
    puts: dict[str, object] = {} if token.has_dependants else {owner.key: replace(token, has_dependants=True)}
    if token.expires_at is not None:
        puts[token.due_key(token.expires_at)] = Due()
    return puts


async def revoke(context: Context, token_id: str, now: Instant) -> bool:
    """End a token and its family at once; whether something is left to be cleared away now. It is well if none is."""
    return await _end(context, token_id, now, release=False)


async def revoke_orphan(context: Context, token_id: str, now: Instant) -> bool:
    """End a token at once, but not its children, which are orphans from then on; as `revoke` otherwise."""
    return await _end(context, token_id, now, release=True)


async def _end(context: Context, token_id: str, now: Instant, *, release: bool) -> bool:
    for _ in range(ATTEMPTS):
        found = await find_token(context, token_id)
        if found is None or found.record.released:
            return False
        token = found.record
        puts, deletes = token.ending(now)
        if release and token.has_dependants:
            puts[token.key] = replace(token, released=True, mac="")
            deletes = tuple(key for key in deletes if key != token.key)
        try:
            await context.records.commit(found.expected, puts, deletes)
        except Conflict:
            continue
        return token.has_dependants
    raise Refused(Code.STORE_CONTENDED)


async def settle_children(job: Job, *, released: bool) -> bool:
    """End children of a dead token, or make orphans of those of a released one; false when some are left for later."""
    prefix = keys.children(job.ref)
    for key in await ListKeys(prefix, "", PAGE):
        try:
            await _settle(job, key, key.removeprefix(prefix), released)
        except Conflict:
            continue
    return not await ListKeys(prefix, "", 1)


async def _settle(job: Job, index_key: str, child_id: str, released: bool) -> None:
    context = job.context
    child = await find_token(context, child_id)
    if child is None:
        await context.records.commit(job.fence, deletes=(index_key,))
        return
    puts, deletes = child.record.ending(job.now)
    if released:
        puts, deletes = {child.key: replace(child.record, parent="")}, (index_key,)
    await context.records.commit({**job.fence, **child.expected}, puts, deletes)
