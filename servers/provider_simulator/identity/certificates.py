"""Client certificates: assertions that an application signs itself, with a key whose certificate it has registered.

The token endpoint finds the certificate by its thumbprint, `x5t#S256` or `x5t`, then checks the signature, the
audience, issuer and subject, and the times.
"""

from __future__ import annotations

import hashlib
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from ..world.objects import Application, Certificate
from ..world.world import World
from .assertions import Assertion, check_times, remember
from .errors import token_error
from .keys import encode_base64url

SHA256_THUMBPRINT: Final = "x5t#S256"
SHA1_THUMBPRINT: Final = "x5t"
AUDIENCES: Final = ("oauth2/v2.0/token", "oauth2/token", "v2.0")
"""Below the address of the tenant."""


def names_certificate(assertion: Assertion, client_id: str) -> bool:
    """Whether an assertion is signed for a certificate, and not by an issuer that the application trusts."""
    return SHA256_THUMBPRINT in assertion.header or str(assertion.claims.get("iss")).lower() == client_id.lower()


def check_certificate(world: World, application: Application, address: str, assertion: Assertion) -> None:
    """Refuse an assertion that does not stand in for the secret of an application; remember one that does.

    `address`: that of the tenant, as the client knows it.
    """
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
    check_times(world, assertion)
    remember(world, application.client_id, assertion, certificate.key_id)


def _is_named(certificate: Certificate, assertion: Assertion) -> bool:
    """By each thumbprint that the header has, and by one at least. The vendor's library for Python leaves padding."""
    thumbprints = {
        SHA256_THUMBPRINT: hashlib.sha256(certificate.der).digest(),
        SHA1_THUMBPRINT: hashlib.sha1(certificate.der, usedforsecurity=False).digest(),
    }
    named = {name: str(text).rstrip("=") for name, text in assertion.header.items() if name in thumbprints}
    return bool(named) and all(encode_base64url(thumbprints[name]) == text for name, text in named.items())
