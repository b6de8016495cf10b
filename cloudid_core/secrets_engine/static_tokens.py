"""Access tokens of a static role's application, for clients that need no secret. They are used and decided as those of
other roles."""

from __future__ import annotations

from collections.abc import Hashable

from attrs import frozen
from msgspec.structs import replace

from ..credentials import present
from ..effects import Now
from ..errors import Code, Conflict, Refused
from ..messages import Answer
from ..mounts import require_live
from ..provider import PROOFS, Client
from ..routing import Call, capture_name
from ..store import Found, retry_on_conflict
from .access_tokens import CHANGED, TokenForm, cached, chosen_scope, fresh, token_answer
from .config import client
from .static_roles import NO_KEY, StaticRole, find_static_role, may_rotate


@frozen(kw_only=True)
class Grant:
    """What a request is allowed: tokens of one scope for a static role's application, under one configuration."""

    role: Found[StaticRole]
    scope: str
    client: Client

    @property
    def identity(self) -> Hashable:
        """All that its tokens depend on. Versions are never used again."""
        client = self.client
        who = client.owner, client.cloud.login, client.tenant.lower(), self.role.record.client_id
        return self.role.key, self.role.version, who, self.scope

    @property
    def terms(self) -> object:
        """What a token that was asked for rests on; a rotation changes nothing of it."""
        return self.role.record.holding(NO_KEY), self.client.owner


@retry_on_conflict
async def give_static_token(call: Call) -> Answer:
    """Answer an access token for the application of a static role; it has no lease, and nobody can call it back."""
    grant = await _permit(call)
    token = await cached(call, grant.identity)
    if token is None:
        role = grant.role.record
        credentials = present(call.context, call.mount, grant.client, role.client_id, role.held)
        bearer, family = replace(grant.client, credentials=credentials), PROOFS[role.held.proof].family
        token = await fresh(call, grant.identity, bearer, grant.scope, family=family, made_at=0.0)
        if (await _permit(call)).terms != grant.terms:
            raise Conflict(CHANGED)
    return token_answer(token, grant.scope, await Now())


async def _permit(call: Call) -> Grant:
    """Decide under the present role and configuration."""
    context, mount, name = call.context, call.mount, capture_name(call)
    await require_live(context.records, mount)
    await may_rotate(context, mount, name)
    found = await find_static_role(context, mount, name)
    scope = chosen_scope(found.record.token_scopes, call.form(TokenForm).scope)
    if not found.record.client_secret:
        raise Refused(Code.ROLE_WITHOUT_SECRET)
    return Grant(role=found, scope=scope, client=await client(context, mount, call.deadline))
