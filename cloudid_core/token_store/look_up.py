"""Look up a token: the caller's own, or another one by its text or its accessor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from ..context import Context
from ..effects import Instant, ListKeys, Sleep
from ..errors import Code, Refused
from ..forms import TEXT, Json, schemas, setting
from ..messages import LIST, READ, WRITE, Answer
from ..mounts import mount_table
from ..routing import Call, PageForm, route
from ..store import keys
from ..tokens import Token, accessor_of, encoding, find_by_accessor, find_by_text, lineage
from ..values import rfc3339

PAGE: Final = 1000
"""How many tokens are listed at a time."""


@frozen(kw_only=True)
class TokenForm:
    token: str = setting(TEXT, "", "The token.", repr=False)


@frozen(kw_only=True)
class AccessorForm:
    accessor: str = setting(TEXT, "", "Accessor of the token.", required=True)


def described(token: Token, text: str, accessor: str, now: Instant, *, orphan: bool) -> dict[str, Json]:
    """The members of a look-up. `text` is that of the token; empty where the caller only knows its accessor."""
    data: dict[str, Json] = {
        "id": text,
        "accessor": accessor,
        "policies": token.policies,
        "path": token.path,
        "meta": token.metadata,
        "display_name": token.display_name,
        "num_uses": token.num_uses,
        "orphan": orphan,
        "creation_time": int(token.created_at),
        "creation_ttl": token.ttl,
        "issue_time": rfc3339.show(token.created_at),
        "expire_time": None if token.expires_at is None else rfc3339.show(token.expires_at),
        "ttl": token.seconds_left(now),
        "explicit_max_ttl": token.explicit_max_ttl,
        "entity_id": "",
        "type": token.type,
        "renewable": token.renewable,
    }
    if token.role:
        data["role"] = token.role
    if token.period:
        data["period"] = token.period
    if token.bound_cidrs:
        data["bound_cidrs"] = token.bound_cidrs
    if token.last_renewal is not None:
        data["last_renewal"] = rfc3339.show(token.last_renewal)
        data["last_renewal_time"] = int(token.last_renewal)
    return data


MEMBERS: Final = schemas.members(
    {"TEXT": "role", "INTEGER": "period last_renewal_time", "LIST": "bound_cidrs", "TIME": "last_renewal"},
    TEXT="id accessor path display_name entity_id type",
    LIST="policies",
    INTEGER="num_uses creation_time creation_ttl ttl explicit_max_ttl",
    BOOLEAN="orphan renewable",
    TIME="issue_time",
    meta=schemas.nullable(schemas.TEXTS),
    expire_time=schemas.nullable(schemas.TIME),
)


@route("lookup-self", READ, MEMBERS)
async def look_up_self(call: Call) -> Answer:
    """Tells what the service knows of the caller's token."""
    caller = call.token
    return _answer(call, caller.token, caller.text, orphan=not caller.dies_with_parent)


@route("lookup", READ, MEMBERS, form=TokenForm)
async def look_up(call: Call) -> Answer:
    """Tells what the service knows of a token; without one, of the caller's."""
    text = call.form(TokenForm).token
    if not text:
        return await look_up_self.program(call)
    return await _look_up(call, await find_by_text(call.context, text), text)


@route("lookup-accessor", WRITE, MEMBERS, form=AccessorForm, requires_all=True)
async def look_up_accessor(call: Call) -> Answer:
    """Tells what the service knows of the token with an accessor."""
    return await _look_up(call, await find_by_accessor(call.context, call.form(AccessorForm).accessor), "")


async def _look_up(call: Call, token: Token | None, text: str) -> Answer:
    mounts = (await mount_table(call.context.records)).record
    line = await lineage(call.context, mounts, token, call.now) if token else ()
    if token is None or not line:
        raise (
            Refused(Code.PERMISSION_DENIED, "bad token") if text else Refused(Code.TOKEN_NOT_FOUND, "invalid accessor")
        )
    return _answer(call, token, text, orphan=len(line) == 1)


def _answer(call: Call, token: Token, text: str, *, orphan: bool) -> Answer:
    return Answer(data=described(token, text, accessor_of(call.context, token), call.now, orphan=orphan))


@route("accessors", LIST, form=PageForm, pages=True)
async def list_accessors(call: Call) -> Answer:
    """Lists the accessors of all service tokens.

    In the order in which the tokens were made; the id of a token with a chosen text does not contain a time.
    """
    context, form = call.context, call.form(PageForm)
    after = await _token_key(context, form.after, call.now) if form.after else ""
    accessors: list[str] = []
    wanted = form.limit if form.limit > 0 else None
    while wanted is None or len(accessors) < wanted:
        size = PAGE if wanted is None else min(PAGE, wanted - len(accessors))
        page = await ListKeys(keys.TOKENS, after, size)
        accessors += await _accessors(context, page)
        if len(page) < size:
            break
        after = page[-1]
        await Sleep(0.0)
    return Answer(data={"keys": accessors})


async def _accessors(context: Context, token_keys: Sequence[str]) -> list[str]:
    """The accessors of undamaged tokens. While there is one term of token keys, no token has to be read."""
    first, *newer = context.records.sealer.keyring.token_keys
    if not newer:
        token_ids = [key.removeprefix(keys.TOKENS) for key in token_keys]
        return [encoding.accessor_of(token_id, first) for token_id in token_ids if encoding.is_id(token_id)]
    return [accessor_of(context, found.record) for found in await context.records.find_undamaged(token_keys, Token)]


async def _token_key(context: Context, accessor: str, now: Instant) -> str:
    """The key of the token with an accessor. If it is gone, its term is the one that gives it a likely time."""
    token = await find_by_accessor(context, accessor)
    if token is not None:
        return token.key
    terms = context.records.sealer.keyring.token_keys
    token_ids = [token_id for each in terms if (token_id := encoding.id_of_accessor(accessor, each))]
    if not token_ids:
        raise Refused(Code.FIELD_INVALID, '"after" must be an accessor')
    latest = encoding.time_ordered_id(now, bytes([255]) * encoding.ID_RANDOM_SIZE)
    return keys.token(max((token_id for token_id in token_ids if token_id <= latest), default=token_ids[0]))
