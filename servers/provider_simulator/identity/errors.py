"""Errors of the token endpoint, by their AADSTS numbers."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from cloudid_core.effects import HttpResponse

from ..engine.requests import Json, Refusal, json_response
from ..world.world import World, instant


@frozen
class TokenError:
    """An error as the token endpoint answers it (RFC 6749, section 5.2)."""

    status: int
    error: str
    message: str


TOKEN_ERRORS: Final = {
    70003: TokenError(400, "unsupported_grant_type", "Only the grant type 'client_credentials' is supported."),
    50027: TokenError(401, "invalid_client", "The JWT is malformed, or its signature is not valid."),
    50166: TokenError(401, "invalid_client", "The request to the external OIDC endpoint failed."),
    70021: TokenError(401, "invalid_client", "No matching federated identity record found for presented assertion."),
    90002: TokenError(400, "invalid_tenant", "The tenant was not found. Check that it is the right one."),
    500011: TokenError(400, "invalid_resource", "The resource principal was not found in the tenant."),
    700016: TokenError(400, "unauthorized_client", "The application was not found in the directory of the tenant."),
    700021: TokenError(
        401, "invalid_client", "The issuer and the subject of the client assertion must be the application's client id."
    ),
    700023: TokenError(401, "invalid_client", "Client assertion audience claim does not match Realm issuer."),
    700024: TokenError(401, "invalid_client", "The client assertion is not within its valid time range."),
    700027: TokenError(
        401, "invalid_client", "The client assertion failed signature validation: its key was not found."
    ),
    700211: TokenError(
        401, "invalid_client", "No matching federated identity record found for presented assertion issuer."
    ),
    700212: TokenError(
        401, "invalid_client", "No matching federated identity record found for presented assertion audience."
    ),
    700213: TokenError(
        401, "invalid_client", "No matching federated identity record found for presented assertion subject."
    ),
    7000229: TokenError(400, "unauthorized_client", "The application is missing a service principal in the tenant."),
    900144: TokenError(400, "invalid_request", "The request body must contain 'grant_type' and 'client_id'."),
    1002012: TokenError(
        400, "invalid_scope", "The scope is not valid: for client credentials it must end in '/.default'."
    ),
    7000215: TokenError(401, "invalid_client", "Invalid client secret provided."),
    7000218: TokenError(401, "invalid_client", "The request body must contain 'client_assertion' or 'client_secret'."),
    7000222: TokenError(401, "invalid_client", "The provided client secret keys are expired."),
}


def token_error(number: int) -> Refusal:
    return Refusal(TOKEN_ERRORS[number].status, f"AADSTS{number}", TOKEN_ERRORS[number].message)


def render_error(world: World, refusal: Refusal) -> HttpResponse:
    number = re.fullmatch(r"AADSTS([0-9]{1,9})", refusal.code)
    known = TOKEN_ERRORS.get(int(number[1])) if number else None
    body: Json = {
        "error": known.error if known else "temporarily_unavailable" if refusal.status >= 429 else "invalid_request",
        "error_description": f"{refusal.code}: {refusal.message}",
        "error_codes": [int(number[1])] if number else [],
        "timestamp": instant(world.now()).replace("T", " "),
        "trace_id": world.randomness.guid("trace"),
        "correlation_id": world.randomness.guid("correlation"),
    }
    return json_response(refusal.status, body, refusal.headers)


def require_tenant(world: World, tenant: str) -> None:
    """Refuse requests for another tenant, which is named by id or domain."""
    if tenant.lower() not in (world.tenant_id, world.tenant_domain):
        raise token_error(90002)
