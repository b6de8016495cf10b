"""Client certificates: keys that are made here, and assertions that applications prove themselves with (RFC 7523)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

import jwt
from attrs import field, frozen
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from ..effects import Instant, Now, RandomBytes
from ..provider import Source
from ..values import Secret, uuid_text
from .signing_keys import SigningKey

LIFETIME: Final = 600
"""Seconds for which an assertion is valid."""
SUBJECT: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cloudid")])


def self_signed(private: Secret, serial: int, starts_at: Instant, ends_at: Instant) -> bytes:
    """A certificate of a key, signed by itself: nobody has to trust whoever signs it. DER."""
    key = SigningKey(private=private, signs_from=starts_at).loaded
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (starts_at, ends_at))
    builder = x509.CertificateBuilder(SUBJECT, SUBJECT, key.public_key(), serial, begin, end)
    return builder.sign(key, SHA256()).public_bytes(Encoding.DER)


def thumbprint(der: bytes) -> str:
    """The member `x5t#S256` of a header (RFC 7515, section 4.1.8)."""
    return urlsafe_b64encode(sha256(der).digest()).rstrip(b"=").decode()


@frozen(kw_only=True)
class CertificateAssertions:
    """The assertions of an application whose certificate has that thumbprint. `audience` is the token endpoint."""

    client_id: str
    audience: str
    thumbprint: str
    private: Secret = field(repr=False)
    source: Source = field(default=Source.CERTIFICATE, init=False)

    @property
    def identity(self) -> str:
        return self.thumbprint

    async def make(self) -> Secret:
        token_id, now = uuid_text(await RandomBytes(16)), int(await Now())
        claims = {
            "aud": self.audience,
            "iss": self.client_id,
            "sub": self.client_id,
            "jti": token_id,
            "iat": now,
            "nbf": now,
            "exp": now + LIFETIME,
        }
        key = SigningKey(private=self.private, signs_from=now).loaded
        return Secret(jwt.encode(claims, key, algorithm="PS256", headers={"x5t#S256": self.thumbprint}))
