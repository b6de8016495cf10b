"""What an application signs in with: passwords, certificates, and issuers whose assertions stand in for them.

A password's secret is shown once, when it is created. Certificates (`keyCredentials`) are one list, which is replaced
as a whole and never shows a key.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from attrs import evolve
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from ..engine.behaviour import Replica
from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Created, Route
from ..engine.shapes import NOTHING, OPTIONAL_TEXT, Members, Shape, show
from ..world.objects import Application, Certificate, FederatedCredential
from ..world.world import World, instant
from .conventions import (
    ROOT,
    bad_request,
    find_for_write,
    in_use,
    over_quota,
    read_body,
    read_fields,
    read_object,
    refuse_concurrent_change,
    require,
)

DEFAULT_LIFETIME: Final = 2 * 365 * 86_400.0
CERTIFICATE_USE: Final = {"type": "AsymmetricX509Cert", "usage": "Verify"}
MOST_FEDERATED: Final = 20
"""How many federated identity credentials one application may have."""

INVALID_FEDERATED: Final = "InvalidFederatedIdentityCredentialValue"

NEW_PASSWORD: Final[Shape] = {"passwordCredential": (dict, NOTHING)}
PASSWORD_FIELDS: Final[Shape] = dict.fromkeys(("keyId", "displayName", "startDateTime", "endDateTime"), OPTIONAL_TEXT)
"""The key id that a client gives has no effect."""
OLD_PASSWORD: Final[Shape] = {"keyId": (str,)}
CERTIFICATE_FIELDS: Final[Shape] = {
    **dict.fromkeys(("keyId", "displayName"), OPTIONAL_TEXT),
    **dict.fromkeys(("type", "usage"), (str,)),
    **dict.fromkeys(("key", "startDateTime", "endDateTime", "customKeyIdentifier"), OPTIONAL_TEXT),
}
FEDERATED_FIELDS: Final[Shape] = {
    **dict.fromkeys(("name", "issuer", "subject"), (str,)),
    "audiences": (list,),
    "description": OPTIONAL_TEXT,
}

KEY: Final[Members] = {
    "keyId": "key_id",
    "displayName": "display_name",
    "startDateTime": lambda one: instant(one.starts_at),
    "endDateTime": lambda one: instant(one.ends_at),
    "customKeyIdentifier": None,
}
PASSWORD: Final[Members] = {**KEY, "hint": lambda one: one.secret[:3], "secretText": None}
CERTIFICATE: Final[Members] = {
    **KEY,
    "customKeyIdentifier": "thumbprint",
    "type": lambda _: CERTIFICATE_USE["type"],
    "usage": lambda _: CERTIFICATE_USE["usage"],
    "key": None,
}
FEDERATED: Final[Members] = {
    "id": "id",
    "name": "name",
    "issuer": "issuer",
    "subject": "subject",
    "description": lambda one: one.description or "",
    "audiences": lambda one: [one.audience],
}


def add_password(table: str, world: World, call: Call) -> Json:
    """Of an object of a table of the directory."""
    holder = find_for_write(getattr(world.directory, table), call.names["id"])
    given = read_body(call, NEW_PASSWORD).get("passwordCredential") or {}
    wanted = read_fields(given, PASSWORD_FIELDS, "'passwordCredential'")
    starts_at = _read_instant(wanted.get("startDateTime"), world.now())
    ends_at = _read_instant(wanted.get("endDateTime"), starts_at + DEFAULT_LIFETIME)
    if ends_at <= starts_at:
        raise bad_request("The end of a password must come after its start.")
    _refuse_long_life(world, starts_at, ends_at)
    _refuse_beyond_quota(world, len(holder.passwords) + 1)
    refuse_concurrent_change(world, holder.id)
    name = wanted.get("displayName")
    password = world.directory.add_password(holder, name, starts_at, ends_at, by=call.caller.client_id)
    return show(password, {**PASSWORD, "secretText": "secret"})


def remove_password(table: str, world: World, call: Call) -> None:
    """The replica that writes use may not have learned of the password yet."""
    objects, object_id = getattr(world.directory, table), call.names["id"]
    known = require(objects.get(object_id.lower(), Replica.WRITES), object_id)
    holder = find_for_write(objects, object_id)
    key_id = read_body(call, OLD_PASSWORD).get("keyId", "").lower()
    if any(all(password.key_id != key_id for password in one.passwords) for one in (holder, known)):
        raise bad_request(f"No password credential found with keyId '{key_id}'.")
    refuse_concurrent_change(world, holder.id)
    world.directory.remove_password(holder, key_id)


def read_certificates(world: World, entries: Sequence[Any], known: Sequence[Certificate]) -> tuple[Certificate, ...]:
    """What a body wants to be there. An entry without a key is one of those that are known, as the list shows it."""
    _refuse_beyond_quota(world, len(entries))
    by_id = {one.key_id: one for one in known}
    return tuple(
        _read_certificate(world, read_fields(entry, CERTIFICATE_FIELDS, "'keyCredentials'"), by_id) for entry in entries
    )


def _read_certificate(world: World, entry: Json, known: dict[str, Certificate]) -> Certificate:
    key_id = (entry.get("keyId") or world.randomness.guid("certificate")).lower()
    if entry.get("key") is None and key_id not in known:
        raise bad_request(f"The key of the credential with KeyId '{key_id}' is missing.")
    if key_id in known:
        if entry.get("key") is not None or not _is_sent_back(known[key_id], entry):
            raise bad_request(f"Update to existing credential with KeyId '{key_id}' is not allowed.")
        return known[key_id]
    if any(entry.get(name) != text for name, text in CERTIFICATE_USE.items()):
        raise bad_request("A certificate has the type {type} and the usage {usage}.".format(**CERTIFICATE_USE))
    try:
        der = b64decode(entry["key"], validate=True)
        certificate = x509.load_der_x509_certificate(der)
        if not isinstance(certificate.public_key(), RSAPublicKey):
            raise ValueError
    except ValueError:
        raise Refusal(400, "KeyCredentialsInvalidValue", "The key is no certificate of an RSA key.") from None
    first, last = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    starts_at = _read_instant(entry.get("startDateTime"), first)
    ends_at = _read_instant(entry.get("endDateTime"), last)
    if not first <= starts_at < ends_at <= last:
        raise bad_request("Key credential end date is invalid.")
    _refuse_long_life(world, starts_at, ends_at)
    name = entry.get("displayName") or certificate.subject.rfc4514_string()
    return Certificate(key_id, name, der, starts_at, ends_at)


def _is_sent_back(known: Certificate, entry: Json) -> bool:
    """Whether an entry is what the list shows of a certificate: its thumbprint and times have to be there."""
    shown = show(known, CERTIFICATE)
    return all(entry.get(name) == shown[name] for name in ("customKeyIdentifier", "startDateTime", "endDateTime"))


def _refuse_long_life(world: World, starts_at: float, ends_at: float) -> None:
    """Apply the tenant's app management policy."""
    most = world.behaviour.max_secret_lifetime
    if most is not None and round(ends_at - starts_at, 3) > most:
        message = "Credential lifetime exceeds the max value allowed as per assigned policy."
        raise Refusal(400, "CredentialInvalidLifetimeAsPerAppPolicy", message)


