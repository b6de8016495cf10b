"""What is verified: tokens with the keys, the audience and the bounds that they are verified against."""

from __future__ import annotations

import json
import time
import uuid
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import jwt
import msgspec
from attrs import field, frozen
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, generate_private_key
from jwt.algorithms import RSAAlgorithm

from cloudid_core.provider import KeyDocument, KeySet, usable_keys

AUDIENCE: Final = "https://management.azure.com/"
KEY_ID: Final = "key-of-the-benchmark"
ADMITTED: Final = "0a5cf0a6-3b7e-4b0f-8a56-2f5a5f6e3c01"
"""The group that every synthetic token is in, and that the role binds."""
LIFETIME: Final = 86_400


@frozen(kw_only=True)
class Subject:
    """Has tokens of one tenant, and what they are verified against."""

    tokens: tuple[str, ...] = field(repr=False)
    jwks: str = field(repr=False)
    tenant_id: str
    audience: str
    issuer: str
    bounds: Mapping[str, tuple[str, ...]]
    now: float
    """The time that is used for the verification, so that a recorded token need not be fresh."""
    origin: str
    """What people read about the tokens."""

    @cached_property
    def key_set(self) -> KeySet:
        issuers = frozenset({self.issuer})
        keys = usable_keys(msgspec.json.decode(self.jwks, type=KeyDocument), self.tenant_id, issuers)
        return KeySet(tenant_id=self.tenant_id, issuers=issuers, keys=keys, generation="1", fetched_at=self.now)

    @cached_property
    def key(self) -> RSAPublicKey:
        """The key that signed the first token. Raises `ValueError` if the token or the set does not have it."""
        try:
            key_id = jwt.get_unverified_header(self.tokens[0]).get("kid", "")
        except jwt.DecodeError as error:
            raise ValueError(str(error)) from None
        if key_id not in self.key_set.keys:
            raise ValueError(f"the key set has no key {key_id!r} for this tenant")
        return self.key_set.keys[key_id]


def synthetic(count: int, groups: int, key_bits: int) -> Subject:
    """Return tokens as Azure issues them to managed identities, each in so many groups, signed with one new key."""
    key = generate_private_key(65537, key_bits)
    tenant_id, now = str(uuid.uuid4()), time.time()
    issuer = f"https://sts.windows.net/{tenant_id}/"
    tokens = tuple(
        jwt.encode(_claims(number, groups, tenant_id, issuer, int(now)), key, "RS256", {"kid": KEY_ID, "x5t": KEY_ID})
        for number in range(count)
    )
    published: dict[str, Any] = json.loads(RSAAlgorithm.to_jwk(key.public_key()))
    return Subject(
        tokens=tokens,
        jwks=json.dumps({"keys": [{**published, "kid": KEY_ID, "use": "sig", "issuer": issuer}]}),
        tenant_id=tenant_id,
        audience=AUDIENCE,
        issuer=issuer,
        bounds={"bound_group_ids": (ADMITTED,)},
        now=now + 60,
        origin=f"{count} synthetic tokens of {len(tokens[0])} bytes: RS256 with {key_bits} bits, {groups} groups each",
    )


def _claims(number: int, groups: int, tenant_id: str, issuer: str, now: int) -> dict[str, Any]:
    principal, place = str(uuid.uuid4()), f"/subscriptions/{tenant_id}/resourcegroups/web"
    machine = f"{place}/providers/Microsoft.Compute/virtualMachines/web-{number:05}"
    return {
        "aud": AUDIENCE,
        "iss": issuer,
        "iat": now,
        "nbf": now,
        "exp": now + LIFETIME,
        "aio": "E2ZgYJj5bAEA",
        "appid": str(uuid.uuid4()),
        "appidacr": "2",
        "groups": [ADMITTED, *(str(uuid.UUID(int=each + 1)) for each in range(groups - 1))],
        "idp": issuer,
        "idtyp": "app",
        "oid": principal,
        "sub": principal,
        "tid": tenant_id,
        "uti": uuid.uuid4().hex,
        "ver": "1.0",
        "xms_mirid": machine,
    }


def own(token: str, jwks: str, bounds: Mapping[str, tuple[str, ...]]) -> Subject:
    """Return one recorded token with its key set. Tenant, issuer, time and audience are those of the token.

    Raises `ValueError` if it is not a token.
    """
    try:
        payload = token.split(".")[1]
        claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        tenant_id, issuer = str(claims["tid"]), str(claims["iss"])
        now = (float(claims["nbf"]) + float(claims["exp"])) / 2
        size = len(claims.get("groups", ()))
    except (IndexError, KeyError, TypeError, ValueError):
        raise ValueError("this is not a token of Azure: it needs the claims aud, exp, iss, nbf and tid") from None
    return Subject(
        tokens=(token,),
        jwks=jwks,
        tenant_id=tenant_id,
        audience=str(claims.get("aud", "")),
        issuer=issuer,
        bounds=bounds or {"bound_service_principal_ids": ("*",)},
        now=now,
        origin=f"a token of {len(token)} bytes in {size} groups",
    )
