"""The identity provider: discovery documents, signing keys, and access tokens for client secrets."""

from __future__ import annotations

import hmac
import re
from typing import Final
from urllib.parse import urlsplit

from attrs import frozen

from cloudid_core.effects import HttpResponse

from .behaviour import Place
from .objects import Principal
from .routing import ANYBODY, Call, Caller, Family, Json, Refusal, Route, json_response
from .tokens import application_claims, is_first_party
from .world import World, instant

LIFETIME: Final = 3599
SHARED_NAMES: Final = ("common", "organizations")
DEFAULT_SCOPE: Final = "/.default"


@frozen
class Trouble:
    """A way in which the token endpoint refuses."""

    status: int
    error: str
    message: str


TROUBLES: Final = {
    70003: Trouble(400, "unsupported_grant_type", "Only the grant type 'client_credentials' is supported."),
    90002: Trouble(400, "invalid_tenant", "The tenant was not found. Check that it is the right one."),
    500011: Trouble(400, "invalid_resource", "The resource principal was not found in the tenant."),
    700016: Trouble(400, "unauthorized_client", "The application was not found in the directory of the tenant."),
    700213: Trouble(401, "invalid_client", "No matching federated identity record found for the presented assertion."),
    7000229: Trouble(400, "unauthorized_client", "The application is missing a service principal in the tenant."),
    900144: Trouble(400, "invalid_request", "The request body must contain 'grant_type' and 'client_id'."),
    1002012: Trouble(
        400, "invalid_scope", "The scope is not valid: for client credentials it must end in '/.default'."
    ),
    7000215: Trouble(401, "invalid_client", "Invalid client secret provided."),
    7000218: Trouble(401, "invalid_client", "The request body must contain 'client_assertion' or 'client_secret'."),
    7000222: Trouble(401, "invalid_client", "The provided client secret keys are expired."),
}
"""By their AADSTS numbers."""


def trouble(number: int) -> Refusal:
    return Refusal(TROUBLES[number].status, f"AADSTS{number}", TROUBLES[number].message)


def word_error(world: World, refusal: Refusal) -> HttpResponse:
    number = re.fullmatch(r"AADSTS([0-9]{1,9})", refusal.code)
    known = TROUBLES.get(int(number[1])) if number else None
    body: Json = {
        "error": known.error if known else "temporarily_unavailable" if refusal.status >= 429 else "invalid_request",
        "error_description": f"{refusal.code}: {refusal.message}",
        "error_codes": [int(number[1])] if number else [],
        "timestamp": instant(world.now()).replace("T", " "),
        "trace_id": world.dice.guid("trace"),
        "correlation_id": world.dice.guid("correlation"),
    }
    return json_response(refusal.status, body, refusal.headers)


def admit(world: World, call: Call) -> Caller:
    """Anybody may ask."""
    return ANYBODY


def _require_tenant(world: World, call: Call) -> None:
    if call.names["tenant"].lower() not in (world.tenant_id, world.tenant_domain):
        raise trouble(90002)


def discovery_v1(world: World, call: Call) -> HttpResponse:
    _require_tenant(world, call)
    login = f"{world.base_url}/login"
    return json_response(
        200,
        {
            "issuer": f"https://sts.windows.net/{world.tenant_id}/",
            "jwks_uri": f"{login}/common/discovery/keys",
            "token_endpoint": f"{login}/{world.tenant_id}/oauth2/token",
            "authorization_endpoint": f"{login}/{world.tenant_id}/oauth2/authorize",
            **_capabilities(),
        },
    )


def discovery_v2(world: World, call: Call) -> HttpResponse:
    _require_tenant(world, call)
    tenant = f"{world.base_url}/login/{world.tenant_id}"
    return json_response(
        200,
        {
            "issuer": f"{tenant}/v2.0",
            "jwks_uri": f"{tenant}/discovery/v2.0/keys",
            "token_endpoint": f"{tenant}/oauth2/v2.0/token",
            "authorization_endpoint": f"{tenant}/oauth2/v2.0/authorize",
            **_capabilities(),
        },
    )


