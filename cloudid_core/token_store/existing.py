"""Look up, renew or revoke a token: the caller's own, or another one by its text or its accessor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen
from msgspec.structs import replace

from ..context import Context, Due, Recheck, queue
from ..effects import Instant, ListKeys, Sleep
from ..errors import Code, EntryDamaged, Refused
from ..events import RenewalUnchecked
from ..forms import SECONDS, TEXT, Json, Terms, grant, schemas, setting
from ..messages import ACCEPTED, LIST, NOTHING, READ, WRITE, Answer
from ..mounts import TOKEN, Mount, MountTable, mount_table
from ..routing import GIVES_TOKEN, Answers, Call, PageForm, route
from ..store import Changes, keys, retry_on_conflict
from ..tokens import (
    Token,
    accessor_of,
    auth_block,
    encoding,
    find_by_accessor,
    find_by_text,
    find_token,
    hierarchy,
    is_valid,
    lineage,
)
from ..values import rfc3339

PAGE: Final = 1000
"""How many tokens are listed at a time."""


@frozen(kw_only=True)
class TokenForm:
    token: str = setting(TEXT, "", "The token.", repr=False)


@frozen(kw_only=True)
class RevokeForm:
    token: str = setting(TEXT, "", "The token.", required=True, repr=False)


@frozen(kw_only=True)
class AccessorForm:
    accessor: str = setting(TEXT, "", "Accessor of the token.", required=True)


def described(token: Token, text: str, accessor: str, now: Instant, *, orphan: bool) -> dict[str, Json]:
    """Return the members of a look-up. `text` is the token itself, or empty if the caller only has its accessor."""
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
    """Returns information about the caller's token."""
    caller = call.token
    return _answer(call, caller.token, caller.text, orphan=not caller.dies_with_parent)


@route("lookup", READ, MEMBERS, form=TokenForm)
async def look_up(call: Call) -> Answer:
    """Returns information about a token, by default the caller's."""
    text = call.form(TokenForm).token
    if not text:
        return await look_up_self.program(call)
    return await _look_up(call, await find_by_text(call.context, text), text)


@route("lookup-accessor", WRITE, MEMBERS, form=AccessorForm, requires_all=True)
async def look_up_accessor(call: Call) -> Answer:
    """Returns information about the token with an accessor."""
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

    They are in the order of the tokens' creation. The id of a token with a chosen text does not contain a time.
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
    """Return the accessors of undamaged tokens. While there is only one term of token keys, no token has to be read."""
    first, *newer = context.records.sealer.keyring.token_keys
    if not newer:
        token_ids = [key.removeprefix(keys.TOKENS) for key in token_keys]
        return [encoding.accessor_of(token_id, first) for token_id in token_ids if encoding.is_id(token_id)]
    return [accessor_of(context, found.record) for found in await context.records.find_undamaged(token_keys, Token)]


async def _token_key(context: Context, accessor: str, now: Instant) -> str:
    """Return the key of the token with an accessor.

    If it no longer exists, its term is the one that results in a plausible time.
    """
    token = await find_by_accessor(context, accessor)
    if token is not None:
        return token.key
    terms = context.records.sealer.keyring.token_keys
    token_ids = [token_id for each in terms if (token_id := encoding.id_of_accessor(accessor, each))]
    if not token_ids:
        raise Refused(Code.FIELD_INVALID, '"after" must be an accessor')
    latest = encoding.time_ordered_id(now, bytes([255]) * encoding.ID_RANDOM_SIZE)
    return keys.token(max((token_id for token_id in token_ids if token_id <= latest), default=token_ids[0]))


@frozen(kw_only=True)
class IncrementForm:
    increment: int = setting(SECONDS, 0, "Seconds from now. 0: the TTL of the token or its role.")


@frozen(kw_only=True)
class RenewForm(IncrementForm):
    token: str = setting(TEXT, "", "The token.", required=True, repr=False)


@frozen(kw_only=True)
class RenewAccessorForm(IncrementForm):
    accessor: str = setting(TEXT, "", "Accessor of the token.", required=True)


@route("renew-self", WRITE, GIVES_TOKEN, form=IncrementForm)
async def renew_self(call: Call) -> Answer:
    """Renews the caller's token."""
    caller, increment = call.token, call.form(IncrementForm).increment
    return await _renew(call, caller.token, caller.text, increment, missing=Code.PERMISSION_DENIED)


@route("renew", WRITE, GIVES_TOKEN, form=RenewForm, requires_all=True)
async def renew(call: Call) -> Answer:
    """Renews a token."""
    form = call.form(RenewForm)
    return await _renew(call, await find_by_text(call.context, form.token), form.token, form.increment)


@route("renew-accessor", WRITE, GIVES_TOKEN, form=RenewAccessorForm, requires_all=True)
async def renew_accessor(call: Call) -> Answer:
    """Renews the token with an accessor."""
    form = call.form(RenewAccessorForm)
    return await _renew(call, await find_by_accessor(call.context, form.accessor), "", form.increment)


