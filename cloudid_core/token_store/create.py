"""Create a token with a token. The new token is a child of the caller's, unless it is an orphan."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from ..context import Context
from ..effects import ListKeys, RandomBytes
from ..errors import Code, Conflict, Problem, Refused, StoreFailed
from ..forms import BOOLEAN, INTEGER, METADATA, SECONDS, TEXT, FieldType, Grant, Terms, bounded, grant, one_of, setting
from ..messages import WRITE, Answer
from ..mounts import mount_table
from ..policies import DEFAULT, RESPONSE_WRAPPING, ROOT, load_policy, normalised, without_default
from ..routing import GIVES_TOKEN, Call, capture_name, route
from ..store import Changes, keys, retry_on_conflict
from ..tokens import (
    BATCH,
    DEPTH,
    POLICIES,
    RANDOM_SIZE,
    SERVICE,
    Token,
    custom_token,
    lineage,
    mint,
    owner_of,
    principal_of,
    tie,
)
from ..values import coercion, least, network
from .roles import TokenRole, find_role

_NAME_LIMIT: Final = 128


def _empty(raw: object) -> str:
    if coercion.text(raw):
        raise ValueError("must be empty: there are no entities")
    return ""


EMPTY: Final = FieldType("empty string", _empty)


@frozen(kw_only=True)
class CreateForm:
    id: str = setting(TEXT, "", "The token, instead of a random one. Requires sudo.", repr=False)
    policies: tuple[str, ...] = setting(POLICIES, (), "Policies. Empty: the parent's.")
    meta: dict[str, str] = setting(METADATA, {}, "Metadata, which lookups return.")
    no_parent: bool = setting(
        BOOLEAN, False, "Create an orphan. Requires sudo. With a role, its `orphan` is used instead."
    )
    no_default_policy: bool = setting(BOOLEAN, False, "Do not add the policy `default`.")
    renewable: bool = setting(BOOLEAN, True, "Whether it can be renewed.")
    ttl: int = setting(SECONDS, 0, "Lifetime. 0: the mount's default.", old_name="lease")
    explicit_max_ttl: int = setting(SECONDS, 0, "Maximum lifetime, including renewals.")
    display_name: str = setting(TEXT, "", "Name in logs, after `token-`.")
    num_uses: int = setting(bounded(INTEGER, 0, 2**31), 0, "How often the token can be used. 0: no limit.")
    period: int = setting(
        SECONDS, 0, "Makes the token periodic: each renewal extends it by this period. Requires sudo."
    )
    type: str = setting(one_of(SERVICE, BATCH), "", "`service` or `batch`.")
    entity_alias: str = setting(EMPTY, "", "Must be empty. There are no entities.")


NO_PARENT_IGNORED: Final = 'The role decides whether its tokens are orphans: "no_parent" is ignored'
SUDO_FIELDS: Final = ("id", "no_parent", "period")


def check_caller(caller: Token, *, last_use: bool) -> None:
    """Refuse callers that cannot have children."""
    if caller.is_batch:
        raise Refused(Code.BATCH_TOKEN_UNSUPPORTED, "they cannot create tokens")
    if caller.num_uses or last_use:
        raise Refused(Code.TOKEN_RESTRICTED)


def check_sudo(form: CreateForm, role: TokenRole | None, *, has_sudo: bool) -> None:
    """Refuse requests that need `sudo`. With a role that creates orphans, an orphan does not need it."""
    used = [name for name in SUDO_FIELDS if getattr(form, name)]
    if role is not None and role.orphan and "no_parent" in used:
        used.remove("no_parent")
    if used and not has_sudo:
        raise Refused.because([Problem(Code.TOKEN_SUDO_REQUIRED, f'"{name}"') for name in used])


def type_of(form: CreateForm, role: TokenRole | None) -> str:
    """Return the type of the new token. A role may force it; otherwise the request chooses."""
    ruled = role.token_type if role else SERVICE
    if role is not None and ruled in (SERVICE, BATCH):
        return ruled
    return form.type or (BATCH if ruled.endswith(BATCH) else SERVICE)


def policies_of(form: CreateForm, role: TokenRole | None, parent: Token, *, has_sudo: bool) -> tuple[str, ...]:
    """Return the policies of the new token. Refuse policies that the parent or the role does not allow."""
    wants_default = not (form.no_default_policy or (role and role.token_no_default_policy))
    asked_for = normalised(form.policies)
    if role is not None and role.rules_policies:
        policies = _by_role(asked_for, role, parent, wants_default)
    else:
        policies = _by_parent(asked_for, parent, wants_default, has_sudo)
    if ROOT in policies and not parent.is_root:
        raise Refused(Code.POLICY_NOT_SUBSET, "only root tokens create root tokens")
    if RESPONSE_WRAPPING in policies:
        raise Refused(Code.FIELD_INVALID, f'"policies": {RESPONSE_WRAPPING} cannot be assigned')
    if ROOT in policies:
        return (ROOT,)
    return policies if wants_default else without_default(policies)


def _by_role(asked_for: tuple[str, ...], role: TokenRole, parent: Token, wants_default: bool) -> tuple[str, ...]:
    policies = asked_for or role.allowed_policies or parent.policies
    if wants_default and role.allows(DEFAULT):
        policies = (*policies, DEFAULT)
    if not all(role.allows(policy) for policy in policies):
        raise Refused(Code.POLICY_NOT_SUBSET, "the role does not allow one of them")
    return normalised(policies)


def _by_parent(asked_for: tuple[str, ...], parent: Token, wants_default: bool, has_sudo: bool) -> tuple[str, ...]:
    if not asked_for:
        return parent.policies
    if not has_sudo and not set(asked_for) <= set(parent.policies):
        raise Refused(Code.POLICY_NOT_SUBSET)
    if wants_default and (has_sudo or DEFAULT in parent.policies):
        return normalised((*asked_for, DEFAULT))
    return asked_for


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
    """Creates a token with the rules of a role."""
    return await _create(call, f"create/{capture_name(call, 'role')}", orphan=False)


@retry_on_conflict
async def _create(call: Call, path: str, *, orphan: bool) -> Answer:
    context, form, caller = call.context, call.form(CreateForm), call.token
    check_caller(caller.token, last_use=caller.last_use)
    mounts = await mount_table(context.records)
    _, _, role_name = path.partition("/")
    found_role = await find_role(context, role_name) if role_name else None
    role = found_role.record if found_role else None
    if role_name and role is None:
        raise Refused(Code.ROLE_NOT_FOUND)
    parent = await owner_of(context, mounts.record, caller.token, call.now)
    if parent is None:
        raise Refused(Code.PERMISSION_DENIED)
    has_sudo = caller.acl.is_sudo(f"{call.mount.path}/{path}")
    check_sudo(form, role, has_sudo=has_sudo)
    orphan = role.orphan if role is not None else orphan or form.no_parent
    if not orphan and len(await lineage(context, mounts.record, parent.record, call.now)) >= DEPTH:
        raise Refused(Code.MALFORMED_REQUEST, "the token has too many ancestors to have a child")
    policies = policies_of(form, role, parent.record, has_sudo=has_sudo)
    principal = await principal_of(context, mounts.record, parent.record, call.now)
    draft, granted = _draft(call, form, role, parent.record, policies, path, principal, orphan=orphan)
    await _check_id(context, form.id, draft)
    issue = mint(context, draft, granted.warnings, await RandomBytes(RANDOM_SIZE), form.id)
    changes = Changes({**mounts.expected, **parent.expected, **(found_role.expected if found_role else {})})
    if not (orphan or draft.is_batch):
        changes |= tie(parent)
    if issue.stored_id:
        changes |= call.tied_to_wrapping(token_id=issue.stored_id)
    call.held.token = issue.token
    try:
        await context.records.commit(changes | issue.changes)
    except (Conflict, StoreFailed):  # nothing was written
        call.held.token = call.held.wrapping = None
        raise
    ignored = (NO_PARENT_IGNORED,) if form.no_parent and not orphan else ()
    warnings = (*issue.warnings, *ignored, *await _missing(context, policies))
    return Answer(auth=issue.block, warnings=warnings, new_token=issue.stored_id)


def _draft(
    call: Call,
    form: CreateForm,
    role: TokenRole | None,
    parent: Token,
    policies: tuple[str, ...],
    path: str,
    principal: str,
    *,
    orphan: bool,
) -> tuple[Token, Grant]:
    """Return the token, still without a text, and its lifetime."""
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
    default, most = call.mount.default_ttl(call.context.settings), call.mount.max_ttl(call.context.settings)
    terms = Terms(default=default, max=most, ttl=form.ttl, period=period, explicit_max_ttl=explicit_max_ttl)
    granted = Grant(0) if endless else grant(terms, start=call.now, now=call.now)
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
        principal="" if parent.is_root else principal,
        parent_created_at=parent.created_at if token_type == BATCH and not orphan else None,
        explicit_max_ttl=explicit_max_ttl,
        period=period,
        num_uses=num_uses,
        bound_cidrs=_bound_cidrs(role, parent),
    )
    return token, granted


def _bound_cidrs(role: TokenRole | None, parent: Token) -> tuple[str, ...]:
    """Return the addresses from which the token may be used.

    They are those of its parent, even for an orphan, that the role also allows.
    """
    try:
        return network.intersection(role.token_bound_cidrs if role else (), parent.bound_cidrs)
    except ValueError as error:
        raise Refused(Code.FIELD_INVALID, f'"token_bound_cidrs" of the role and those of the parent {error}') from None


async def _check_id(context: Context, chosen: str, draft: Token) -> None:
    """Refuse a chosen text that cannot be a token, or that is in use: by a token, or by remains of an ended one."""
    if not chosen:
        return
    if draft.is_batch:
        raise Refused(Code.BATCH_TOKEN_UNSUPPORTED, 'they cannot have a custom "id"')
    try:
        token_ids = [custom_token(chosen, each).id for each in context.records.sealer.keyring.token_keys]
    except ValueError as error:
        raise Refused(Code.FIELD_INVALID, f'"id" {error}') from None
    for token_id in token_ids:
        for prefix in (keys.token(token_id), keys.children(token_id), keys.token_leases(token_id)):
            if await ListKeys(prefix, "", 1):
                raise Refused(Code.FIELD_INVALID, '"id" is in use')


async def _missing(context: Context, policies: tuple[str, ...]) -> tuple[str, ...]:
    """Return warnings about policies that do not exist yet, and therefore grant nothing."""
    return tuple(
        [f'Policy "{policy}" does not exist' for policy in policies if await load_policy(context, policy) is None]
    )
