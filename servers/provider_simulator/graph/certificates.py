"""Certificates of applications (`keyCredentials`): one list, which is replaced as a whole and never shows a key."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from ..engine.requests import Json, Refusal
from ..engine.shapes import NOTHING, Shape
from ..world.objects import Certificate
from ..world.world import World, instant
from .conventions import bad_request, read_fields
from .passwords import read_instant

TYPE: Final = "AsymmetricX509Cert"
USAGE: Final = "Verify"
TEXT: Final = (str, NOTHING)
ENTRY: Final[Shape] = {
    "keyId": TEXT,
    "displayName": TEXT,
    "type": (str,),
    "usage": (str,),
    "key": TEXT,
    "startDateTime": TEXT,
    "endDateTime": TEXT,
    "customKeyIdentifier": TEXT,
}


def show_certificate(certificate: Certificate) -> Json:
    return {
        "keyId": certificate.key_id,
        "displayName": certificate.display_name,
        "type": TYPE,
        "usage": USAGE,
        "key": None,
        "startDateTime": instant(certificate.starts_at),
        "endDateTime": instant(certificate.ends_at),
        "customKeyIdentifier": None,
    }


def read_certificates(world: World, entries: Sequence[Any], known: Sequence[Certificate]) -> tuple[Certificate, ...]:
    """What a body wants to be there. An entry without a key is one of those that are known, unchanged."""
    if len(entries) > world.behaviour.quotas["passwords"]:
        raise bad_request("The size of the object has exceeded its limit. Please reduce the number of values.")
    by_id = {one.key_id: one for one in known}
    return tuple(_read(world, read_fields(entry, ENTRY, "'keyCredentials'"), by_id) for entry in entries)


def _read(world: World, entry: Json, known: dict[str, Certificate]) -> Certificate:
    key_id = (entry.get("keyId") or world.randomness.guid("certificate")).lower()
    if entry.get("key") is None:
        if key_id not in known:
            raise bad_request(f"The key of the credential with KeyId '{key_id}' is missing.")
        return known[key_id]
    if key_id in known:
        raise bad_request(f"Update to existing credential with KeyId '{key_id}' is not allowed.")
    if (entry.get("type"), entry.get("usage")) != (TYPE, USAGE):
        raise bad_request(f"A certificate has the type {TYPE} and the usage {USAGE}.")
    der, certificate = _certificate(entry["key"])
    first, last = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    starts_at = read_instant(entry.get("startDateTime"), first)
    ends_at = read_instant(entry.get("endDateTime"), last)
    if not first <= starts_at < ends_at <= last:
        raise bad_request("Key credential end date is invalid.")
    return Certificate(key_id, entry.get("displayName"), der, starts_at, ends_at)


def _certificate(text: str) -> tuple[bytes, x509.Certificate]:
    try:
        der = b64decode(text, validate=True)
        certificate = x509.load_der_x509_certificate(der)
        if isinstance(certificate.public_key(), RSAPublicKey):
            return der, certificate
    except ValueError:
        pass
    raise Refusal(400, "KeyCredentialsInvalidValue", "The key is no certificate of an RSA key.")