def _capabilities() -> Json:
    return {
        "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
        "response_types_supported": ["code", "id_token", "token"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "tenant_region_scope": "WW",
    }


def signing_keys(world: World, call: Call) -> HttpResponse:
    if call.names["tenant"].lower() not in SHARED_NAMES:
        _require_tenant(world, call)
    return json_response(200, {"keys": [key.jwk() for key in world.published_keys()]})


def instance_discovery(world: World, call: Call) -> HttpResponse:
    """What the vendor's library asks first: the other names of this host."""
    host = urlsplit(world.base_url).netloc
    names = {"preferred_network": host, "preferred_cache": host, "aliases": [host]}
    document = f"{world.base_url}/login/{world.tenant_id}/v2.0/.well-known/openid-configuration"
    return json_response(200, {"tenant_discovery_endpoint": document, "api-version": "1.1", "metadata": [names]})


def token_v2(world: World, call: Call) -> HttpResponse:
    principal = _authenticate(world, call)
    scope = call.form().get("scope", "")
    if not scope.endswith(DEFAULT_SCOPE) or " " in scope:
        raise trouble(1002012)
    token = _issue(world, principal, scope.removesuffix(DEFAULT_SCOPE))
    return json_response(
        200, {"token_type": "Bearer", "expires_in": LIFETIME, "ext_expires_in": LIFETIME, "access_token": token}
    )


def token_v1(world: World, call: Call) -> HttpResponse:
    """The older endpoint: names a resource, and answers numbers as strings."""
    principal = _authenticate(world, call)
    resource = call.form().get("resource", "")
    token = _issue(world, principal, resource)
    now = int(world.now())
    return json_response(
        200,
        {
            "token_type": "Bearer",
            "expires_in": str(LIFETIME),
            "ext_expires_in": str(LIFETIME),
            "expires_on": str(now + LIFETIME),
            "not_before": str(now),
            "resource": resource,
            "access_token": token,
        },
    )


def _authenticate(world: World, call: Call) -> Principal:
    """The principal of the application whose secret the form holds."""
    _require_tenant(world, call)
    form = call.form()
    if "grant_type" not in form or "client_id" not in form:
        raise trouble(900144)
    if form["grant_type"] != "client_credentials":
        raise trouble(70003)
    front_end = _front_end(world)
    application = world.directory.application_of(form["client_id"], Place.SIGN_IN, front_end)
    if application is None:
        raise trouble(700016)
    if "client_assertion" in form:
        raise trouble(700213)
    if "client_secret" not in form:
        raise trouble(7000218)
    principal = world.directory.principal_of(application.client_id, Place.SIGN_IN, front_end)
    secret = form["client_secret"].encode()
    passwords = application.passwords + (principal.passwords if principal else ())
    matching = [p for p in passwords if hmac.compare_digest(p.secret.encode(), secret)]
    if not matching or world.now() < matching[0].starts_at:
        raise trouble(7000215)
    if world.now() >= matching[0].ends_at:
        raise trouble(7000222)
    if principal is None:
        raise trouble(7000229)
    return principal


def _front_end(world: World) -> int:
    """The one of the token endpoint's servers that a request happens to reach."""
    count = world.behaviour.front_ends
    return 0 if count == 1 else int.from_bytes(world.dice.roll("front end", 4)) % count


def _issue(world: World, principal: Principal, audience: str) -> str:
    if not is_first_party(world, audience) and not audience.startswith("api://"):
        raise trouble(500011)
    return world.signing_key().sign(application_claims(world, principal, audience, LIFETIME))


LOGIN: Final = Family(
    name="login",
    prefix="/login/",
    admit=admit,
    word=word_error,
    routes=(
        Route("GET", "/login/common/discovery/instance", instance_discovery),
        Route("GET", "/login/{tenant}/.well-known/openid-configuration", discovery_v1),
        Route("GET", "/login/{tenant}/v2.0/.well-known/openid-configuration", discovery_v2),
        Route("GET", "/login/{tenant}/discovery/keys", signing_keys),
        Route("GET", "/login/{tenant}/discovery/v2.0/keys", signing_keys),
        Route("POST", "/login/{tenant}/oauth2/token", token_v1),
        Route("POST", "/login/{tenant}/oauth2/v2.0/token", token_v2),
    ),
)
