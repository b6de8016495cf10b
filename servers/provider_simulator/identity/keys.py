"""Signing keys: RSA keys that are derived from the world's seed, and what they sign."""

from __future__ import annotations

import datetime
import hashlib
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from functools import lru_cache
from math import gcd, prod
from random import Random
from typing import Any, Final

from attrs import field, frozen
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from ..world.world import World

BITS: Final = 2048
EXPONENT: Final = 65537
NAME: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "accounts.simulated.example")])
VALID_FROM: Final = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
VALID_TO: Final = datetime.datetime(2050, 1, 1, tzinfo=datetime.UTC)

SMALL_PRIMES: Final = tuple(n for n in range(3, 5000, 2) if all(n % d for d in range(3, int(n**0.5) + 1, 2)))
SMALL_PRODUCT: Final = prod(SMALL_PRIMES)


def encode_base64url(data: bytes) -> str:
    """Base64url without padding (RFC 7515, section 2)."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@frozen(eq=False)
class SigningKey:
    """A key of the identity provider, and the self-signed certificate that is published with it."""

    private: rsa.RSAPrivateKey = field(repr=False)
    certificate: bytes = field(repr=False)

    @property
    def kid(self) -> str:
        return encode_base64url(hashlib.sha1(self.certificate, usedforsecurity=False).digest())

    def jwk(self) -> dict[str, Any]:
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

    def sign(self, claims: dict[str, Any]) -> str:
        """A JWT, RS256."""
        header = {"typ": "JWT", "alg": "RS256", "x5t": self.kid, "kid": self.kid}
        signed = ".".join(
            encode_base64url(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims)
        )
        return f"{signed}.{_signature(self, signed)}"


@lru_cache(maxsize=4096)
def _signature(key: SigningKey, signed: str) -> str:
    """Cached, since repeated runs of a world sign the same texts."""
    return encode_base64url(key.private.sign(signed.encode(), padding.PKCS1v15(), SHA256()))


@lru_cache(maxsize=256)
def signing_key(seed: int, number: int) -> SigningKey:
    """The key of that number in the world of that seed. Takes about half a second the first time, then it is cached."""
    private = _private_key(Random(f"signing key {number} of world {seed}"))
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


def _private_key(random: Random) -> rsa.RSAPrivateKey:
    p, q = _prime(random), _prime(random)
    d = pow(EXPONENT, -1, (p - 1) * (q - 1))
    return rsa.RSAPrivateNumbers(
        p=p,
        q=q,
        d=d,
        dmp1=rsa.rsa_crt_dmp1(d, p),
        dmq1=rsa.rsa_crt_dmq1(d, q),
        iqmp=rsa.rsa_crt_iqmp(p, q),
        public_numbers=rsa.RSAPublicNumbers(EXPONENT, p * q),
    ).private_key()


def _prime(random: Random) -> int:
    """A prime whose two highest bits are set, so that the product of two has exactly `BITS` bits."""
    while True:
        candidate = random.getrandbits(BITS // 2) | 3 << BITS // 2 - 2 | 1
        if gcd(candidate, SMALL_PRODUCT) == 1 and candidate % EXPONENT != 1 and _is_probably_prime(candidate):
            return candidate


def _is_probably_prime(candidate: int) -> bool:
    """Miller-Rabin. Eight bases are enough, since the candidates are random and not chosen by an attacker."""
    shift = (candidate - 1 & 1 - candidate).bit_length() - 1
    for base in SMALL_PRIMES[:8]:
        x = pow(base, candidate - 1 >> shift, candidate)
        if x in (1, candidate - 1):
            continue
        for _ in range(shift - 1):
            x = x * x % candidate
            if x == candidate - 1:
                break
        else:
            return False
    return True


def _certificate(private: rsa.RSAPrivateKey, number: int) -> bytes:
    builder = x509.CertificateBuilder(NAME, NAME, private.public_key(), number + 1, VALID_FROM, VALID_TO)
    return builder.sign(private, SHA256()).public_bytes(Encoding.DER)
