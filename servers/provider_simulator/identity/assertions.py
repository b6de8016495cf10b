"""Client assertions (RFC 7523): JWTs that stand in for an application's secret.

An application signs one itself, with a key whose certificate it has registered; the certificate is found by its
thumbprint, `x5t#S256` or `x5t`. Or an issuer signs it that the application trusts: its issuer, subject and audience
equal those of one federated credential exactly, and the key is one that the issuer publishes. The issuer's documents
are fetched over HTTP and kept for their `max-age`, so that a key which was published too late is not known.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import field, frozen
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt import PyJWK, PyJWTError
from jwt.utils import base64url_encode

from ..engine import Immutable
from ..engine.behaviour import Replica
from ..engine.requests import Json
from ..world.objects import Application, Certificate, FederatedCredential
from ..world.world import World
from .errors import token_error
from .keys import Jwt

EXTERNAL_SUBJECT: Final = "/eid1/"
"""How subjects start that Azure makes of another tenant's identities."""
JWT_BEARER: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
CLOCK_SKEW: Final = 300.0
"""Seconds that an assertion's time may be ahead of the clock."""
MOST_ASSERTIONS: Final = 1000
"""How many accepted assertions are remembered."""
SHA256_THUMBPRINT: Final = "x5t#S256"
SHA1_THUMBPRINT: Final = "x5t"
AUDIENCES: Final = ("oauth2/v2.0/token", "oauth2/token", "v2.0")
"""Of what an application signs itself, below the address of the tenant."""


@frozen
class IssuerKeys(Immutable):
    """The keys of an issuer, as they were fetched."""

    keys: Mapping[str, rsa.RSAPublicKey] = field(repr=False)
    fresh_until: float


def check_assertion(world: World, application: Application, address: str, text: str) -> None:
    """Refuse an assertion that does not stand in for the secret of an application; remember one that does.

    `address`: that of the tenant, as the client knows it.
    """
    try:
        assertion = Jwt.parse(text)
    except ValueError:
        raise token_error(50027) from None
    of_itself = str(assertion.claims.get("iss")).lower() == application.client_id.lower()
    if of_itself or SHA256_THUMBPRINT in assertion.header:
        key = _check_certificate(world, application, address, assertion)
    else:
        key = _check_federated(world, application.client_id, assertion)
    now = world.now()
    accepted = {
        "client_id": application.client_id,
        "subject": assertion.claims["sub"],
        "kid": key,
        "lifetime": _number(assertion, "exp", 0) - _number(assertion, "iat", now),
        "accepted_at": now,
    }
    world.assertions = [*world.assertions, accepted][-MOST_ASSERTIONS:]


def _check_certificate(world: World, application: Application, address: str, assertion: Jwt) -> str:
    """The id of the certificate's key."""
    certificate = next((one for one in application.certificates if _is_named(one, assertion)), None)
    now, claims = world.now(), assertion.claims
    if certificate is None or not certificate.starts_at <= now < certificate.ends_at:
        raise token_error(700027)
    key = x509.load_der_x509_certificate(certificate.der).public_key()
    if not isinstance(key, rsa.RSAPublicKey) or not assertion.is_signed_by(key):
        raise token_error(700027)
    if claims.get("aud") not in [f"{address}/{path}" for path in AUDIENCES]:
        raise token_error(700023)
    if not claims.get("iss") == claims.get("sub") == application.client_id:
        raise token_error(700021)
    _check_times(world, assertion)
    return certificate.key_id


def _is_named(certificate: Certificate, assertion: Jwt) -> bool:
    """By each thumbprint that the header has, and by one at least. The vendor's library for Python leaves padding."""
    thumbprints = {
        SHA256_THUMBPRINT: hashlib.sha256(certificate.der).digest(),
        SHA1_THUMBPRINT: hashlib.sha1(certificate.der, usedforsecurity=False).digest(),
    }
    named = {name: str(text).rstrip("=") for name, text in assertion.header.items() if name in thumbprints}
    return bool(named) and all(base64url_encode(thumbprints[name]).decode() == text for name, text in named.items())


def _check_federated(world: World, client_id: str, assertion: Jwt) -> str:
    """The id of the issuer's key."""
    kid = assertion.header.get("kid")
    if kid is None or assertion.header["alg"] != "RS256":
        raise token_error(50027)
    credential = _matching(world, client_id, assertion.claims)
    _check_times(world, assertion)
    key = _keys(world, credential.issuer).keys.get(str(kid))
    if key is None:
        raise token_error(700027)
    if not assertion.is_signed_by(key):
        raise token_error(50027)
    return str(kid)


def _check_times(world: World, assertion: Jwt) -> None:
    now = world.now()
    begin = max(_number(assertion, "nbf", now), _number(assertion, "iat", now))
    if not begin - CLOCK_SKEW <= now < _number(assertion, "exp", 0):
        raise token_error(700024)


def _number(assertion: Jwt, name: str, missing: float) -> float:
    value = assertion.claims.get(name, missing)
    if type(value) not in (int, float):
        raise token_error(50027)
    return float(value)


def _matching(world: World, client_id: str, claims: Json) -> FederatedCredential:
    """The credential that an assertion is for. Each mismatch has an error of its own."""
    found = [
        one
        for one in world.federations.values()
        if one.client_id.lower() == client_id.lower()
        and one.known_from <= world.replication.known_until(Replica.SIGN_IN, one.id)
    ]
    if not found:
        raise token_error(70021)
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    for error, attribute, wanted in (
        (700211, "issuer", [claims.get("iss")]),
        (700213, "subject", [claims.get("sub")]),
        (700212, "audience", audiences),
    ):
        matching = [one for one in found if getattr(one, attribute) in wanted]
        if not matching:
            raise token_error(_error_of_subject(found, claims) if attribute == "subject" else error)
        found = matching
    return found[0]


def _error_of_subject(found: Sequence[FederatedCredential], claims: Json) -> int:
    """The error of a subject that no credential of the issuer has: they may differ by case, or by what a part names."""
    subject = str(claims.get("sub"))
    if any(one.subject.lower() == subject.lower() for one in found):
        return 7002138
    if subject.startswith(EXTERNAL_SUBJECT):
        return 7002137
    return 700213


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
        keys = {str(key["kid"]): PyJWK({"kty": "RSA", "e": key["e"], "n": key["n"]}).key for key in published["keys"]}
    except (OSError, ValueError, TypeError, KeyError, PyJWTError):
        raise token_error(50166) from None
    fetched = world.issuer_keys[issuer] = IssuerKeys(keys, world.now() + min(kept, keys_kept))
    return fetched


def _document(world: World, url: str) -> tuple[Json, float]:
    """A document of an issuer, and the seconds for which it may be kept."""
    response = world.fetch(url)
    document = json.loads(response.body) if response.status == 200 else None
    if not isinstance(document, dict):
        raise ValueError
    age = re.search(r"max-age=([0-9]{1,9})", response.headers.get("cache-control", ""))
    return document, float(age[1]) if age else 0.0
