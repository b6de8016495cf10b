"""Discovery documents of the identity provider, and its published signing keys."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from ..engine.requests import Call, Json
from ..world.world import World
from .errors import require_tenant
from .keys import SigningKey, published_keys

SHARED_NAMES: Final = ("common", "organizations")
CAPABILITIES: Final = {
    "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
    "response_types_supported": ["code", "id_token", "token"],
    "subject_types_supported": ["pairwise"],
    "id_token_signing_alg_values_supported": ["RS256"],
    "tenant_region_scope": "WW",
}


def login_address(world: World, call: Call) -> str:
    """The login service's address as the client knows it, so that it stays with the form that it asked in."""
    return f"{world.base_url}{call.login}"


def discovery_v1(world: World, call: Call) -> Json:
    require_tenant(world, call.names["tenant"])
    login = login_address(world, call)
    tenant = f"{login}/{world.tenant_id}"
    return {
        "issuer": f"https://sts.windows.net/{world.tenant_id}/",
        "jwks_uri": f"{login}/common/discovery/keys",
        "token_endpoint": f"{tenant}/oauth2/token",
        "authorization_endpoint": f"{tenant}/oauth2/authorize",
        **CAPABILITIES,
    }


def discovery_v2(world: World, call: Call) -> Json:
    require_tenant(world, call.names["tenant"])
    tenant = f"{login_address(world, call)}/{world.tenant_id}"
    return {
        "issuer": f"{tenant}/v2.0",
        "jwks_uri": f"{tenant}/discovery/v2.0/keys",
        "token_endpoint": f"{tenant}/oauth2/v2.0/token",
        "authorization_endpoint": f"{tenant}/oauth2/v2.0/authorize",
        **CAPABILITIES,
    }


def signing_keys(world: World, call: Call) -> Json:
    if call.names["tenant"].lower() not in SHARED_NAMES:
        require_tenant(world, call.names["tenant"])
    return {"keys": [show_key(world, key, login_address(world, call)) for key in published_keys(world)]}


def show_key(world: World, key: SigningKey, login: str) -> Json:
    """A key as it is published. In `issuer`, `{tenantid}` stands for any tenant, as it does at the provider."""
    members = {
        **key.jwk(),
        "alg": "RS256",
        "key_ops": ["verify"],
        "issuer": f"{login}/{{tenantid}}/v2.0",
        "cloud_instance_name": urlsplit(world.base_url).netloc,
        **world.key_members.get(key.kid, {}),
    }
    return {name: value for name, value in members.items() if value is not None}


def instance_discovery(world: World, call: Call) -> Json:
    """The other names of this host, which the vendor's libraries ask for first."""
    host = urlsplit(world.base_url).netloc
    names = {"preferred_network": host, "preferred_cache": host, "aliases": [host]}
    document = f"{login_address(world, call)}/{world.tenant_id}/v2.0/.well-known/openid-configuration"
    return {"tenant_discovery_endpoint": document, "api-version": "1.1", "metadata": [names]}
