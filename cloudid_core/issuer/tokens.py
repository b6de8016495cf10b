"""Tokens of logins: what this service has proven of whoever logged in, signed for another service."""

from __future__ import annotations

from typing import Final

from ..credentials import LOGINS, signed
from ..errors import Code, Refused
from ..forms import schemas
from ..messages import READ, Answer
from ..mounts import AUTH, TOKEN, mount_table
from ..routing import Call, capture_name, route
from .facts import claims_of, facts_of
from .roles import find_role

MEMBERS: Final = schemas.members(TEXT="client_id token", INTEGER="ttl")


@route("oidc/token/:name", READ, MEMBERS, has_side_effect=True)
async def give_token(call: Call) -> Answer:
    """Gives a signed token that tells another service who logged in. Nobody can call it back."""
    context, token = call.context, call.token.token
    mount = (await mount_table(context.records)).record.by_id.get(token.mount_id)
    if mount is None or mount.kind != AUTH or mount.id == TOKEN.id:
        raise Refused(Code.LOGIN_REQUIRED)
    found = await find_role(context, capture_name(call))
    if found is None:
        raise Refused(Code.ROLE_NOT_FOUND)
    if not context.settings.issuer:
        raise Refused(Code.ISSUER_MISSING, 'set "issuer" to the https address of this service')
    role, facts = found.record, facts_of(token, mount)
    ttl = role.ttl if token.expires_at is None else min(role.ttl, token.seconds_left(call.now))
    claims = {
        **claims_of(role.template, facts),
        "iss": LOGINS.address(context.settings),
        "sub": f"{mount.accessor}:{facts['oid']}",
        "aud": role.client_id,
        "auth_time": int(token.created_at),
    }
    text = await signed(context.records, LOGINS, claims, ttl, context.settings.publishes_to)
    return Answer(data={"client_id": role.client_id, "token": text.reveal(), "ttl": ttl})
