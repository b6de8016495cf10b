"""Client assertions (RFC 7523): JWTs that stand in for a secret, and what is checked of all of them."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any, Final

from attrs import field, frozen
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.padding import AsymmetricPadding
from cryptography.hazmat.primitives.hashes import SHA256

from ..engine.immutable import Immutable
from ..engine.requests import Json
from ..world.world import World
from .errors import token_error

JWT_BEARER: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
CLOCK_SKEW: Final = 300.0
"""Seconds that an assertion's time may be ahead of the clock."""
MOST_ASSERTIONS: Final = 1000
"""How many accepted assertions are remembered."""
PADDINGS: Final[dict[str, AsymmetricPadding]] = {
    "RS256": padding.PKCS1v15(),
    "PS256": padding.PSS(padding.MGF1(SHA256()), padding.PSS.DIGEST_LENGTH),
}


@frozen
class Assertion(Immutable):
    """A JWT, taken apart."""

    header: Json
    claims: Json
    signed: bytes = field(repr=False)
    signature: bytes = field(repr=False)

    def is_signed_by(self, key: rsa.RSAPublicKey) -> bool:
        try:
            key.verify(self.signature, self.signed, PADDINGS[self.header["alg"]], SHA256())
        except InvalidSignature:
            return False
        return True

    def number(self, name: str, missing: float) -> float:
        value: Any = self.claims.get(name, missing)
        if type(value) not in (int, float):
            raise token_error(50027)
        return float(value)


def read_assertion(text: str) -> Assertion:
    try:
        signed, _, signature = text.rpartition(".")
        header, claims = (json.loads(decode(part)) for part in signed.split("."))
        if not isinstance(claims, dict) or header["alg"] not in PADDINGS:
            raise ValueError
        return Assertion(header, claims, signed.encode(), decode(signature))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise token_error(50027) from None


def check_times(world: World, assertion: Assertion) -> None:
    now = world.now()
    begin = max(assertion.number("nbf", now), assertion.number("iat", now))
    if not begin - CLOCK_SKEW <= now < assertion.number("exp", 0):
        raise token_error(700024)


def remember(world: World, client_id: str, assertion: Assertion, key: str) -> None:
    """Note that an assertion was accepted, and under which key."""
    now = world.now()
    accepted = {
        "client_id": client_id,
        "subject": assertion.claims["sub"],
        "kid": key,
        "lifetime": assertion.number("exp", 0) - assertion.number("iat", now),
        "accepted_at": now,
    }
    world.assertions = [*world.assertions, accepted][-MOST_ASSERTIONS:]


def decode(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))
