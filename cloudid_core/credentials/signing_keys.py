"""The service's issuers, their signing keys, and which key signs when."""

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
"""Limits of a token's lifetime in seconds."""
CLOCK_SKEW: Final = 300.0
"""Seconds by which the clocks of nodes and of Azure may differ."""
MOST_KEYS: Final = 64
"""Maximum number of published keys. At the limit, no key is added."""
LONGEST_MAX_AGE: Final = 3600


@frozen
class Issuer:
    """An issuer with its own URL and keys."""

    path: str
    """The path of its documents and of its URL, below the service's public URL."""
    entry: str
    """The store entry with its keys."""
    ref: str
    """Its name in queue entries."""

    def address(self, settings: Settings) -> str:
        """Return the issuer in its tokens. Empty if the service does not know its public URL."""
        return f"{settings.issuer}{self.path}" if settings.issuer else ""


PLUGINS: Final = Issuer("/v1/identity/oidc/plugins", keys.SIGNING_KEYS, "next")
"""Identifies mounts to Azure."""
LOGINS: Final = Issuer("/v1/identity/oidc", keys.LOGIN_SIGNING_KEYS, "logins")
"""Identifies logged-in machines to other services."""
ISSUERS: Final = (PLUGINS, LOGINS)


def max_age(period: int) -> int:
    """Return for how many seconds others may cache the documents.

    This is at most half the time that a key is published in advance.
    """
    return min(LONGEST_MAX_AGE, period // 2)


@frozen(kw_only=True)
class SigningKey:
    """An RSA key. The private key is PEM."""

    private: Secret = field(repr=False)
    signs_from: Instant
    ready_at: Instant | None = None
    """When all readers have the published key. Only if documents are published elsewhere."""

    @property
    def kid(self) -> str:
        """A unique name of the key, derived from its public key and the time from which it signs."""
        modulus = self.loaded.public_key().public_numbers().n
        return sha256(f"{modulus} {self.signs_from!r}".encode()).hexdigest()[:32]

    @property
    def loaded(self) -> RSAPrivateKey:
        key = load_pem_private_key(self.private.reveal().encode(), None, unsafe_skip_rsa_key_validation=True)
        if not isinstance(key, RSAPrivateKey):
            raise TypeError("a signing key must be an RSA key")
        return key

    @property
    def jwk(self) -> dict[str, Json]:
        """Return the public key as an entry of a key set (RFC 7517)."""
        public = RSAAlgorithm.to_jwk(self.loaded.public_key(), as_dict=True)
        return {"use": "sig", "kty": "RSA", "kid": self.kid, "alg": "RS256", "n": public["n"], "e": public["e"]}


@frozen(kw_only=True)
class SigningKeys:
    """All published keys in the order in which they sign. `due_at` is when the next one is added."""

    keys: tuple[SigningKey, ...]
    due_at: Instant
    place: str = ""
    """Where the documents were last published."""
    digests: tuple[str, ...] = ()
    """SHA-256 of each document as last published."""
    publish_at: Instant | None = None
    """When they are next published or checked. `None`: they are read from the service itself."""
    attempts: int = 0
    """How often publishing has failed in a row."""
    trouble: str = ""
    """The reason of the last failure. Empty after a success."""

    def starts(self, key: SigningKey, place: str) -> Instant:
        """Return when a key starts to sign.

        If documents are published elsewhere, this is never before the key is there.
        """
        if not place:
            return key.signs_from
        return max(key.signs_from, key.ready_at) if key.ready_at is not None and self.place == place else inf

    def signing_at(self, now: Instant, place: str = "") -> SigningKey | None:
        """Return the key that signs at a time.

        If the clock was set back before all keys, it is the one that was published first.
        """
        known = [key for key in self.keys if self.starts(key, place) < inf]
        return next((key for key in reversed(known) if self.starts(key, place) <= now), known[0] if known else None)

    def without_expired(self, now: Instant, place: str = "") -> SigningKeys:
        """Return only keys that sign, will sign, or have signed a token that may still be valid."""
        starts = [self.starts(key, place) for key in self.keys]
        kept = tuple(
            key
            for number, key in enumerate(self.keys[:-1], 1)
            if now < min(starts[number:]) + LONGEST_TOKEN + CLOCK_SKEW
        )
        return evolve(self, keys=(*kept, self.keys[-1]))

    def published(self, place: str, now: Instant, period: int) -> SigningKeys:
        """Return the keys after their documents were published at a place.

        Readers keep older documents at most for their `max-age`. Before the first documents, there are no readers.
        """
        is_first = all(self.starts(key, place) == inf for key in self.keys)
        ready_at = now if is_first else now + max_age(period)
        keys = tuple(evolve(key, ready_at=ready_at) if self.starts(key, place) == inf else key for key in self.keys)
        return evolve(self, keys=keys, place=place, attempts=0, trouble="")

    def with_next(self, private: Secret, now: Instant, period: int) -> SigningKeys:
        """Return the keys with a new key that starts to sign one period from now, when the next one is due.

        Keys that would start later are removed: the period was longer, or the clock was set back.
        """
        added = SigningKey(private=private, signs_from=now + period)
        kept = (self.keys[0], *(key for key in self.keys[1:] if key.signs_from <= added.signs_from))
        return evolve(self, keys=(*kept, added), due_at=now + period)


def first_keys(private: Secret, now: Instant, period: int) -> SigningKeys:
    """Return the keys of a new issuer.

    The first key signs immediately, because no one has fetched the documents yet.
    """
    return SigningKeys(keys=(SigningKey(private=private, signs_from=now),), due_at=now + period)


def find_signing_keys(records: Records, issuer: Issuer) -> Program[Found[SigningKeys] | None]:
    """Return the stored keys of an issuer. `None` in a store that was initialised before there were any."""
    return records.find(issuer.entry, SigningKeys)


async def signed(records: Records, issuer: Issuer, claims: Mapping[str, Json], lifetime: int, place: str) -> Secret:
    """Return a signed token with these claims, valid from now on for some seconds.

    Refuse with `CREDENTIAL_UNUSABLE`.
    """
    found = await find_signing_keys(records, issuer)
    if not claims["iss"] or found is None:
        raise Refused(Code.CREDENTIAL_UNUSABLE, 'the setting "issuer" is not set')
    token_id = (await RandomBytes(16)).hex()
    now = await Now()
    key = found.record.signing_at(now, place)
    if key is None:
        raise Refused(Code.CREDENTIAL_UNUSABLE, "the signing key is not published yet")
    times = {"iat": int(now), "nbf": int(now), "exp": int(now) + lifetime}
    payload = msgspec.json.encode({**claims, **times, "jti": token_id})
    return Secret(jwt.PyJWS().encode(payload, key.loaded, "RS256", {"typ": "JWT", "kid": key.kid}))
