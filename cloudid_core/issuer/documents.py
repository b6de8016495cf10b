"""The documents of an issuer (OpenID Connect Discovery 1.0, section 4): for anybody, without an envelope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..credentials import Issuer, SigningKeys, find_signing_keys, max_age
from ..errors import Code, Refused
from ..forms import Json, schemas
from ..messages import HEADERS, Answer
from ..routing import Call
from ..settings import Settings


def configuration(issuer: Issuer, settings: Settings) -> dict[str, Json]:
    """What others have to know of an issuer."""
    address = issuer.address(settings)
    return {
        "issuer": address,
        "jwks_uri": f"{address}/.well-known/keys",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


def key_set(keys: SigningKeys) -> dict[str, Json]:
    """The public halves of all keys: those that have signed, the one that signs, and the next one."""
    return {"keys": [key.jwk for key in keys.keys]}


async def read_configuration(issuer: Issuer, call: Call) -> Answer:
    """404 while the service does not know its public address."""
    if not call.context.settings.issuer:
        raise Refused(Code.NOT_FOUND, 'the setting "issuer" is not set')
    return Answer(data=configuration(issuer, call.context.settings), plain=True, headers=_headers(call))


async def read_keys(issuer: Issuer, call: Call) -> Answer:
    found = await find_signing_keys(call.context.records, issuer)
    return Answer(data=key_set(found.record) if found else {"keys": []}, plain=True, headers=_headers(call))


def _headers(call: Call) -> Mapping[str, str]:
    return {**HEADERS, "cache-control": f"public, max-age={max_age(call.context.settings.signing_key_period)}"}


CONFIGURATION: Final = schemas.members(
    TEXT="issuer jwks_uri",
    LIST="response_types_supported subject_types_supported id_token_signing_alg_values_supported",
)
KEYS: Final = schemas.members(keys=schemas.list_of(schemas.members(TEXT="use kty kid alg n e")))