@retry_on_conflict
async def _renew(
    call: Call, token: Token | None, text: str, increment: int, missing: Code = Code.TOKEN_NOT_FOUND
) -> Answer:
    """Renew a token. `text` is the token itself, which the response repeats, or empty."""
    context = call.context
    if token is not None and token.is_batch:
        raise Refused(Code.BATCH_TOKEN_UNSUPPORTED, "they cannot be renewed")
    mounts = await mount_table(context.records)
    found = await find_token(context, token.id) if token else None
    if found is None or not await is_valid(context, mounts.record, found.record, call.now):
        raise Refused(missing)
    if not found.record.renewable or found.record.expires_at is None:
        raise Refused(Code.TOKEN_NOT_RENEWABLE)
    mount = mounts.record.by_id[found.record.mount_id]
    terms, role_expects = await terms_of(context, mount, found.record)
    check, role = Recheck(), found.record.role
    if role:
        who, metadata = found.record.principal_id, found.record.metadata or {}
        check = await context.components.of(mount).recheck(context, mount, who, metadata, call.deadline)
    granted = grant(terms, start=found.record.created_at, now=call.now, increment=increment)
    expires_at = call.now + granted.ttl
    renewed = replace(found.record, expires_at=expires_at, last_renewal=call.now, period=terms.period)
    puts: dict[str, object] = {found.key: renewed}
    if renewed.has_dependants:
        puts[renewed.due_key(expires_at)] = Due()
    expects = {**check.expects, **mounts.expected, **role_expects, **found.expected}
    unchecked = RenewalUnchecked(
        request_id=call.request_id, mount_accessor=mount.accessor, role=role, reason=" ".join(check.unknown)
    )
    await context.records.commit(Changes(expects, puts, events=(unchecked,) if check.unknown else ()))
    block = auth_block(renewed, text, accessor_of(context, renewed), granted.ttl)
    warnings = tuple(f"renewed, though one check could not be made: {code}" for code in check.unknown)
    return Answer(auth=block, warnings=(*granted.warnings, *warnings))


async def terms_of(context: Context, mount: Mount, token: Token) -> tuple[Terms, dict[str, int]]:
    """Return the current limits of a token, and the versions that a commit must expect.

    The limits come from the token's role, or from the token itself without a role. Refuse with `ROLE_NOT_FOUND` if the
    role was deleted.
    """
    terms = Terms(default=mount.default_ttl(context.settings), max=mount.max_ttl(context.settings), period=token.period)
    expects: dict[str, int] = {}
    if token.role:
        found = await context.components.of(mount).token_terms(context, mount, token.role)
        if found is None:
            raise Refused(Code.ROLE_NOT_FOUND)
        terms, expects = found.record, found.expected
    ttl = token.ttl if mount.id == TOKEN.id else terms.ttl
    return replace(terms, ttl=ttl, explicit_max_ttl=token.explicit_max_ttl), expects


async def hard_end(context: Context, mounts: MountTable, token: Token, now: Instant) -> Instant | None:
    """Return the instant until which a token or an ancestor can be renewed. `None`: there is none."""
    ends: list[Instant] = []
    for each in await lineage(context, mounts, token, now):
        if each.expires_at is None:
            continue
        try:
            terms, _ = await terms_of(context, mounts.by_id[each.mount_id], each)
        except Refused:  # its role is gone, so that it cannot be renewed
            ends.append(each.expires_at)
            continue
        if not each.renewable:
            ends.append(each.expires_at)
        elif not terms.period:
            ends.append(each.created_at + terms.effective_max)
        elif terms.explicit_max_ttl:
            ends.append(each.created_at + terms.explicit_max_ttl)
    return min(ends, default=None)


@route("revoke-self", WRITE)
async def revoke_self(call: Call) -> Answer:
    """Revokes the caller's token."""
    return await _revoke(call, call.token.token)


@route("revoke", WRITE, form=RevokeForm, requires_all=True)
async def revoke(call: Call) -> Answer:
    """Revokes a token with its children and leases."""
    token = await find_by_text(call.context, call.form(RevokeForm).token)
    return await _revoke(call, token) if token else NOTHING


@route("revoke-accessor", WRITE, form=AccessorForm, requires_all=True)
async def revoke_accessor(call: Call) -> Answer:
    """Revokes the token with an accessor, with its children and leases."""
    accessor = call.form(AccessorForm).accessor
    try:
        token = await find_by_accessor(call.context, accessor)
    except EntryDamaged as damaged:
        await hierarchy.revoke(call.context, damaged.key.removeprefix(keys.TOKENS), call.now)
        return Answer(warnings=("the token was damaged",), wake_at=call.now)
    return await _revoke(call, token) if token else Answer(warnings=("no token with this accessor was found",))


@route("revoke-orphan", WRITE, form=RevokeForm, requires_all=True)
async def revoke_orphan(call: Call) -> Answer:
    """Revokes a token and its leases. Its children become orphans."""
    if not call.token.acl.is_sudo(f"{call.mount.path}/revoke-orphan"):
        raise Refused(Code.TOKEN_SUDO_REQUIRED, "to revoke and orphan")
    token = await find_by_text(call.context, call.form(RevokeForm).token)
    if token is None:
        raise Refused(Code.TOKEN_NOT_FOUND)
    _refuse_batch(token)
    is_left = await hierarchy.revoke(call.context, token.id, call.now, release=True)
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
    """Requests that expired tokens are removed soon."""
    due_key = keys.due(0.0, queue.TIDY, TOKEN.id, "")  # one, however many requests ask
    await call.context.records.commit(Changes(puts={due_key: Due()}))
    return Answer(
        status=ACCEPTED,
        warnings=("expired tokens are removed in the background; an extra run was requested",),
        wake_at=call.now,
    )
