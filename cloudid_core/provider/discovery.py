"""Discovery: what a tenant publishes about itself: its id, its issuers and its signing keys.

Sources: OpenID Connect Discovery 1.0 and RFC 7517. A tenant has two documents, one for each version of its tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Final

import msgspec
from attrs import frozen
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError

from ..clouds import Cloud
from ..effects import HttpRequest, HttpResponse, Now, gather, in_turns, together
from ..errors import ProviderProblem
from ..values import GUID
from ..values.guid import guid
from .calls import RetryBudget, deliver
from .responses import nonsense, problem_of, read
from .urls import same_origin, url

SHORTEST_KEY: Final = 2048
LONGEST_KEY: Final = 8192
"""Limits of an RSA modulus, in bits."""

LARGEST_EXPONENT: Final = 2**32
ALGORITHM: Final = "RS256"
ANY_TENANT: Final = "{tenantid}"
"""The placeholder for the tenant's id in the issuer of a key that several tenants share."""

MOST_KEYS: Final = 100
AT_ONCE: Final = 16
"""How many keys of a document are imported before other requests get a turn.

The largest key takes one or two milliseconds.
"""

_LONGEST_TEXT: Final = 512
_LONGEST_NUMBER: Final = 1400  # characters of base64url for `LONGEST_KEY` bits
_ISSUER: Final = re.compile(rf"https?://[!-~]+/({GUID.pattern})/(?:v2\.0)?")


@frozen
class Published:
    """What a tenant publishes: its id in lower case, both issuers of its tokens, and its RSA keys by key id."""

    tenant_id: str
    issuers: frozenset[str]
    keys: Mapping[str, RSAPublicKey]


class _Document(msgspec.Struct):
    issuer: str
    jwks_uri: str


class _Key(msgspec.Struct):
    """A JSON Web Key (RFC 7517 section 4). `issuer` is Azure's own member."""

    kty: str = ""
    use: str | None = None
    key_ops: list[str] | None = None
    alg: str | None = None
    issuer: str | None = None
    kid: str | None = None
    x5t: str | None = None
    n: str = ""
    e: str = ""


class KeyDocument(msgspec.Struct):
    """A JSON Web Key Set (RFC 7517 section 5)."""

    keys: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=MOST_KEYS)]


async def discover(cloud: Cloud, tenant: str, budget: RetryBudget) -> Published:
    """Read both documents of a tenant, and the key sets that they name.

    Documents are fetched from the environment's login host, key sets from any of its names.

    A version of tokens that the cloud does not offer (400 or 404) is omitted. Any other failure fails the whole.
    """
    answers = await together(
        _document(url(cloud.login, tenant, ".well-known", "openid-configuration"), budget),
        _document(url(cloud.login, tenant, "v2.0", ".well-known", "openid-configuration"), budget),
    )
    documents = [answer for answer in answers if isinstance(answer, _Document)]
    if not documents and isinstance(answers[0], ProviderProblem):
        raise answers[0]
    addresses = list(dict.fromkeys(document.jwks_uri for document in documents))
    if not all(any(same_origin(login, address) for login in cloud.logins) for address in addresses):
        raise nonsense()
    tenant_id = _tenant_id(documents, tenant)
    issuers = frozenset(document.issuer for document in documents)
    answered = await gather([_get(address, budget) for address in addresses])
    published = [raw for answer in answered for raw in read(answer, KeyDocument).keys]
    keys = dict(await in_turns(published, partial(_usable, tenant_id, issuers), AT_ONCE))
    if not keys:
        raise nonsense()
    return Published(tenant_id, issuers, keys)


async def _document(address: str, budget: RetryBudget) -> _Document | ProviderProblem:
    try:
        return read(await _get(address, budget), _Document)
    except ProviderProblem as problem:
        if problem.status not in (400, 404):
            raise
        return problem


def usable_keys(document: KeyDocument, tenant_id: str, issuers: frozenset[str]) -> dict[str, RSAPublicKey]:
    """Return the keys that verify tokens of a tenant, by key id. Keys of other forms are ignored."""
    return {kid: key for raw in document.keys for kid, key in _usable(tenant_id, issuers, raw)}


def _usable(tenant_id: str, issuers: frozenset[str], raw: msgspec.Raw) -> Iterator[tuple[str, RSAPublicKey]]:
    """Yield the id and the key, if it can be used."""
    try:
        said = msgspec.json.decode(raw, type=_Key)
    except (ValueError, RecursionError):
        return
    kid = said.kid or said.x5t or ""
    if 0 < len(kid) <= _LONGEST_TEXT and _is_for(said, tenant_id, issuers) and (key := _import(said)) is not None:
        yield kid, key


async def _get(address: str, budget: RetryBudget) -> HttpResponse:
    response = await deliver(HttpRequest("GET", address, {"accept": "application/json"}), budget)
    if response.status != 200:
        raise problem_of(response, await Now())
    return response


def _is_for(key: _Key, tenant_id: str, issuers: frozenset[str]) -> bool:
    """Return whether a key verifies RS256 signatures of this tenant. Missing members count as correct."""
    return (
        key.kty == "RSA"
        and key.use in (None, "sig")
        and (key.key_ops is None or "verify" in key.key_ops)
        and key.alg in (None, ALGORITHM)
        and (key.issuer is None or key.issuer.replace(ANY_TENANT, tenant_id) in issuers)
    )


def _import(key: _Key) -> RSAPublicKey | None:
    """Return the key, if its size is within the limits."""
    if max(len(key.n), len(key.e)) > _LONGEST_NUMBER:
        return None
    try:
        found = PyJWK({"kty": "RSA", "alg": ALGORITHM, "n": key.n, "e": key.e}).key
    except (PyJWTError, ValueError):
        return None
    is_sound = isinstance(found, RSAPublicKey) and found.public_numbers().e <= LARGEST_EXPONENT
    return found if is_sound and SHORTEST_KEY <= found.key_size <= LONGEST_KEY else None


def _tenant_id(documents: list[_Document], tenant: str) -> str:
    """Return the id that all issuers name.

    It is the tenant's own if that is given as an id, otherwise the one of its domain.
    """
    ids = {_id_in(document.issuer) for document in documents}
    with suppress(ValueError):  # a domain
        ids.add(guid(tenant))
    if len(ids) != 1 or "" in ids:
        raise nonsense()
    return ids.pop()


def _id_in(issuer: str) -> str:
    match = _ISSUER.fullmatch(issuer) if len(issuer) <= _LONGEST_TEXT else None
    return match[1].lower() if match else ""
