"""Errors of the token endpoint, by their AADSTS numbers (RFC 6749, section 5.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..engine.requests import Json, Refusal
from ..world.world import World, instant

INVALID_CLIENT: Final = {
    50027: "The JWT is malformed, or its signature is not valid.",
    50166: "The request to the external OIDC endpoint failed.",
    70021: "No matching federated identity record found for presented assertion.",
    700021: "The issuer and the subject of the client assertion must be the application's client id.",
    700023: "Client assertion audience claim does not match Realm issuer.",
    700024: "The client assertion is not within its valid time range.",
    700027: "The client assertion failed signature validation: its key was not found.",
    700211: "No matching federated identity record found for presented assertion issuer.",
    700212: "No matching federated identity record found for presented assertion audience.",
    700213: "No matching federated identity record found for presented assertion subject.",
    7000215: "Invalid client secret provided.",
    7000229: "The client application is missing a service principal in the tenant.",
    7002137: "No matching federated identity record found for presented assertion subject of another tenant.",
    7002138: "No matching federated identity record found for presented assertion subject: its case differs.",
    7000218: "The request body must contain 'client_assertion' or 'client_secret'.",
    7000222: "The provided client secret keys are expired.",
}
"""All answered with 401."""

BAD_REQUEST: Final = {
    70003: ("unsupported_grant_type", "Only the grant type 'client_credentials' is supported."),
    90002: ("invalid_tenant", "The tenant was not found. Check that it is the right one."),
    500011: ("invalid_resource", "The resource principal was not found in the tenant."),
    700016: ("unauthorized_client", "The application was not found in the directory of the tenant."),
    900144: ("invalid_request", "The request body must contain 'grant_type' and 'client_id'."),
    1002012: ("invalid_scope", "The scope is not valid: for client credentials it must end in '/.default'."),
}
"""All answered with 400: the error's name, and its message."""

ERRORS: Final = {
    **{number: (401, "invalid_client", message) for number, message in INVALID_CLIENT.items()},
    **{number: (400, *named) for number, named in BAD_REQUEST.items()},
}


def token_error(number: int) -> Refusal:
    status, _, message = ERRORS[number]
    return Refusal(status, f"AADSTS{number}", message)


def error(world: World, refusal: Refusal, headers: Mapping[str, str]) -> Json:
    number = re.fullmatch(r"AADSTS([0-9]{1,9})", refusal.code)
    unknown = (refusal.status, "temporarily_unavailable" if refusal.status >= 429 else "invalid_request", "")
    return {
        "error": ERRORS.get(int(number[1]) if number else 0, unknown)[1],
        "error_description": f"{refusal.code}: {refusal.message}",
        "error_codes": [int(number[1])] if number else [],
        "timestamp": instant(world.now()).replace("T", " "),
        "trace_id": world.randomness.guid("trace"),
        "correlation_id": headers["client-request-id"],
        **({"error_uri": f"https://login.microsoftonline.com/error?code={number[1]}"} if number else {}),
    }


def require_tenant(world: World, tenant: str) -> None:
    """Refuse requests for another tenant, which is named by id or domain."""
    if tenant.lower() not in (world.tenant_id, world.tenant_domain):
        raise token_error(90002)
