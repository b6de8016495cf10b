"""The routes below `identity`: the documents of both issuers, and roles and tokens for other services."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from attrs import evolve, frozen

from ..credentials import (
    LOGINS,
    LONGEST_TOKEN,
    PLUGINS,
    SHORTEST_TOKEN,
    Issuer,
    find_signing_keys,
    max_age,
    signed,
)
from ..effects import RandomBytes
from ..errors import Code, Refused
from ..forms import IDENTIFIER, lasting, one_of, schemas, setting, show, shown_members
from ..messages import HEADERS, READ, WRITE, Answer
from ..mounts import AUTH, IDENTITY, SECRET, TOKEN, mount_table
from ..rotation import begin_key
from ..routing import PLAIN, Answers, Call, Component, NamedRecords, Route, RouteTable, capture_name, route
from ..store import keys
from ..values import rfc3339
from .facts import FACTS, TEMPLATE, claims_of, facts_of
from .publication import configuration, key_set

KEY: Final = "default"
"""The name of the only key."""


@frozen(kw_only=True)
class Role:
    """A service for which tokens are issued."""

    client_id: str = setting(IDENTIFIER, "", "The audience (`aud`) of the tokens. Empty: a random one is generated.")
    ttl: int = setting(
        lasting(LONGEST_TOKEN, least=SHORTEST_TOKEN), 3600, "How long a token is valid, at most as long as the login."
    )
    template: str = setting(
        TEMPLATE,
        "",
        "The claims of the tokens: a JSON object, plain or base64-encoded, with `{{NAME}}` for a "
        f"value. Empty: all proven claims. Names: {', '.join(f'`{name}`' for name in FACTS)}.",
    )
    key: str = setting(one_of(KEY), KEY, "The signing key. All roles use the same one.")


async def _changed(call: Call, role: Role) -> tuple[Role, tuple[str, ...]]:
    role = evolve(role, **call.given.values)
    return (role if role.client_id else evolve(role, client_id=(await RandomBytes(16)).hex())), ()


ROLES: Final = NamedRecords(
    path="oidc/role", form=Role, changed=_changed, shown=lambda name, role: show(role), members=shown_members(Role)
)


@route("oidc/key/default/rotate", WRITE, schemas.members(TIME="signs_from"))
async def rotate_key(call: Call) -> Answer:
    """Publishes a new key for the tokens of logins, which starts to sign one period later."""
    return Answer(data={"signs_from": rfc3339.show(await begin_key(call.context, LOGINS))})


CONFIGURATION: Final = schemas.members(
    TEXT="issuer jwks_uri",
    LIST="response_types_supported subject_types_supported id_token_signing_alg_values_supported",
)
KEYS: Final = schemas.members(keys=schemas.list_of(schemas.members(TEXT="use kty kid alg n e")))


async def read_configuration(issuer: Issuer, call: Call) -> Answer:
    """Read the configuration. 404 if the service does not know its public URL."""
    if not call.context.settings.issuer:
        raise Refused(Code.NOT_FOUND, 'the setting "issuer" is not set')
    return Answer(data=configuration(issuer, call.context.settings), plain=True, headers=_headers(call))


async def read_keys(issuer: Issuer, call: Call) -> Answer:
    found = await find_signing_keys(call.context.records, issuer)
    return Answer(data=key_set(found.record) if found else {"keys": []}, plain=True, headers=_headers(call))


def _headers(call: Call) -> Mapping[str, str]:
    return {**HEADERS, "cache-control": f"public, max-age={max_age(call.context.settings.signing_key_period)}"}


def _documents(issuer: Issuer, described: str) -> tuple[Route, ...]:
    place = f"{issuer.path.removeprefix('/v1/identity/')}/.well-known"
    return (
        Route(
            f"{place}/openid-configuration",
            READ,
            partial(read_configuration, issuer),
            f"Returns the OpenID Connect configuration of the issuer of {described}.",
            answers=Answers(data=CONFIGURATION, shape=PLAIN, refusals=(Code.NOT_FOUND,)),
            public=True,
        ),
        Route(
            f"{place}/keys",
            READ,
            partial(read_keys, issuer),
            f"Returns the public keys that verify {described}.",
            answers=Answers(data=KEYS, shape=PLAIN),
            public=True,
        ),
    )


TOKEN_MEMBERS: Final = schemas.members(TEXT="client_id token", INTEGER="ttl")


@route("oidc/token/:name", READ, TOKEN_MEMBERS, has_side_effect=True)
async def give_token(call: Call) -> Answer:
    """Issues a signed token that proves to another service who logged in. It cannot be revoked."""
    context, token = call.context, call.token.token
    mount = (await mount_table(context.records)).record.by_id.get(token.mount_id)
    if mount is None or mount.kind != AUTH or mount.id == TOKEN.id:
        raise Refused(Code.LOGIN_REQUIRED)
    found = await context.records.find(keys.role(IDENTITY.id, capture_name(call)), Role)
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
            *ROLES.routes(
                "Creates or updates a role: a service for which logged-in machines can request tokens.",
                delete="Deletes a role. Its tokens stay valid until they expire.",
            ),
            give_token,
            rotate_key,
        )
    ),
    doc="The service as an OpenID Connect issuer. This mount always exists.",
)
