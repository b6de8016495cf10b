"""The routes below `identity`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from ..credentials import LOGINS, PLUGINS, Issuer
from ..errors import Code
from ..forms import schemas
from ..messages import Answer, Operation
from ..mounts import SECRET
from ..rotation import begin_key
from ..routing import PLAIN, Answers, Call, Component, Route, RouteTable
from ..values import rfc3339
from . import documents, roles, tokens


async def rotate_key(call: Call) -> Answer:
    return Answer(data={"signs_from": rfc3339.show(await begin_key(call.context, LOGINS))})


def _documents(issuer: Issuer, described: str) -> Iterator[Route]:
    place = f"{issuer.path.removeprefix('/v1/identity/')}/.well-known"
    yield Route(
        path=f"{place}/openid-configuration",
        operation=Operation.READ,
        program=partial(documents.read_configuration, issuer),
        answers=Answers(data=documents.CONFIGURATION, shape=PLAIN, refusals=(Code.NOT_FOUND,)),
        public=True,
        doc=f"Describes the issuer of {described}.",
    )
    yield Route(
        path=f"{place}/keys",
        operation=Operation.READ,
        program=partial(documents.read_keys, issuer),
        answers=Answers(data=documents.KEYS, shape=PLAIN),
        public=True,
        doc=f"Lists the keys that {described} are verified with.",
    )


COMPONENT: Final = Component(
    kind=SECRET,
    type="identity",
    routes=RouteTable(
        (
            *_documents(PLUGINS, "the identity tokens of mounts"),
            *_documents(LOGINS, "tokens of logins"),
            Route(
                path="oidc/role/:name",
                operation=Operation.WRITE,
                program=roles.write_role,
                form=roles.Role,
                exists=roles.role_exists,
                doc="Registers or updates a service that tokens of logins are for.",
            ),
            Route(
                path="oidc/role/:name",
                operation=Operation.READ,
                program=roles.read_role,
                answers=Answers(data=roles.MEMBERS),
                doc="Reads a role.",
            ),
            Route(
                path="oidc/role/:name",
                operation=Operation.DELETE,
                program=roles.delete_role,
                doc="Removes a role. Its tokens stay valid until they expire.",
            ),
            Route(
                path="oidc/role",
                operation=Operation.LIST,
                program=roles.list_roles,
                doc="Lists the names of all roles.",
            ),
            Route(
                path="oidc/token/:name",
                operation=Operation.READ,
                program=tokens.give_token,
                answers=Answers(data=tokens.MEMBERS),
                has_side_effect=True,
                doc="Gives a signed token that tells another service who logged in. Nobody can call it back.",
            ),
            Route(
                path="oidc/key/default/rotate",
                operation=Operation.WRITE,
                program=rotate_key,
                answers=Answers(data=schemas.members(TIME="signs_from")),
                doc="Publishes a new key for tokens of logins, which signs one period later.",
            ),
        )
    ),
    doc="The service as an OpenID Connect issuer. Always there.",
)
