"""Signing keys: RSA keys that are derived from the world's seed, and what they sign."""

from __future__ import annotations

import datetime
import hashlib
import json
from base64 import b64encode
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from attrs import field, frozen
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from jwt import PyJWS, PyJWTError
from jwt.algorithms import RSAAlgorithm
from jwt.utils import base64url_encode

from cloudid_core.testing.rsa_keys import private_key

from ..engine import Immutable
from ..engine.requests import Json
from ..world.world import World

NAME: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "accounts.simulated.example")])
JWS: Final = PyJWS()
ALGORITHMS: Final = ("RS256", "PS256")
VALID_FROM: Final = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
VALID_TO: Final = datetime.datetime(2050, 1, 1, tzinfo=datetime.UTC)


@frozen
class Jwt(Immutable):
    """A JWT, whose signature may not hold."""

    header: Json
    claims: Json
    text: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Jwt:
        """`ValueError` for anything else, and for an algorithm that is not known."""
        try:
            found = JWS.decode_complete(text, options={"verify_signature": False})
            claims = json.loads(found["payload"])
        except (PyJWTError, RecursionError):
            raise ValueError from None
        if not isinstance(claims, dict) or found["header"].get("alg") not in ALGORITHMS:
            raise ValueError
        return cls(found["header"], claims, text)

    def is_signed_by(self, key: rsa.RSAPublicKey) -> bool:
        try:
            JWS.decode(self.text, key, ALGORITHMS)
        except PyJWTError:
            return False
        return True


@frozen(eq=False)
class SigningKey:
    """A key of the identity provider, and the self-signed certificate that is published with it."""

    private: rsa.RSAPrivateKey = field(repr=False)
    certificate: bytes = field(repr=False)

    @property
    def kid(self) -> str:
        return base64url_encode(hashlib.sha1(self.certificate, usedforsecurity=False).digest()).decode()

    def jwk(self) -> Json:
        """The public half as an entry of a key set (RFC 7517)."""
        own = {"use": "sig", "kid": self.kid, "x5t": self.kid, "x5c": [b64encode(self.certificate).decode()]}
        return {**RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True), **own}

    def sign(self, claims: Json) -> str:
        """A JWT, RS256."""
        return _signed(self, json.dumps(claims, separators=(",", ":")))


@lru_cache(maxsize=4096)
def _signed(key: SigningKey, claims: str) -> str:
    """Cached, since repeated runs of a world sign the same claims."""
    return JWS.encode(claims.encode(), key.private, "RS256", {"x5t": key.kid, "kid": key.kid}, sort_headers=False)


@lru_cache(maxsize=256)
def signing_key(seed: int, number: int) -> SigningKey:
    """The key of that number in the world of that seed. Takes about half a second the first time, then it is cached."""
    private = private_key(f"signing key {number} of world {seed}")
    builder = x509.CertificateBuilder(NAME, NAME, private.public_key(), number + 1, VALID_FROM, VALID_TO)
    return SigningKey(private, builder.sign(private, SHA256()).public_bytes(Encoding.DER))


def current_key(world: World) -> SigningKey:
    """The key that signs now."""
    return signing_key(world.seed, world.key_count - 1)


def published_keys(world: World) -> Iterator[SigningKey]:
    return (signing_key(world.seed, number) for number in range(world.first_published_key, world.key_count))


def rotate_key(world: World, remove_old: bool) -> SigningKey:
    """Sign with a new key from now on. Empties the machines' token caches, so that the new key is seen at once."""
    world.key_count += 1
    if remove_old:
        world.first_published_key = world.key_count - 1
    world.machine_tokens.clear()
    return current_key(world)
