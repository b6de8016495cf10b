"""Access tokens: their claims and audiences, and how the services check the token of a request."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from cloudid_core.clouds import CLOUDS

from ..engine.requests import Call, Caller, Json
from ..world.machines import Identity, Machine
from ..world.objects import Principal
from ..world.world import World
from .keys import Jwt, signing_key

ARM_AUDIENCES: Final = frozenset(
    address.rstrip("/") for cloud in CLOUDS.values() for address in (cloud.resource_manager, cloud.resource_audience)
)
GRAPH_AUDIENCES: Final = frozenset(cloud.directory for cloud in CLOUDS.values())
OTHER_FIRST_PARTIES: Final = frozenset(
    {
        "https://vault.azure.net",
        "https://storage.azure.com",
        "https://database.windows.net",
        "https://batch.core.windows.net",
    }
)

READ_PERMISSIONS: Final = ("Application.Read.All", "GroupMember.Read.All")
WRITE_PERMISSIONS: Final = (
    "Application.ReadWrite.All",
    "GroupMember.ReadWrite.All",
    "RoleManagement.ReadWrite.Directory",
    "AppRoleAssignment.ReadWrite.All",
)
"""Application permissions of those who may read the directory, and who may write it."""

MAX_GROUPS: Final = 200
"""A token of a principal in more groups contains a link to the list instead."""

BadToken: TypeAlias = Literal["missing", "invalid", "expired", "audience"]
"""Why a token is not accepted."""


def plain(audience: str) -> str:
    """The audience as it is compared: in lower case, without a slash at the end."""
    return audience.lower().rstrip("/")


def arm_audiences(world: World) -> frozenset[str]:
    return ARM_AUDIENCES | {plain(f"{world.base_url}/arm")}


def graph_audiences(world: World) -> frozenset[str]:
    return GRAPH_AUDIENCES | {plain(f"{world.base_url}/graph")}


def is_first_party(world: World, audience: str) -> bool:
    """Whether the audience is a service of the cloud itself. Only such tokens name the machine that asked."""
    return plain(audience) in arm_audiences(world) | graph_audiences(world) | OTHER_FIRST_PARTIES


BY_SECRET: Final = "1"
BY_ASSERTION: Final = "2"
"""How a client authenticated, as the claim `appidacr` has it."""


def application_claims(world: World, principal: Principal, proof: str, audience: str, lifetime: int) -> Json:
    """The claims of an application's token. One for the directory names the application's permissions there."""
    claims = {**_claims(world, principal.id, principal.client_id, audience, lifetime), "appidacr": proof}
    if plain(audience) in graph_audiences(world):
        may_read, may_write = principal.id in world.readers, principal.id in world.writers
        everything = (*(READ_PERMISSIONS if may_read else ()), *(WRITE_PERMISSIONS if may_write else ()))
        claims["roles"] = list(world.consents.get(principal.id, everything))
    return claims


def machine_claims(world: World, machine: Machine, identity: Identity, audience: str, lifetime: int) -> Json:
    """The claims of a token from a machine's metadata service."""
    claims = _claims(world, identity.principal_id, identity.client_id, audience, lifetime)
    claims["appidacr"] = BY_ASSERTION
    if is_first_party(world, audience):
        named = {"xms_mirid": identity.resource_id}
        if identity in machine.users:
            named["xms_az_rid"] = machine.claimed_id
        claims |= {name: own_id.replace("/resourceGroups/", "/resourcegroups/") for name, own_id in named.items()}
    groups = [group.id for group in world.directory.groups_of(identity.principal_id)]
    if len(groups) > MAX_GROUPS:
        link = f"https://graph.windows.net/{world.tenant_id}/servicePrincipals/{identity.principal_id}/getMemberObjects"
        return {**claims, "_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": link}}}
    return {**claims, "groups": groups} if groups else claims


def _claims(world: World, object_id: str, client_id: str, audience: str, lifetime: int) -> Json:
    issuer = f"https://sts.windows.net/{world.tenant_id}/"
    now = int(world.now())
    return {
        "aud": audience,
        "iss": issuer,
        "iat": now,
        "nbf": now,
        "exp": now + lifetime,
        "aio": world.randomness.text("aio", 64),
        "appid": client_id,
        "idp": issuer,
        "idtyp": "app",
        "oid": object_id,
        "rh": f"1.{world.randomness.text('rh', 48)}.",
        "sub": object_id,
        "tid": world.tenant_id,
        "uti": world.randomness.text("uti", 22),
        "ver": "1.0",
    }


def read_bearer(world: World, call: Call, audiences: frozenset[str]) -> Caller | BadToken:
    """The caller whose access token the request carries, if the token is valid and for one of these audiences.

    Keys that are no longer published still verify here, as they do at the provider's own services.
    """
    scheme, _, token = call.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        return "missing"
    claims = _verified(world.seed, world.key_count, token.strip())
    if claims is None:
        return "invalid"
    begin, end = claims.get("nbf", 0), claims.get("exp")
    if not (isinstance(begin, int) and isinstance(end, int) and begin <= world.now() < end):
        return "expired"
    if plain(str(claims.get("aud", ""))) not in audiences:
        return "audience"
    return Caller(str(claims.get("oid", "")), str(claims.get("appid", "")))


@lru_cache(maxsize=4096)
def _verified(seed: int, key_count: int, text: str) -> Mapping[str, Any] | None:
    """The claims of a token that one of the world's keys signed. Cached, since a token is sent many times."""
    try:
        token = Jwt.parse(text)
    except ValueError:
        return None
    keys = (signing_key(seed, number) for number in range(key_count))
    key = next((key for key in keys if key.kid == token.header.get("kid")), None)
    return token.claims if key and token.is_signed_by(key.private.public_key()) else None
