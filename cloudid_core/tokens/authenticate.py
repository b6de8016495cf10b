"""Who calls: the token of a request, if it is a good one, with one of its uses spent."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..context import Context
from ..effects import Instant, Program
from ..errors import Code, Refused
from ..mounts import MountTable
from ..policies import Acl, load_acl
from ..store import Changes, Found, keys, retry_on_conflict
from ..values import network
from . import batch, decoy, encoding
from .record import ANCESTOR, Caller, Token

DEPTH: Final = 64
"""How many tokens may stand in one line, each the parent of the next."""


def find_token(context: Context, token_id: str) -> Program[Found[Token] | None]:
    """The service token with this id, alive or not."""
    return context.records.find_known(context.caches.tokens, keys.token(token_id), Token)


async def find_by_text(context: Context, shown: str) -> Token | None:
    """The token with this text, alive or not."""
    sealer = context.records.sealer
    if shown.startswith(encoding.BATCH_PREFIX):
        return batch.unseal(shown, sealer.keyring)
    for token_id in encoding.ids_of(shown, sealer.keyring.token_keys):
        was_known = context.caches.tokens.peek(keys.token(token_id)) is not None
        found = await find_token(context, token_id)
        if found is None:
            decoy.open_and_compare(shown, sealer.keyring.token_keys[-1])
            continue
        term_keys = sealer.keyring.token_keys_of(found.record.key_term)
        if term_keys is None:
            await context.records.learn_keys()
            term_keys = sealer.keyring.token_keys_of(found.record.key_term)
        if term_keys is not None and encoding.is_token(shown, found.record.mac, term_keys):
            return found.record
        if was_known:
            decoy.open_record()
    return None


async def find_by_accessor(context: Context, accessor: str) -> Token | None:
    """The service token with this accessor, alive or not."""
    for term_keys in reversed(context.records.sealer.keyring.token_keys):
        token_id = encoding.id_of_accessor(accessor, term_keys)
        found = await find_token(context, token_id) if token_id else None
        if found is not None and found.record.key_term == term_keys.term:
            return found.record
    return None


async def authenticate(context: Context, mounts: MountTable, shown: str, remote_address: str, now: Instant) -> Caller:
    """The caller behind a token; `PERMISSION_DENIED` when it is missing, unknown, dead, or used from elsewhere."""
    line = await _line_of(context, mounts, shown, remote_address, now)
    if not line:
        raise Refused(Code.PERMISSION_DENIED)
    token, last_use = line[0], False
    if token.num_uses:
        token = await _spend_use(context, token.id, now)
        last_use = token.num_uses == 0
    acl = await load_acl(context, token.policies)
    return Caller(token=token, text=shown, acl=acl, last_use=last_use, dies_with_parent=len(line) > 1)


async def is_known(context: Context, mounts: MountTable, shown: str, remote_address: str, now: Instant) -> bool:
    """Whether a token is good where it is used from. None of its uses is spent."""
    return bool(await _line_of(context, mounts, shown, remote_address, now))


async def acl_of(context: Context, mounts: MountTable, shown: str, remote_address: str, now: Instant) -> Acl | None:
    """Return what a token allows where it is used from; `None` when it is not valid. None of its uses is spent."""
    line = await _line_of(context, mounts, shown, remote_address, now)
    return await load_acl(context, line[0].policies) if line else None


async def _line_of(
    context: Context, mounts: MountTable, shown: str, remote_address: str, now: Instant
) -> tuple[Token, ...]:
    """The token with this text and all that it dies with, as `lineage`; nothing when it is not good for callers."""
    token = await find_by_text(context, shown)
    if token is None or token.is_wrapping or not network.contains(token.bound_cidrs, remote_address):
        return ()
    return await lineage(context, mounts, token, now)


async def lineage(context: Context, mounts: MountTable, token: Token, now: Instant) -> tuple[Token, ...]:
    """A token and all that it dies with, itself first; nothing when one of them is dead or its mount is gone."""
    line: list[Token] = []
    while len(line) < DEPTH:
        if not token.is_alive(now) or token.mount_id not in mounts.by_id:
            return ()
        line.append(token)
        if not token.parent:
            return tuple(line)
        found = await find_token(context, token.parent)
        if found is None or not token.is_child_of(found.record):
            return ()
        if found.record.released:
            return () if token.is_batch else tuple(line)
        token = found.record
    return ()


async def principal_of(context: Context, mounts: MountTable, token: Token, now: Instant) -> str:
    """Return the principal that a token counts for: that of its login, otherwise its oldest living ancestor.

    Root tokens are no one's principal: all that an operator creates with one of them would count together.
    """
    if token.login_principal:
        return token.login_principal
    line = [each for each in await lineage(context, mounts, token, now) if not each.is_root] or [token]
    return line[-1].login_principal or f"{ANCESTOR}{line[-1].id}"


async def is_valid(context: Context, mounts: MountTable, token: Token, now: Instant) -> bool:
    """Whether a token is alive, its mount exists, and so it is with all its parents."""
    return bool(await lineage(context, mounts, token, now))


async def owner_of(context: Context, mounts: MountTable, token: Token, now: Instant) -> Found[Token] | None:
    """The stored token that ends what is made with `token`: itself, or a batch token's parent where it has one.

    Read anew, for a commit that expects it; `PERMISSION_DENIED` when `token` is no longer good.
    """
    owner_id = token.parent if token.is_batch else token.id
    owner = await find_token(context, owner_id) if owner_id else None
    if not token.is_batch:
        if owner is None:
            raise Refused(Code.PERMISSION_DENIED)
        token = owner.record
    if not await is_valid(context, mounts, token, now):
        raise Refused(Code.PERMISSION_DENIED)
    return owner


@retry_on_conflict
async def _spend_use(context: Context, token_id: str, now: Instant) -> Token:
    """Count one use. The last one ends the token, so that it is granted once however many requests ask for it.

    A put ends the token, not a delete: when the store cannot tell the outcome, only what was put proves whose it is.
    The token is then dead by the clock of every node, however far that is behind.
    """
    found = await find_token(context, token_id)
    if found is None or not found.record.num_uses or not found.record.is_alive(now):
        raise Refused(Code.PERMISSION_DENIED)
    spent = replace(found.record, num_uses=found.record.num_uses - 1)
    changes = Changes(found.expected, {spent.key: spent})
    if not spent.num_uses:
        changes = spent.ending(now) | Changes(found.expected, {spent.key: replace(spent, expires_at=0.0)})
    await context.records.commit(changes)
    return spent
