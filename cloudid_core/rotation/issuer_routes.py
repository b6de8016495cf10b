"""The documents of the issuer (OpenID Connect Discovery 1.0, section 4): for anybody, without an envelope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..credentials import find_signing_keys, issuer_of, max_age
from ..errors import Code, Refused
from ..forms import schemas
from ..messages import HEADERS, Answer, Operation
from ..mounts import SECRET
from ..routing import PLAIN, Answers, Call, Component, Route, RouteTable


async def read_configuration(call: Call) -> Answer:
    """What the provider has to know of the issuer. 404 while the service does not know its public address."""
    issuer = issuer_of(call.context.settings)
    if not issuer:
        raise Refused(Code.NOT_FOUND, 'the setting "issuer" is not set')
    document = {
        "issuer": issuer,
        "jwks_uri": f"{issuer}/.well-known/keys",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }
    return Answer(data=document, plain=True, headers=_headers(call))


async def read_keys(call: Call) -> Answer:
    """The public halves of all keys: those that have signed, the one that signs, and the next one."""
    found = await find_signing_keys(call.context.records)
    published = [key.jwk for key in found.record.keys] if found else []
    return Answer(data={"keys": published}, plain=True, headers=_headers(call))


def _headers(call: Call) -> Mapping[str, str]:
    return {**HEADERS, "cache-control": f"public, max-age={max_age(call.context.settings.signing_key_period)}"}


CONFIGURATION: Final = schemas.members(
    issuer=schemas.TEXT,
    jwks_uri=schemas.TEXT,
    response_types_supported=schemas.LIST,
    subject_types_supported=schemas.LIST,
    id_token_signing_alg_values_supported=schemas.LIST,
)
KEY: Final = schemas.members(
    use=schemas.TEXT, kty=schemas.TEXT, kid=schemas.TEXT, alg=schemas.TEXT, n=schemas.TEXT, e=schemas.TEXT
)
COMPONENT: Final = Component(
    kind=SECRET,
    type="identity",
    routes=RouteTable(
        (
            Route(
                path="oidc/plugins/.well-known/openid-configuration",
                operation=Operation.READ,
                program=read_configuration,
                answers=Answers(data=CONFIGURATION, shape=PLAIN, refusals=(Code.NOT_FOUND,)),
                public=True,
                doc="Describes the issuer of the service's identity tokens.",
            ),
            Route(
                path="oidc/plugins/.well-known/keys",
                operation=Operation.READ,
                program=read_keys,
                answers=Answers(data=schemas.members(keys=schemas.list_of(KEY)), shape=PLAIN),
                public=True,
                doc="Lists the keys that identity tokens are verified with.",
            ),
        )
    ),
    doc="The service as an OpenID Connect issuer. Always there.",
)
