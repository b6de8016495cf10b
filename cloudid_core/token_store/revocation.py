"""Revoke a token: the caller's own, or another one by its text or its accessor; and ask for dead ones to be removed."""

from __future__ import annotations

from attrs import frozen

from ..context import Due, queue
from ..errors import Code, EntryDamaged, Refused
from ..forms import TEXT, schemas, setting
from ..messages import NOTHING, WRITE, Answer
from ..mounts import TOKEN
from ..routing import Answers, Call, route
from ..store import Changes, keys
from ..tokens import Token, find_by_accessor, find_by_text, hierarchy
from .look_up import AccessorForm


@frozen(kw_only=True)
class RevokeForm:
    token: str = setting(TEXT, "", "The token.", required=True, repr=False)


@route("revoke-self", WRITE)
async def revoke_self(call: Call) -> Answer:
    """Ends the caller's token."""
    return await _revoke(call, call.token.token)


@route("revoke", WRITE, form=RevokeForm, requires_all=True)
async def revoke(call: Call) -> Answer:
    """Ends a token with its children and leases."""
    token = await find_by_text(call.context, call.form(RevokeForm).token)
    return await _revoke(call, token) if token else NOTHING


@route("revoke-accessor", WRITE, form=AccessorForm, requires_all=True)
async def revoke_accessor(call: Call) -> Answer:
    """Ends the token with an accessor, with its children and leases."""
    accessor = call.form(AccessorForm).accessor
    try:
        token = await find_by_accessor(call.context, accessor)
    except EntryDamaged as damaged:
        await hierarchy.revoke(call.context, damaged.key.removeprefix(keys.TOKENS), call.now)
        return Answer(warnings=("the token was damaged",), wake_at=call.now)
    return await _revoke(call, token) if token else Answer(warnings=("no token with this accessor was found",))


@route("revoke-orphan", WRITE, form=RevokeForm, requires_all=True)
async def revoke_orphan(call: Call) -> Answer:
    """Ends a token and its leases; its children become orphans."""
    if not call.token.acl.is_sudo(f"{call.mount.path}/revoke-orphan"):
        raise Refused(Code.TOKEN_SUDO_REQUIRED, "to revoke and orphan")
    token = await find_by_text(call.context, call.form(RevokeForm).token)
    if token is None:
        raise Refused(Code.TOKEN_NOT_FOUND)
    _refuse_batch(token)
    is_left = await hierarchy.revoke_orphan(call.context, token.id, call.now)
    return Answer(wake_at=call.now if is_left else None)


async def _revoke(call: Call, token: Token) -> Answer:
    _refuse_batch(token)
    is_left = await hierarchy.revoke(call.context, token.id, call.now)
    return Answer(wake_at=call.now if is_left else None)


def _refuse_batch(token: Token) -> None:
    if token.is_batch:
        raise Refused(Code.BATCH_TOKEN_UNSUPPORTED, "they cannot be revoked")


@route("tidy", WRITE, Answers(accepted=schemas.NULL))
async def tidy(call: Call) -> Answer:
    """Asks for dead tokens to be removed soon."""
    due_key = keys.due(0.0, queue.TIDY, TOKEN.id, "")  # one, however many requests ask
    await call.context.records.commit(Changes(puts={due_key: Due()}))
    return Answer(
        status=202,
        warnings=("dead tokens are removed in the background; another round has been asked for",),
        wake_at=call.now,
    )
