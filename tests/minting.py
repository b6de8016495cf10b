"""Login tokens as a tenant mints them, and all that may be wrong with one; independent of the code under test."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from cloudid_core.caches import Caches
from cloudid_core.errors import Code, Refused
from cloudid_core.provider.signing_keys import KeySet
from cloudid_core.settings import Settings
from cloudid_core.values.secret import Secret

NOW: Final = 1_800_000_000.0
TENANT: Final = "7e7a0000-0000-4000-8000-000000000001"
ISSUER: Final = f"https://sts.windows.net/{TENANT}/"
AUDIENCE: Final = "https://management.azure.com/"
PRINCIPAL: Final = "0b1ec700-0000-4000-8000-000000000001"
APP: Final = "a9900000-0000-4000-8000-000000000001"
SUBSCRIPTION: Final = "50b50000-0000-4000-8000-00000000000a"
GROUP: Final = "9f000000-0000-4000-8000-000000000001"
RESOURCE_GROUP: Final = "Prod"
KEY_ID: Final = "key-1"
HEADER: Final = {"typ": "JWT", "alg": "RS256", "kid": KEY_ID, "x5t": KEY_ID}


def machine_id(kind: str, name: str, group: str = RESOURCE_GROUP, subscription: str = SUBSCRIPTION) -> str:
    return f"/subscriptions/{subscription}/resourcegroups/{group}/providers/{kind}/{name}"


VM: Final = machine_id("Microsoft.Compute/virtualMachines", "web")
SCALE_SET: Final = machine_id("Microsoft.Compute/virtualMachineScaleSets", "fleet")
SITE: Final = machine_id("Microsoft.Web/sites", "shop")
VM_ID: Final = "f0f0f0f0-0000-4000-8000-00000000000a"
IDENTITY: Final = machine_id("Microsoft.ManagedIdentity/userAssignedIdentities", "worker", "identities")


def private_key(name: str = KEY_ID) -> rsa.RSAPrivateKey:
    """A key of the tenant, or of somebody else, made once for each name."""
    return _private_key(name)


@cache
def _private_key(name: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def key_set(*names: str, generation: str = "1") -> KeySet:
    return KeySet(
        tenant_id=TENANT,
        issuers=frozenset({ISSUER, f"https://login.microsoftonline.com/{TENANT}/v2.0"}),
        keys={name: private_key(name).public_key() for name in names or (KEY_ID,)},
        generation=generation,
        fetched_at=NOW,
    )


def new_caches(**settings: Any) -> Caches:
    return Caches(Settings(master_key=Secret("00" * 32), **settings))


def said(**changes: Any) -> dict[str, Any]:
    """The claims of a virtual machine; a change to `None` leaves the claim out."""
    claims = {
        "aud": AUDIENCE,
        "iss": ISSUER,
        "iat": NOW - 60,
        "nbf": NOW - 60,
        "exp": NOW + 3600,
        "appid": APP,
        "oid": PRINCIPAL,
        "sub": changes.get("oid", PRINCIPAL),
        "tid": TENANT,
        "ver": "1.0",
        "groups": [GROUP],
        "xms_mirid": VM,
        **changes,
    }
    return {name: value for name, value in claims.items() if value is not None}


def encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(text: str, key: str = KEY_ID) -> str:
    """A text and its signature."""
    return f"{text}.{encode(private_key(key).sign(text.encode(), padding.PKCS1v15(), SHA256()))}"


def mint_raw(header: bytes, payload: bytes, key: str = KEY_ID) -> str:
    return sign(f"{encode(header)}.{encode(payload)}", key)


def mint(claims: dict[str, Any] | None = None, *, header: dict[str, Any] | None = None, key: str = KEY_ID) -> str:
    """A token that says so."""
    return mint_raw(json.dumps(header or HEADER).encode(), json.dumps(claims or said()).encode(), key)


def code_of(program: Any, *arguments: Any, **named: Any) -> Code | None:
    """The code that a call is refused with, if it is."""
    try:
        program(*arguments, **named)
    except Refused as refusal:
        return refusal.code
    return None
