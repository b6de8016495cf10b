"""The issuers that the service is, the keys of each, and which of them signs when."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from math import inf
from typing import Final

import jwt
import msgspec
from attrs import evolve, field, frozen
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from jwt.algorithms import RSAAlgorithm

from ..effects import Instant, Now, Program, RandomBytes
from ..errors import Code, Refused
from ..forms import Json
from ..settings import Settings
from ..store import Found, Records, keys
from ..values import Secret

SHORTEST_TOKEN: Final = 60
LONGEST_TOKEN: Final = 24 * 3600
"""Bounds of a token's lifetime in seconds."""
CLOCK_SKEW: Final = 300.0
"""Seconds by which the clocks of nodes and of the provider may differ."""
MOST_KEYS: Final = 64
"""How many keys are published at a time. While there are so many, no key is added."""
LONGEST_MAX_AGE: Final = 3600


@frozen
class Issuer:
    """Who signs: an address of its own, and keys of its own."""

    path: str
    """Of its documents and of its address, below the service's public address."""
    entry: str
    """Where the store has its keys."""
    ref: str
    """Its name among what is due."""

    def address(self, settings: Settings) -> str:
        """What its tokens name; empty while the service does not know its public address."""
        return f"{settings.issuer}{self.path}" if settings.issuer else ""


PLUGINS: Final = Issuer("/v1/identity/oidc/plugins", keys.SIGNING_KEYS, "next")
"""Tells the provider which mount asks."""
LOGINS: Final = Issuer("/v1/identity/oidc", keys.LOGIN_SIGNING_KEYS, "logins")
"""Tells other services who logged in."""
ISSUERS: Final = (PLUGINS, LOGINS)


def max_age(period: int) -> int:
    """For how many seconds others may keep the documents: at most half the time that a key is published ahead."""
    return min(LONGEST_MAX_AGE, period // 2)


@frozen(kw_only=True)
class SigningKey:
    """An RSA key. Its private half is PEM."""

    private: Secret = field(repr=False)
    signs_from: Instant
    ready_at: Instant | None = None
    """From when everybody has it, once it was published. Only where documents are published."""

    @property
    def kid(self) -> str:
        """Names the key among all that were ever made, by its public half and the time from which it signs."""
        modulus = self.loaded.public_key().public_numbers().n
        return sha256(f"{modulus} {self.signs_from!r}".encode()).hexdigest()[:32]

    @property
    def loaded(self) -> RSAPrivateKey:
        key = load_pem_private_key(self.private.reveal().encode(), None, unsafe_skip_rsa_key_validation=True)
        if not isinstance(key, RSAPrivateKey):
            raise TypeError("a signing key is an RSA key")
        return key

    @property
    def jwk(self) -> dict[str, Json]:
        """The public half as an entry of a key set (RFC 7517)."""
        public = RSAAlgorithm.to_jwk(self.loaded.public_key(), as_dict=True)
        return {"use": "sig", "kty": "RSA", "kid": self.kid, "alg": "RS256", "n": public["n"], "e": public["e"]}


@frozen(kw_only=True)
class SigningKeys:
    """All keys that are published, in the order in which they sign. `due_at`: when the next one is added."""

    keys: tuple[SigningKey, ...]
    due_at: Instant
    place: str = ""
    """Where the documents were published last."""
    digests: tuple[str, ...] = ()
    """SHA-256 of each document as it was published last."""
    publish_at: Instant | None = None
    """When they are published, or looked at, next. `None`: they are read from the service itself."""
    attempts: int = 0
    """How often that has failed in a row."""
    trouble: str = ""
    """Why it failed last; empty once it is over."""

    def starts(self, key: SigningKey, place: str) -> Instant:
        """From when a key signs. Where documents are published, it never does before it is there."""
        if not place:
            return key.signs_from
        return max(key.signs_from, key.ready_at) if key.ready_at is not None and self.place == place else inf

    def signing_at(self, now: Instant, place: str = "") -> SigningKey | None:
        """The key that signs. If the clock was set back before all of them, the one that was published first."""
        known = [key for key in self.keys if self.starts(key, place) < inf]
        return next((key for key in reversed(known) if self.starts(key, place) <= now), known[0] if known else None)

    def without_expired(self, now: Instant, place: str = "") -> SigningKeys:
        """Only keys that sign, will sign, or have signed a token that may still be valid."""
        starts = [self.starts(key, place) for key in self.keys]
        kept = tuple(
            key
            for number, key in enumerate(self.keys[:-1], 1)
            if now < min(starts[number:]) + LONGEST_TOKEN + CLOCK_SKEW
        )
        return evolve(self, keys=(*kept, self.keys[-1]))

    def published(self, place: str, now: Instant, period: int) -> SigningKeys:
        """The same once the documents are at a place. Who keeps older ones does not for longer than their `max-age`;
        before the first ones nobody has any."""
        is_first = all(self.starts(key, place) == inf for key in self.keys)
        ready_at = now if is_first else now + max_age(period)
        keys = tuple(evolve(key, ready_at=ready_at) if self.starts(key, place) == inf else key for key in self.keys)
        return evolve(self, keys=keys, place=place, attempts=0, trouble="")

    def with_next(self, private: Secret, now: Instant, period: int) -> SigningKeys:
        """The same with a key that signs one period from now, and is due to be followed then.

        Those that would sign later go: the period was longer, or the clock was set back.
        """
        added = SigningKey(private=private, signs_from=now + period)
        kept = (self.keys[0], *(key for key in self.keys[1:] if key.signs_from <= added.signs_from))
        return evolve(self, keys=(*kept, added), due_at=now + period)


def first_keys(private: Secret, now: Instant, period: int) -> SigningKeys:
    """The first key signs at once: nobody has fetched the documents yet."""
    return SigningKeys(keys=(SigningKey(private=private, signs_from=now),), due_at=now + period)


def find_signing_keys(records: Records, issuer: Issuer) -> Program[Found[SigningKeys] | None]:
    """The keys of an issuer as they are stored; `None` in a store that was initialised before there were any."""
    return records.find(issuer.entry, SigningKeys)


async def signed(records: Records, issuer: Issuer, claims: Mapping[str, Json], lifetime: int, place: str) -> Secret:
    """A token with these claims that is valid from now on, for so many seconds. Refuses with `CREDENTIAL_UNUSABLE`."""
    found = await find_signing_keys(records, issuer)
    if not claims["iss"] or found is None:
        raise Refused(Code.CREDENTIAL_UNUSABLE, 'the setting "issuer" is not set')
    token_id = (await RandomBytes(16)).hex()
    now = await Now()
    key = found.record.signing_at(now, place)
    if key is None:
        raise Refused(Code.CREDENTIAL_UNUSABLE, "no key that signs is published yet")
    times = {"iat": int(now), "nbf": int(now), "exp": int(now) + lifetime}
    payload = msgspec.json.encode({**claims, **times, "jti": token_id})
    return Secret(jwt.PyJWS().encode(payload, key.loaded, "RS256", {"typ": "JWT", "kid": key.kid}))
