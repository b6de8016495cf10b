"""Create a token with a token. The new one is a child of the caller's, unless it is to be an orphan."""

from __future__ import annotations

import re
from typing import Final

from ..context import Context
from ..effects import ListKeys, RandomBytes
from ..errors import Code, Refused
from ..forms import Grant, Terms, grant
from ..messages import WRITE, Answer
from ..mounts import mount_table
from ..policies import ROOT, load_policy
from ..routing import GIVES_TOKEN, Call, capture_name, route
from ..store import Changes, Found, keys, retry_on_conflict
from ..tokens import BATCH, DEPTH, RANDOM_SIZE, Token, custom_token, lineage, mint, owner_of, tie
from ..values import least
from .create_request import CreateForm, check_caller, check_sudo, policies_of, type_of
from .roles import TokenRole, find_role

_NAME_LIMIT: Final = 128


@route("create", WRITE, GIVES_TOKEN, form=CreateForm)
async def create(call: Call) -> Answer:
    """Creates a child of the caller's token."""
    return await _create(call, "create", orphan=False)


@route("create-orphan", WRITE, GIVES_TOKEN, form=CreateForm)
async def create_orphan(call: Call) -> Answer:
    """Creates a token without a parent."""
    return await _create(call, "create-orphan", orphan=True)


@route("create/:role", WRITE, GIVES_TOKEN, form=CreateForm)
async def create_for_role(call: Call) -> Answer:
    """Creates a token under the rules of a role."""
    return await _create(call, f"create/{capture_name(call, 'role')}", orphan=False)


@retry_on_conflict
async def _create(call: Call, path: str, *, orphan: bool) -> Answer:
    context, form, caller = call.context, call.form(CreateForm), call.token
    check_caller(caller.token, last_use=caller.last_use)
    mounts = await mount_table(context.records)
    found_role = await _role_at(context, path)
    role = found_role.record if found_role else None
    parent = await owner_of(context, mounts.record, caller.token, call.now)
    if parent is None:
        raise Refused(Code.PERMISSION_DENIED)
    has_sudo = caller.acl.is_sudo(f"{call.mount.path}/{path}")
    check_sudo(form, role, has_sudo=has_sudo)
    orphan = orphan or form.no_parent or (role is not None and role.orphan)
    if not orphan and len(await lineage(context, mounts.record, parent.record, call.now)) >= DEPTH:
        raise Refused(Code.MALFORMED_REQUEST, "the token has too many ancestors to have a child")
    policies = policies_of(form, role, parent.record, has_sudo=has_sudo)
    draft, granted = _draft(call, form, role, parent.record, policies, path, orphan=orphan)
    await _check_id(context, form.id, draft)
    issue = mint(context, draft, granted.warnings, await RandomBytes(RANDOM_SIZE), form.id)
    changes = Changes({**mounts.expected, **parent.expected, **(found_role.expected if found_role else {})})
    if not (orphan or draft.is_batch):
        changes |= tie(parent)
    if issue.stored_id:
        changes |= call.tied_to_wrapping(token_id=issue.stored_id)
    await context.records.commit(changes | issue.changes)
    warnings = (*issue.warnings, *await _missing(context, policies))
    return Answer(auth=issue.block, warnings=warnings, new_token=issue.stored_id)


async def _role_at(context: Context, path: str) -> Found[TokenRole] | None:
    _, _, name = path.partition("/")
    found = await find_role(context, name) if name else None
    if name and found is None:
        raise Refused(Code.ROLE_NOT_FOUND)
    return found


def _draft(
    call: Call,
    form: CreateForm,
    role: TokenRole | None,
    parent: Token,
    policies: tuple[str, ...],
    path: str,
    *,
    orphan: bool,
) -> tuple[Token, Grant]:
    """The token, still without a text, and its lifetime."""
    token_type = type_of(form, role)
    num_uses = least(form.num_uses, role.token_num_uses if role else 0)
    period = least(form.period, role.token_period if role else 0)
    explicit_max_ttl = least(form.explicit_max_ttl, role.token_explicit_max_ttl if role else 0)
    if token_type == BATCH and (num_uses or period or form.explicit_max_ttl or ROOT in policies):
        raise Refused(
            Code.BATCH_TOKEN_UNSUPPORTED, 'they have no "num_uses", "period" or "explicit_max_ttl", and are never root'
        )
    endless = ROOT in policies and not (form.ttl or period or explicit_max_ttl)
    if endless and parent.expires_at is not None:
        raise Refused(Code.TTL_EXCEEDS_MAX, "an expiring root token cannot create one that does not expire")
    granted = Grant(0) if endless else _granted(call, form.ttl, period, explicit_max_ttl)
    token = Token(
        path="/".join(filter(None, (call.mount.path, path, role.path_suffix if role else ""))),
        mount_id=call.mount.id,
        policies=policies,
        display_name=re.sub(r"[^A-Za-z0-9-]", "-", f"token-{form.display_name}"[:_NAME_LIMIT]).removesuffix("-"),
        created_at=max(call.now, parent.created_at),
        ttl=granted.ttl,
        expires_at=None if endless else call.now + granted.ttl,
        role=path.partition("/")[2],
        metadata=form.meta or None,
        type=token_type,
        renewable=form.renewable and not endless and (role is None or role.renewable),
        parent="" if orphan else parent.id,
        parent_created_at=parent.created_at if token_type == BATCH and not orphan else None,
        explicit_max_ttl=explicit_max_ttl,
        period=period,
        num_uses=num_uses,
        bound_cidrs=(role.token_bound_cidrs if role else ()) or parent.bound_cidrs,
    )
    return token, granted


def _granted(call: Call, ttl: int, period: int, explicit_max_ttl: int) -> Grant:
    """The lifetime of a token that is asked for, in seconds, under the limits of the mount."""
    terms = Terms(
        default=call.mount.default_ttl(call.context.settings),
        max=call.mount.max_ttl(call.context.settings),
        ttl=ttl,
        period=period,
        explicit_max_ttl=explicit_max_ttl,
    )
    return grant(terms, start=call.now, now=call.now)


async def _check_id(context: Context, chosen: str, draft: Token) -> None:
    """Refuse a chosen text that cannot be a token, or is in use: by a token, or by what a dead one left to delete."""
    if not chosen:
        return
    if draft.is_batch:
        raise Refused(Code.BATCH_TOKEN_UNSUPPORTED, 'their "id" cannot be chosen')
    try:
        token_ids = [custom_token(chosen, each).id for each in context.records.sealer.keyring.token_keys]
    except ValueError as error:
        raise Refused(Code.FIELD_INVALID, f'"id" {error}') from None
    for token_id in token_ids:
        for prefix in (keys.token(token_id), keys.children(token_id), keys.token_leases(token_id)):
            if await ListKeys(prefix, "", 1):
                raise Refused(Code.FIELD_INVALID, '"id" is in use')


async def _missing(context: Context, policies: tuple[str, ...]) -> tuple[str, ...]:
    """Warnings about policies that do not exist yet, and therefore grant nothing."""
    return tuple(
        [f'Policy "{policy}" does not exist' for policy in policies if await load_policy(context, policy) is None]
    )
