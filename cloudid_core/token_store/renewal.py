"""Renew a token: more time, under the terms that hold now."""

from __future__ import annotations

from attrs import frozen
from msgspec.structs import replace

from ..context import Context, Due, Recheck
from ..errors import Code, Refused
from ..events import RenewalUnchecked
from ..forms import SECONDS, TEXT, Terms, grant, setting
from ..messages import WRITE, Answer
from ..mounts import TOKEN, Mount, mount_table
from ..routing import GIVES_TOKEN, Call, route
from ..store import Changes, retry_on_conflict
from ..tokens import Token, accessor_of, auth_block, find_by_accessor, find_by_text, find_token, is_valid


@frozen(kw_only=True)
class IncrementForm:
    increment: int = setting(SECONDS, 0, "Seconds from now; 0: the TTL of the token or its role.")


@frozen(kw_only=True)
class RenewForm(IncrementForm):
    token: str = setting(TEXT, "", "The token.", required=True, repr=False)


@frozen(kw_only=True)
class RenewAccessorForm(IncrementForm):
    accessor: str = setting(TEXT, "", "Accessor of the token.", required=True)


@route("renew-self", WRITE, GIVES_TOKEN, form=IncrementForm)
async def renew_self(call: Call) -> Answer:
    """Gives the caller's token more time."""
    caller, increment = call.token, call.form(IncrementForm).increment
    return await _renew(call, caller.token, caller.text, increment, missing=Code.PERMISSION_DENIED)


@route("renew", WRITE, GIVES_TOKEN, form=RenewForm, requires_all=True)
async def renew(call: Call) -> Answer:
    """Gives a token more time."""
    form = call.form(RenewForm)
    return await _renew(call, await find_by_text(call.context, form.token), form.token, form.increment)


@route("renew-accessor", WRITE, GIVES_TOKEN, form=RenewAccessorForm, requires_all=True)
async def renew_accessor(call: Call) -> Answer:
    """Gives the token with an accessor more time."""
    form = call.form(RenewAccessorForm)
    return await _renew(call, await find_by_accessor(call.context, form.accessor), "", form.increment)


@retry_on_conflict
async def _renew(
    call: Call, token: Token | None, text: str, increment: int, missing: Code = Code.TOKEN_NOT_FOUND
) -> Answer:
    """Give a token more time. `text` is that of the token, which the answer repeats; empty: it does not."""
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
    """What limits a token now, and which versions of entries a commit that uses it must expect.

    The limits come from the token's role; without a role, from the token itself. `ROLE_NOT_FOUND` when the role is
    gone.
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
