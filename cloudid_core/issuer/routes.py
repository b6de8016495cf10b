"""The routes below `identity`."""

from __future__ import annotations

from functools import partial
from typing import Final

from ..credentials import LOGINS, PLUGINS, Issuer
from ..errors import Code
from ..forms import schemas
from ..messages import READ, WRITE, Answer
from ..mounts import SECRET
from ..rotation import begin_key
from ..routing import PLAIN, Answers, Call, Component, Route, RouteTable, route
from ..values import rfc3339
from . import documents, roles, tokens


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
            tokens.give_token,
            rotate_key,
        )
    ),
    doc="The service as an OpenID Connect issuer. Always there.",
)
