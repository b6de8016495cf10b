"""The login service: discovery documents, published keys, and access tokens for client secrets and assertions."""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import urlsplit

from ..engine.behaviour import Replica
from ..engine.requests import Call, Json
from ..engine.routing import Route, Service
from ..world.objects import Principal
from ..world.world import World
from .assertions import JWT_BEARER, check_assertion
from .errors import error, require_tenant, token_error
from .keys import SigningKey, current_key, published_keys
from .tokens import BY_ASSERTION, BY_SECRET, application_claims, is_first_party

SHARED_NAMES: Final = ("common", "organizations")
CAPABILITIES: Final = {
    "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt", "client_secret_basic"],
    "response_types_supported": ["code", "id_token", "code id_token", "id_token token"],
    "response_modes_supported": ["query", "fragment", "form_post"],
    "subject_types_supported": ["pairwise"],
    "id_token_signing_alg_values_supported": ["RS256"],
    "scopes_supported": ["openid", "profile", "email", "offline_access"],
    "request_uri_parameter_supported": False,
    "userinfo_endpoint": "https://graph.microsoft.com/oidc/userinfo",
    "http_logout_supported": True,
    "frontchannel_logout_supported": True,
}
LIFETIME: Final = 3599
DEFAULT_SCOPE: Final = "/.default"
OPENID_SCOPES: Final = {"openid", "offline_access", "profile", "email"}
"""Scopes that the vendor's libraries add to every request; they have no effect here."""


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


def token_v2(world: World, call: Call) -> Json:
    principal, proof = _authenticate(world, call)
    scopes = [scope for scope in call.form().get("scope", "").split() if scope not in OPENID_SCOPES]
    if len(scopes) != 1 or not scopes[0].endswith(DEFAULT_SCOPE):
        raise token_error(1002012)
    token = _issue(world, principal, proof, scopes[0].removesuffix(DEFAULT_SCOPE))
    return {"token_type": "Bearer", "expires_in": LIFETIME, "ext_expires_in": LIFETIME, "access_token": token}


def token_v1(world: World, call: Call) -> Json:
    """The older endpoint, which takes a resource instead of a scope and answers numbers as strings."""
    principal, proof = _authenticate(world, call)
    resource = call.form().get("resource", "")
    token = _issue(world, principal, proof, resource)
    now = int(world.now())
    return {
        "token_type": "Bearer",
        "expires_in": str(LIFETIME),
        "ext_expires_in": str(LIFETIME),
        "expires_on": str(now + LIFETIME),
        "not_before": str(now),
        "resource": resource,
        "access_token": token,
    }


def headers(world: World, call: Call) -> dict[str, str]:
    """A client's own id of its request comes back."""
    request_id = world.randomness.guid("request")
    return {"x-ms-request-id": request_id, "client-request-id": call.headers.get("client-request-id", request_id)}


def _authenticate(world: World, call: Call) -> tuple[Principal, str]:
    """The principal of the application whose secret or assertion is in the form, and how that shows in its tokens."""
    require_tenant(world, call.names["tenant"])
    form = call.form()
    if "grant_type" not in form or "client_id" not in form:
        raise token_error(900144)
    if form["grant_type"] != "client_credentials":
        raise token_error(70003)
    front_ends = world.behaviour.front_ends
    front_end = 0 if front_ends == 1 else int.from_bytes(world.randomness.bytes("front end", 4)) % front_ends
    application = world.directory.application_of(form["client_id"], Replica.SIGN_IN, front_end)
    if application is None:
        raise token_error(700016)
    principal = world.directory.principal_of(application.client_id, Replica.SIGN_IN, front_end)
    if form.get("client_assertion_type") == JWT_BEARER and "client_assertion" in form:
        address = f"{login_address(world, call)}/{call.names['tenant']}"
        check_assertion(world, application, address, form["client_assertion"])
    elif "client_secret" in form:
        secret, now = form["client_secret"].encode(), world.now()
        passwords = application.passwords + (principal.passwords if principal else ())
        matching = [each for each in passwords if hmac.compare_digest(each.secret.encode(), secret)]
        if not matching or now < matching[0].starts_at:
            raise token_error(7000215)
        if now >= matching[0].ends_at:
            raise token_error(7000222)
    else:
        raise token_error(7000218)
    if principal is None:
        raise token_error(7000229)
    return principal, BY_SECRET if "client_secret" in form else BY_ASSERTION


def _issue(world: World, principal: Principal, proof: str, audience: str) -> str:
    if not is_first_party(world, audience) and not audience.startswith("api://"):
        raise token_error(500011)
    return current_key(world).sign(application_claims(world, principal, proof, audience, LIFETIME))


LOGIN: Final = Service(
    name="login",
    prefix="/login/",
    headers=headers,
    error=error,
    routes=(
        Route("GET", "/login/common/discovery/instance", instance_discovery),
        Route("GET", "/login/{tenant}/.well-known/openid-configuration", discovery_v1),
        Route("GET", "/login/{tenant}/v2.0/.well-known/openid-configuration", discovery_v2),
        Route("GET", "/login/{tenant}/discovery/keys", signing_keys),
        Route("GET", "/login/{tenant}/discovery/v2.0/keys", signing_keys),
        *(Route(method, "/login/{tenant}/oauth2/token", token_v1) for method in ("POST", "GET")),
        Route("POST", "/login/{tenant}/oauth2/v2.0/token", token_v2),
    ),
)
