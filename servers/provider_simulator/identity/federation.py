"""Federated identity credentials: issuers whose signed assertions stand in for an application's secret.

The token endpoint checks an assertion (RFC 7523, section 3) in this order: its form, that issuer, subject and audience
equal those of one credential exactly, its time, and its signature under a key that the issuer publishes. The issuer's
documents are fetched over HTTP and kept for their `max-age`, so that a key which was published too late is not known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from attrs import field, frozen
from cryptography.hazmat.primitives.asymmetric import rsa

from cloudid_core.effects import HttpResponse

from ..engine.behaviour import Replica
from ..engine.immutable import Immutable
from ..engine.requests import Json
from ..world.objects import FederatedCredential
from ..world.world import World
from .assertions import Assertion, check_times, decode, remember
from .errors import token_error


@frozen
class IssuerKeys(Immutable):
    """The keys of an issuer, as they were fetched."""

    keys: Mapping[str, rsa.RSAPublicKey] = field(repr=False)
    fresh_until: float


def check_federated(world: World, client_id: str, assertion: Assertion) -> None:
    """Refuse an assertion that does not stand in for the secret of an application; remember one that does."""
    kid = assertion.header.get("kid")
    if kid is None or assertion.header["alg"] != "RS256":
        raise token_error(50027)
    credential = _matching(world, client_id, assertion.claims)
    check_times(world, assertion)
    key = _keys(world, credential.issuer).keys.get(str(kid))
    if key is None:
        raise token_error(700027)
    if not assertion.is_signed_by(key):
        raise token_error(50027)
    remember(world, client_id, assertion, str(kid))


def _matching(world: World, client_id: str, claims: Json) -> FederatedCredential:
    """The credential that an assertion is for. Each mismatch has an error of its own."""
    known = [
        one
        for one in world.federations.values()
        if one.client_id.lower() == client_id.lower()
        and one.known_from <= world.replication.known_until(Replica.SIGN_IN, one.id)
    ]
    if not known:
        raise token_error(70021)
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    of_issuer = [one for one in known if one.issuer == claims.get("iss")]
    of_subject = [one for one in of_issuer if one.subject == claims.get("sub")]
    if not of_issuer:
        raise token_error(700211)
    if not of_subject:
        raise token_error(700213)
    match = next((one for one in of_subject if one.audience in audiences), None)
    if match is None:
        raise token_error(700212)
    return match


def _keys(world: World, issuer: str) -> IssuerKeys:
    """The published keys of an issuer, from the cache while they are fresh."""
    known: IssuerKeys | None = world.issuer_keys.get(issuer)
    if known is not None and world.now() < known.fresh_until:
        return known
    try:
        configuration, kept = _document(world, f"{issuer}/.well-known/openid-configuration")
        if configuration["issuer"] != issuer:
            raise ValueError
        published, keys_kept = _document(world, str(configuration["jwks_uri"]))
        keys = {str(key["kid"]): _public_key(key) for key in published["keys"]}
    except (OSError, ValueError, TypeError, KeyError):
        raise token_error(50166) from None
    fetched = world.issuer_keys[issuer] = IssuerKeys(keys, world.now() + min(kept, keys_kept))
    return fetched


def _document(world: World, url: str) -> tuple[Json, float]:
    """A document of an issuer, and the seconds for which it may be kept."""
    response = world.fetch(url)
    if response.status != 200:
        raise ValueError
    document = json.loads(response.body)
    if not isinstance(document, dict):
        raise ValueError
    return document, _max_age(response)


def _max_age(response: HttpResponse) -> float:
    found = re.search(r"max-age=([0-9]{1,9})", response.headers.get("cache-control", ""))
    return float(found[1]) if found else 0.0


def _public_key(key: Json) -> rsa.RSAPublicKey:
    modulus, exponent = (int.from_bytes(decode(key[name])) for name in ("n", "e"))
    return rsa.RSAPublicNumbers(exponent, modulus).public_key()