def _refuse_beyond_quota(world: World, count: int) -> None:
    if count > world.behaviour.quotas["passwords"]:
        message = "The size of the object has exceeded its limit. Please reduce the number of values."
        raise Refusal(403, "Directory_ResourceSizeExceeded", message)


def _read_instant(value: Any, default: float) -> float:
    """RFC 3339."""
    if value is None:
        return default
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        raise bad_request("A time must be written as RFC 3339 says.") from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def list_federated(world: World, call: Call) -> Json:
    application = read_object(world.directory.applications, call)
    return {"value": [show(one, FEDERATED) for one in _all_federated(world, application)]}


def add_federated(world: World, call: Call) -> Created:
    application = find_for_write(world.directory.applications, call.names["id"])
    wanted, others = read_body(call, FEDERATED_FIELDS), _all_federated(world, application)
    name, issuer, subject = (wanted.get(field) for field in ("name", "issuer", "subject"))
    audiences = wanted.get("audiences")
    if not (name and issuer and subject):
        raise bad_request("A federated identity credential needs a name, an issuer and a subject.")
    if audiences is None or len(audiences) != 1 or type(audiences[0]) is not str:
        raise Refusal(400, INVALID_FEDERATED, "A federated identity credential has one audience.")
    if any(one.name == name for one in others):
        raise in_use("FederatedIdentityCredential with that name already exists.")
    if any((one.issuer, one.subject) == (issuer, subject) for one in others):
        message = "The combination of issuer and subject must be unique for the application."
        raise Refusal(400, INVALID_FEDERATED, message)
    if len(others) >= MOST_FEDERATED:
        raise over_quota(f"An application has at most {MOST_FEDERATED} federated credentials.")
    own_id = world.randomness.guid("federation")
    about = wanted.get("description")
    made = FederatedCredential(own_id, application.client_id, issuer, subject, audiences[0], name, world.now(), about)
    world.federations[own_id] = made
    world.ledger.record(call.caller.client_id, "federation", own_id, (application.id,), name)
    return Created(show(made, FEDERATED))


def read_federated(world: World, call: Call) -> Json:
    return show(_federated(world, call), FEDERATED)


def change_federated(world: World, call: Call) -> None:
    """Change anything but the name."""
    known, wanted = _federated(world, call), read_body(call, FEDERATED_FIELDS)
    audiences = wanted.pop("audiences", [known.audience])
    if wanted.get("name", known.name) != known.name:
        raise bad_request("The property 'name' cannot be changed.")
    if len(audiences) != 1 or type(audiences[0]) is not str:
        raise Refusal(400, INVALID_FEDERATED, "A federated identity credential has one audience.")
    world.federations[known.id] = evolve(known, audience=audiences[0], **wanted)


def remove_federated(world: World, call: Call) -> None:
    credential_id = _federated(world, call).id
    del world.federations[credential_id]
    world.ledger.note_deleted(credential_id)


def _federated(world: World, call: Call) -> FederatedCredential:
    """The credential that the path names, of its application; `Refusal` 404."""
    application = find_for_write(world.directory.applications, call.names["id"])
    wanted = call.names["credential"]
    return require(next((one for one in _all_federated(world, application) if one.id == wanted), None), wanted)


def _all_federated(world: World, application: Application) -> list[FederatedCredential]:
    return [one for one in world.federations.values() if one.client_id == application.client_id]


ALL: Final = f"{ROOT}/applications/{{id}}/federatedIdentityCredentials"

ROUTES: Final = (
    Route("GET", ALL, list_federated),
    Route("POST", ALL, add_federated, writes=True),
    Route("GET", f"{ALL}/{{credential}}", read_federated),
    Route("PATCH", f"{ALL}/{{credential}}", change_federated, writes=True),
    Route("DELETE", f"{ALL}/{{credential}}", remove_federated, writes=True),
)
