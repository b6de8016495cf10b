"""Tenants that publish signing keys, as scripts for a scripted cloud."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import cache
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import rsa

from .cloud import LOGIN, TENANT, Setting, reply

V1: Final = "/.well-known/openid-configuration"
V2: Final = "/v2.0/.well-known/openid-configuration"
V1_ISSUER: Final = f"https://sts.windows.net/{TENANT}/"
V2_ISSUER: Final = f"{LOGIN}/{TENANT}/v2.0"
V1_KEYS: Final = "/common/discovery/keys"
V2_KEYS: Final = f"/{TENANT}/discovery/v2.0/keys"


def numbers(name: str, bits: int = 2048) -> rsa.RSAPublicNumbers:
    """The public numbers of a key, made once for each name."""
    return _numbers(name, bits)


@cache
def _numbers(name: str, bits: int) -> rsa.RSAPublicNumbers:
    return rsa.generate_private_key(65537, bits).public_key().public_numbers()


def encode(number: int) -> str:
    return urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8)).rstrip(b"=").decode()


def jwk(kid: str, bits: int = 2048, /, **changes: Any) -> dict[str, Any]:
    """A published key; a change to `None` leaves the member out."""
    found = numbers(kid, bits)
    whole = {"kty": "RSA", "use": "sig", "kid": kid, "n": encode(found.n), "e": encode(found.e), **changes}
    return {name: value for name, value in whole.items() if value is not None}


def publish(setting: Setting, *keys: dict[str, Any], tenant: str = TENANT) -> None:
    """Both documents of a tenant, whose key sets are the same."""
    script = setting.cloud.script
    script(f"GET /{tenant}{V1}", reply(200, {"issuer": V1_ISSUER, "jwks_uri": f"{LOGIN}{V1_KEYS}"}))
    script(f"GET /{tenant}{V2}", reply(200, {"issuer": V2_ISSUER, "jwks_uri": f"{LOGIN}{V2_KEYS}"}))
    for path in (V1_KEYS, V2_KEYS):
        script(f"GET {path}", reply(200, {"keys": list(keys)}))
