"""Signing keys: RSA keys that are derived from the world's seed, and what they sign."""

from __future__ import annotations

import datetime
import hashlib
import json
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from attrs import field, frozen
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.padding import AsymmetricPadding
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from cloudid_core.testing.rsa_keys import BITS, private_key

from ..engine import Immutable
from ..engine.requests import Json
from ..world.world import World

NAME: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "accounts.simulated.example")])
PADDINGS: Final[dict[str, AsymmetricPadding]] = {
    "RS256": padding.PKCS1v15(),
    "PS256": padding.PSS(padding.MGF1(SHA256()), padding.PSS.DIGEST_LENGTH),
}
VALID_FROM: Final = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
VALID_TO: Final = datetime.datetime(2050, 1, 1, tzinfo=datetime.UTC)


def encode_base64url(data: bytes) -> str:
    """Base64url without padding (RFC 7515, section 2)."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@frozen
class Jwt(Immutable):
    """A JWT, taken apart."""

    header: Json
    claims: Json
    signed: bytes = field(repr=False)
    signature: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Jwt:
        """`ValueError` for anything else, and for an algorithm that is not known."""
        try:
            signed, _, signature = text.rpartition(".")
            header, claims = (json.loads(decode_base64url(part)) for part in signed.split("."))
            if not isinstance(claims, dict) or header["alg"] not in PADDINGS:
                raise ValueError
            return cls(header, claims, signed.encode(), decode_base64url(signature))
        except (TypeError, KeyError, RecursionError):
            raise ValueError from None

    def is_signed_by(self, key: rsa.RSAPublicKey) -> bool:
        try:
            key.verify(self.signature, self.signed, PADDINGS[self.header["alg"]], SHA256())
        except InvalidSignature:
            return False
        return True


@frozen(eq=False)
class SigningKey:
    """A key of the identity provider, and the self-signed certificate that is published with it."""

    private: rsa.RSAPrivateKey = field(repr=False)
    certificate: bytes = field(repr=False)

    @property
    def kid(self) -> str:
        return encode_base64url(hashlib.sha1(self.certificate, usedforsecurity=False).digest())

    def jwk(self) -> Json:
        """The public half as an entry of a key set (RFC 7517)."""
        numbers = self.private.public_key().public_numbers()
        return {
            "kty": "RSA",
            "use": "sig",
            "kid": self.kid,
            "x5t": self.kid,
            "n": encode_base64url(numbers.n.to_bytes(BITS // 8)),
            "e": encode_base64url(numbers.e.to_bytes(3)),
            "x5c": [b64encode(self.certificate).decode()],
        }

    def sign(self, claims: Json) -> str:
        """A JWT, RS256."""
        header = {"typ": "JWT", "alg": "RS256", "x5t": self.kid, "kid": self.kid}
        parts = (json.dumps(part, separators=(",", ":")).encode() for part in (header, claims))
        signed = ".".join(map(encode_base64url, parts))
        return f"{signed}.{_signature(self, signed)}"


@lru_cache(maxsize=4096)
def _signature(key: SigningKey, signed: str) -> str:
    """Cached, since repeated runs of a world sign the same texts."""
    return encode_base64url(key.private.sign(signed.encode(), padding.PKCS1v15(), SHA256()))


@lru_cache(maxsize=256)
def signing_key(seed: int, number: int) -> SigningKey:
    """The key of that number in the world of that seed. Takes about half a second the first time, then it is cached."""
    private = private_key(f"signing key {number} of world {seed}")
    return SigningKey(private, _certificate(private, number))


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


def _certificate(private: rsa.RSAPrivateKey, number: int) -> bytes:
    builder = x509.CertificateBuilder(NAME, NAME, private.public_key(), number + 1, VALID_FROM, VALID_TO)
    return builder.sign(private, SHA256()).public_bytes(Encoding.DER)
