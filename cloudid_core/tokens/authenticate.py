"""Authenticate the caller: check the token of a request, and count one use."""

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
"""Maximum depth of the hierarchy of tokens."""


def find_token(context: Context, token_id: str) -> Program[Found[Token] | None]:
    """Return the service token with this id, valid or not."""
    return context.records.find_known(context.caches.tokens, keys.token(token_id), Token)


async def find_by_text(context: Context, shown: str) -> Token | None:
    """Return the token with this text, valid or not."""
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
    """Return the service token with this accessor, valid or not."""
    for term_keys in reversed(context.records.sealer.keyring.token_keys):
        token_id = encoding.id_of_accessor(accessor, term_keys)
        found = await find_token(context, token_id) if token_id else None
        if found is not None and found.record.key_term == term_keys.term:
            return found.record
    return None


async def authenticate(context: Context, mounts: MountTable, shown: str, remote_address: str, now: Instant) -> Caller:
    """Return the caller behind a token.

    Refuse with `PERMISSION_DENIED` if it is missing, unknown, expired or used from a forbidden address.
    """
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
    """Return whether a token is valid at the address where it is used. This does not count as a use."""
    return bool(await _line_of(context, mounts, shown, remote_address, now))


async def acl_of(context: Context, mounts: MountTable, shown: str, remote_address: str, now: Instant) -> Acl | None:
    """Return what a token allows at the address where it is used, or `None` if it is not valid.

    This does not count as a use.
    """
    line = await _line_of(context, mounts, shown, remote_address, now)
    return await load_acl(context, line[0].policies) if line else None


async def _line_of(
    context: Context, mounts: MountTable, shown: str, remote_address: str, now: Instant
) -> tuple[Token, ...]:
    """Return the token with this text and its ancestors, like `lineage`. Empty if callers cannot use it."""
    token = await find_by_text(context, shown)
    if token is None or token.is_wrapping or not network.contains(token.bound_cidrs, remote_address):
        return ()
    return await lineage(context, mounts, token, now)


async def lineage(context: Context, mounts: MountTable, token: Token, now: Instant) -> tuple[Token, ...]:
    """Return a token and its ancestors, itself first. Empty if one of them has ended or its mount was deleted."""
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
    """Return the principal of a token: of its login, otherwise its oldest living ancestor.

    Root tokens have no principal: all tokens that an operator creates with one of them would be counted together.
    """
    if token.login_principal:
        return token.login_principal
    line = [each for each in await lineage(context, mounts, token, now) if not each.is_root] or [token]
    return line[-1].login_principal or f"{ANCESTOR}{line[-1].id}"


async def is_valid(context: Context, mounts: MountTable, token: Token, now: Instant) -> bool:
    """Return whether a token, its mount and all its ancestors are valid."""
    return bool(await lineage(context, mounts, token, now))


async def owner_of(context: Context, mounts: MountTable, token: Token, now: Instant) -> Found[Token] | None:
    """Return the stored token that ends what `token` creates: itself, or a batch token's parent if it has one.

    It is read again, for a commit that expects it. Refuse with `PERMISSION_DENIED` if `token` is no longer valid.
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
    """Count one use. The last use ends the token, so that it is granted once in spite of concurrent requests.

    An entry is put, not deleted: if the outcome of the commit is unknown, only the new entry proves which request used
    it. The token is then expired by the clock of every node, however slow it is.
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
