"""Access tokens of a role's app registration, without a lease.

They are requested with a credential that the caller does not see. Until half of its lifetime has passed, a token is
reused for all callers with the same role and scope. The token is only a cached fact: each request is decided again,
before and after a token is requested.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar

from attrs import evolve, frozen
from msgspec.structs import replace

from ..credentials import Key, present
from ..deadline import Deadline
from ..effects import Instant, Now
from ..errors import CloudidError, Code, Conflict, ProviderProblem, Refused
from ..forms import TEXT, schemas, setting
from ..messages import READ, WRITE, Answer
from ..mounts import require_live
from ..provider import (
    GRACE,
    PROOFS,
    AccessToken,
    Client,
    Credentials,
    FreshObject,
    ask_for_token,
    once,
    retry_while_propagating,
)
from ..routing import PROVIDER, Call, capture_name, route
from ..store import NO_CHANGES, Changes, Found, keys, retry_on_conflict
from ..values import rfc3339
from . import config
from .roles import Role, may_issue_for
from .static_roles import NO_KEY, StaticRole, find_static_role, may_rotate
from .token_secret import TokenSecret, replace_secret

R = TypeVar("R", Role, StaticRole)
MEMBERS: Final = schemas.members(TEXT="access_token token_type scope", INTEGER="expires_in", TIME="expires_at")
PATIENCE: Final = 5.0
"""Seconds that a request waits for the replacement of a valid secret. The replacement continues without it."""
CHANGED: Final = "the role or the configuration was changed by another request"


@frozen(kw_only=True)
class TokenForm:
    """A request for an access token."""

    scope: str = setting(TEXT, "", "One of the role's `token_scopes`. Optional if there is only one.")


@frozen(kw_only=True)
class Grant(Generic[R]):
    """What a request is allowed: tokens of one scope for a role's app registration, under one configuration."""

    role: Found[R]
    client_id: str
    scope: str
    client: Client
    terms: object
    """The versions that a requested token depends on. The secret with which it was requested no longer matters."""
    secret: TokenSecret | None = None
    grounds: Changes = NO_CHANGES
    """What a commit depends on besides the role."""

    @property
    def identity(self) -> Hashable:
        """Return everything that its tokens depend on. Versions are never reused."""
        who = self.client.owner, self.client.cloud.login, self.client.tenant.lower(), self.client_id
        return self.role.key, self.role.version, who, self.scope


@route(
    "token/:name", READ, MEMBERS, refusals=(Code.ROLE_CHANGE_PENDING, *PROVIDER), form=TokenForm, has_side_effect=True
)
@retry_on_conflict
async def give_access_token(call: Call) -> Answer:
    """Issues an access token of the role's app registration, without a lease. It cannot be revoked."""
    grant = await _permit(call)
    token = await _cached(call, grant)
    if token is None:
        if grant.secret is None or not grant.secret.proven or grant.secret.ends_at <= await Now():
            await _replace(call, grant, call.deadline, is_needed=True)
            grant = await _permit(call)
        token = await _fresh(call, grant)
        await _replace_in_time(call, grant)
        if (await _permit(call)).terms != grant.terms:
            raise Conflict(CHANGED)
    return _token_answer(token, grant.scope, await Now())


async def _permit(call: Call) -> Grant[Role]:
    """Decide with the current role and configuration."""
    context, mount, name = call.context, call.mount, capture_name(call)
    await require_live(context.records, mount)
    found = await context.records.find(keys.role(mount.id, name), Role)
    if found is None:
        raise Refused(Code.ROLE_NOT_FOUND)
    role = found.record.normal
    scope = chosen_scope(role.token_scopes, call.form(TokenForm).scope)
    effective, client, config_expects = await config.in_use(context, mount, call.deadline)
    grounds = await may_issue_for(context, mount, effective, client, role)
    return Grant(
        role=found,
        client_id=role.existing_client_id,
        scope=scope,
        client=client,
        terms=(evolve(found.record, token_secret=None), client.owner),
        secret=found.record.token_secret,
        grounds=grounds | Changes(config_expects),
    )


@route("static-creds/:name/token", WRITE, MEMBERS, refusals=PROVIDER, form=TokenForm)
@retry_on_conflict
async def give_static_token(call: Call) -> Answer:
    """Issues an access token of the static role's app registration, without a lease. It cannot be revoked."""
    grant, key = await _permit_static(call)
    token = await _cached(call, grant)
    if token is None:
        credentials = present(call.context, call.mount, grant.client, grant.client_id, key)
        token = await _ask(call, grant, credentials, PROOFS[key.proof].family, made_at=0.0)
        if (await _permit_static(call))[0].terms != grant.terms:
            raise Conflict(CHANGED)
    return _token_answer(token, grant.scope, await Now())


