"""What applications prove themselves with: client secrets, certificates and federated credentials."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import Final

from attrs import evolve, frozen

from ..effects import GenerateKey, Instant, Now, RandomBytes
from ..mounts import Mount
from ..provider import (
    CERTIFICATE,
    CLOCK_SKEW,
    FEDERATED,
    SECRET,
    Client,
    Credentials,
    FreshObject,
    add_certificate,
    add_federated_credential,
    make_password,
    retry_while_propagating,
    token_endpoint,
)
from ..values import Secret, uuid_text
from .client_certificates import CertificateAssertions, self_signed, thumbprint
from .identity_tokens import IdentityTokens, Resources


@frozen(kw_only=True)
class Key:
    """What an application proves itself with. `id` is empty while it is not known which of its keys it is.

    `secret` tells keys apart: the text of a client secret, or the private key of a certificate, whose thumbprint is
    `proof_id`. A federated credential has no secret: it trusts assertions of this service under `proof_id`, and that
    stands in its place. `expires_at`: `None` for what has no end.
    """

    id: str = ""
    secret: Secret
    made_at: Instant | None = None
    """When this service made it; `None`: somebody else did."""
    expires_at: Instant | None = None
    name: str = ""
    proof: str = SECRET
    proof_id: str = ""


@frozen(kw_only=True)
class Wanted:
    """A key that is to be made. `proof_id`: an id that is never used again; `family`: which errors may pass."""

    proof: str
    proof_id: str
    object_id: str
    name: str
    now: Instant
    ends_at: Instant
    family: FreshObject


async def make_key(resources: Resources, mount: Mount, client: Client, wanted: Wanted) -> Key:
    """Give an application one more key, valid from a little ago."""
    key = await _MAKE[wanted.proof](resources, mount, client, wanted)
    return evolve(key, made_at=await Now(), name=wanted.name, proof=wanted.proof)


async def _make_secret(resources: Resources, mount: Mount, client: Client, wanted: Wanted) -> Key:
    starts_at = wanted.now - CLOCK_SKEW
    add = partial(
        make_password, client, wanted.object_id, name=wanted.name, starts_at=starts_at, ends_at=wanted.ends_at
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
    """The key is made here and stays here; the directory has its certificate. Times in that are whole seconds."""
    private, starts_at, ends_at = await GenerateKey(), int(wanted.now) - CLOCK_SKEW, int(wanted.ends_at)
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


_MAKE: Final = MappingProxyType({SECRET: _make_secret, FEDERATED: _make_federated, CERTIFICATE: _make_certificate})


def present(resources: Resources, mount: Mount, client: Client, client_id: str, key: Key) -> Credentials:
    """How an application proves itself with a key. `client`: whom it asks."""
    if key.proof == FEDERATED:
        tokens = IdentityTokens.for_application(resources, mount, key.proof_id)
        return Credentials(client_id=client_id, assertions=tokens)
    if key.proof == CERTIFICATE:
        assertions = CertificateAssertions(
            client_id=client_id, audience=token_endpoint(client), thumbprint=key.proof_id, private=key.secret
        )
        return Credentials(client_id=client_id, assertions=assertions)
    return Credentials(client_id=client_id, client_secret=key.secret)
