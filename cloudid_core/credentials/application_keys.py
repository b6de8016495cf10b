"""The credentials of app registrations: client secrets, certificates and federated credentials."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Final

import jwt
from attrs import evolve, field, frozen
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from ..effects import GenerateKey, Instant, Now, RandomBytes
from ..mounts import Mount
from ..provider import (
    CERTIFICATE,
    FEDERATED,
    SECRET,
    Client,
    Credentials,
    FreshObject,
    Source,
    add_certificate,
    add_federated_credential,
    make_password,
    retry_while_propagating,
    token_endpoint,
)
from ..values import Secret, uuid_text
from .identity_tokens import IdentityTokens, Resources
from .signing_keys import SigningKey

LIFETIME: Final = 600
"""Seconds for which an assertion is valid."""
SUBJECT: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cloudid")])


def self_signed(private: Secret, serial: int, starts_at: Instant, ends_at: Instant) -> bytes:
    """Return a self-signed certificate of a key, as DER. Nothing depends on who signed it."""
    key = SigningKey(private=private, signs_from=starts_at).loaded
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (starts_at, ends_at))
    builder = x509.CertificateBuilder(SUBJECT, SUBJECT, key.public_key(), serial, begin, end)
    return builder.sign(key, SHA256()).public_bytes(Encoding.DER)


def thumbprint(der: bytes) -> str:
    """Return the member `x5t#S256` of a header (RFC 7515, section 4.1.8)."""
    return urlsafe_b64encode(sha256(der).digest()).rstrip(b"=").decode()


@frozen(kw_only=True)
class CertificateAssertions:
    """The assertions of an app registration with this certificate. `audience` is the token endpoint."""

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


@frozen(kw_only=True)
class Key:
    """A credential of an app registration. `id` is empty while its key id is unknown.

    `secret` distinguishes credentials: it is the text of a client secret, or the private key of a certificate, whose
    thumbprint is `proof_id`. A federated credential has no secret: it trusts assertions of this service with the
    subject `proof_id`, which is used instead. `expires_at` is `None` if it never expires.
    """

    id: str = ""
    secret: Secret
    made_at: Instant | None = None
    """When this service created it. `None`: someone else did."""
    expires_at: Instant | None = None
    name: str = ""
    proof: str = SECRET
    proof_id: str = ""


@frozen(kw_only=True)
class Wanted:
    """A credential to create. `proof_id` is an id that is never reused; `family` chooses which errors are retried."""

    proof: str
    proof_id: str
    object_id: str
    name: str
    now: Instant
    ends_at: Instant
    family: FreshObject


async def make_key(resources: Resources, mount: Mount, client: Client, wanted: Wanted) -> Key:
    """Add a credential to an app registration, valid from now on. A tenant may limit its validity."""
    key = await _MAKE[wanted.proof](resources, mount, client, wanted)
    return evolve(key, made_at=await Now(), name=wanted.name, proof=wanted.proof)


async def _make_secret(resources: Resources, mount: Mount, client: Client, wanted: Wanted) -> Key:
    add = partial(
        make_password, client, wanted.object_id, name=wanted.name, starts_at=wanted.now, ends_at=wanted.ends_at
    )
    password = await retry_while_propagating(client, add, family=wanted.family, made_at=wanted.now)
    return Key(id=password.key_id, secret=password.secret, expires_at=password.ends_at)


async def _make_federated(resources: Resources, mount: Mount, client: Client, wanted: Wanted) -> Key:
    tokens = IdentityTokens.for_application(resources, mount, wanted.proof_id)
    add = partial(
        add_federated_credential,
        client,
        wanted.object_id,
        name=wanted.name,
        issuer=tokens.issuer,
        subject=tokens.subject,
        audience=tokens.audience,
    )
    key_id = await retry_while_propagating(client, add, family=wanted.family, made_at=wanted.now)
    return Key(id=key_id, secret=Secret(wanted.proof_id), proof_id=wanted.proof_id)


async def _make_certificate(resources: Resources, mount: Mount, client: Client, wanted: Wanted) -> Key:
    """Create the key pair locally, and register only the certificate. Its times are whole seconds."""
    private, starts_at, ends_at = await GenerateKey(), int(wanted.now), int(wanted.ends_at)
    der = self_signed(private, int(wanted.proof_id, 16), starts_at, ends_at)
    key_id = uuid_text(await RandomBytes(16))
    add = partial(
        add_certificate,
        client,
        wanted.object_id,
        name=wanted.name,
        key_id=key_id,
        der=der,
        starts_at=starts_at,
        ends_at=ends_at,
    )
    await retry_while_propagating(client, add, family=wanted.family, made_at=wanted.now)
    return Key(id=key_id, secret=private, expires_at=ends_at, proof_id=thumbprint(der))


_MAKE: Final = {SECRET: _make_secret, FEDERATED: _make_federated, CERTIFICATE: _make_certificate}


def present(resources: Resources, mount: Mount, client: Client, client_id: str, key: Key) -> Credentials:
    """Return how an app registration authenticates with a credential to the address of `client`."""
    if key.proof == FEDERATED:
        tokens = IdentityTokens.for_application(resources, mount, key.proof_id)
        return Credentials(client_id=client_id, assertions=tokens)
    if key.proof == CERTIFICATE:
        assertions = CertificateAssertions(
            client_id=client_id, audience=token_endpoint(client), thumbprint=key.proof_id, private=key.secret
        )
        return Credentials(client_id=client_id, assertions=assertions)
    return Credentials(client_id=client_id, client_secret=key.secret)