async def _permit_static(call: Call) -> tuple[Grant[StaticRole], Key]:
    """Decide with the current role and configuration. Return the credential that the role holds."""
    context, mount, name = call.context, call.mount, capture_name(call)
    await require_live(context.records, mount)
    await may_rotate(context, mount, name, call.deadline)
    found = await find_static_role(context, mount, name)
    role = found.record
    scope = chosen_scope(role.token_scopes, call.form(TokenForm).scope)
    if not role.client_secret:
        raise Refused(Code.ROLE_WITHOUT_SECRET)
    client = await config.client(context, mount, call.deadline)
    terms = role.holding(NO_KEY), client.owner
    return Grant(role=found, client_id=role.client_id, scope=scope, client=client, terms=terms), role.held


def chosen_scope(token_scopes: tuple[str, ...], scope: str) -> str:
    """Return the requested scope, or the only one."""
    if not token_scopes:
        raise Refused(Code.ROLE_WITHOUT_TOKENS)
    if not scope and len(token_scopes) > 1:
        raise Refused(Code.FIELD_REQUIRED, '"scope": the role has several "token_scopes"')
    if scope and scope not in token_scopes:
        raise Refused(Code.TOKEN_SCOPE_NOT_ALLOWED)
    return scope or token_scopes[0]


async def _cached(call: Call, grant: Grant[Any]) -> AccessToken | None:
    """Return a cached token in the first half of its lifetime."""
    known: AccessToken | None = call.context.caches.lent_tokens.get(grant.identity)
    return known if known is not None and await Now() < known.refresh_at else None


async def _ask(
    call: Call, grant: Grant[Any], credentials: Credentials, family: FreshObject, made_at: Instant
) -> AccessToken:
    """Request a new token once for all waiting callers.

    `family`: errors of a credential that is new at a given time.
    """

    async def work(deadline: Deadline) -> AccessToken:
        known = await _cached(call, grant)
        if known is not None:
            return known  # it came since the asker looked
        client, asked_at = replace(grant.client, deadline=deadline, credentials=credentials), await Now()
        attempt = partial(ask_for_token, client, grant.scope)
        token = await retry_while_propagating(client, attempt, family=family, made_at=made_at)
        token = evolve(token, refresh_at=(asked_at + token.expires_at) / 2)
        call.context.caches.lent_tokens.put(grant.identity, token)
        return token

    return await once(f"role token {grant.identity!r}", call.context.settings.request_deadline, call.deadline, work)


async def _fresh(call: Call, grant: Grant[Role]) -> AccessToken:
    """Request a new token. If Azure has lost the secret, it is replaced."""
    secret = grant.secret
    if secret is None:
        raise Conflict(CHANGED)
    credentials, made_at = secret.credentials(call.context, call.mount, grant.client), secret.provisioned.made_at
    try:
        return await _ask(call, grant, credentials, secret.row.family, made_at)
    except ProviderProblem as problem:
        if problem.code not in secret.row.dead or await Now() < made_at + GRACE:
            raise
    await _replace(call, grant, call.deadline, is_needed=True)
    raise Conflict("the role's secret was changed")


async def _replace(call: Call, grant: Grant[Role], deadline: Deadline, *, is_needed: bool) -> None:
    """Replace the role's secret, once for all waiting callers."""
    key = f"role secret {grant.client.owner} {grant.role.key} {grant.role.version} {is_needed}"

    async def work(deadline: Deadline) -> None:
        client = replace(grant.client, deadline=deadline)
        await replace_secret(call.context, call.mount, client, grant.role, grant.grounds, is_needed=is_needed)

    await once(key, call.context.settings.request_deadline, deadline, work)


async def _replace_in_time(call: Call, grant: Grant[Role]) -> None:
    """Replace a secret in the second half of its lifetime. While that fails, the current one stays in use."""
    now = await Now()
    if grant.secret is not None and grant.secret.replace_at <= now:
        with suppress(CloudidError):
            await _replace(call, grant, Deadline(min(call.deadline.at, now + PATIENCE)), is_needed=False)


def _token_answer(token: AccessToken, scope: str, now: Instant) -> Answer:
    ends_at = math.floor(token.expires_at)
    return Answer(
        data={
            "access_token": token.token.reveal(),
            "token_type": "Bearer",
            "expires_in": max(0, math.floor(ends_at - now)),
            "expires_at": rfc3339.show(ends_at),
            "scope": scope,
        },
        warnings=(f"the access token cannot be revoked: it is valid until {rfc3339.show(ends_at)}",),
    )
