"""The routes below `identity`."""

from __future__ import annotations

from functools import partial
from typing import Final

from ..credentials import LOGINS, PLUGINS, Issuer, signed
from ..errors import Code, Refused
from ..forms import schemas
from ..messages import READ, WRITE, Answer
from ..mounts import AUTH, SECRET, TOKEN, mount_table
from ..rotation import begin_key
from ..routing import PLAIN, Answers, Call, Component, Route, RouteTable, capture_name, route
from ..values import rfc3339
from . import documents, roles
from .facts import claims_of, facts_of
from .roles import find_role


@route("oidc/key/default/rotate", WRITE, schemas.members(TIME="signs_from"))
async def rotate_key(call: Call) -> Answer:
    """Publishes a new key for tokens of logins, which signs one period later."""
    return Answer(data={"signs_from": rfc3339.show(await begin_key(call.context, LOGINS))})


def _documents(issuer: Issuer, described: str) -> tuple[Route, ...]:
    place = f"{issuer.path.removeprefix('/v1/identity/')}/.well-known"
    return (
        Route(
            f"{place}/openid-configuration",
            READ,
            partial(documents.read_configuration, issuer),
            f"Describes the issuer of {described}.",
            answers=Answers(data=documents.CONFIGURATION, shape=PLAIN, refusals=(Code.NOT_FOUND,)),
            public=True,
        ),
        Route(
            f"{place}/keys",
            READ,
            partial(documents.read_keys, issuer),
            f"Lists the keys that {described} are verified with.",
            answers=Answers(data=documents.KEYS, shape=PLAIN),
            public=True,
        ),
    )


TOKEN_MEMBERS: Final = schemas.members(TEXT="client_id token", INTEGER="ttl")


@route("oidc/token/:name", READ, TOKEN_MEMBERS, has_side_effect=True)
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


COMPONENT: Final = Component(
    kind=SECRET,
    type="identity",
    routes=RouteTable(
        (
            *_documents(PLUGINS, "the identity tokens of mounts"),
            *_documents(LOGINS, "tokens of logins"),
            *roles.ROLES.routes(
                "Registers or updates a service that tokens of logins are for.",
                delete="Removes a role. Its tokens stay valid until they expire.",
            ),
            give_token,
            rotate_key,
        )
    ),
    doc="The service as an OpenID Connect issuer. Always there.",
)
