"""The resource manager's host: whom it admits, and how it answers."""

from __future__ import annotations

import re
from typing import Any, Final

from cloudid_core.effects import HttpResponse

from .routing import Call, Caller, Refusal, json_response
from .tokens import BadToken, arm_audiences, read_bearer
from .world import World

VERSION: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}(-[a-z]+)?")
PAGE_SIZE: Final = 3
"""Lists come in small pages, so that whoever forgets the next one notices."""

TOKEN_ERRORS: Final = {
    BadToken.MISSING: ("AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing."),
    BadToken.INVALID: ("InvalidAuthenticationToken", "The access token is invalid."),
    BadToken.EXPIRED: ("ExpiredAuthenticationToken", "The access token expiry is in the past."),
    BadToken.AUDIENCE: ("InvalidAuthenticationTokenAudience", "The access token is for another audience."),
}


def word_error(world: World, refusal: Refusal) -> HttpResponse:
    error = {"code": refusal.code, "message": refusal.message}
    return json_response(refusal.status, {"error": error}, {**headers(world), **refusal.headers})


def headers(world: World) -> dict[str, str]:
    request_id = world.dice.guid("request")
    return {
        "x-ms-request-id": request_id,
        "x-ms-correlation-request-id": request_id,
        "x-ms-ratelimit-remaining-subscription-reads": "249",
    }


def answer(world: World, value: Any, status: int = 200) -> HttpResponse:
    return json_response(status, value, headers(world))


def done(world: World) -> HttpResponse:
    """Nothing was there to be done."""
    return HttpResponse(204, headers(world))


def admit(world: World, call: Call) -> Caller:
    caller = read_bearer(world, call, arm_audiences(world))
    if isinstance(caller, BadToken):
        authority = f'Bearer authorization_uri="{world.base_url}/login/{world.tenant_id}", error="invalid_token"'
        raise Refusal(401, *TOKEN_ERRORS[caller], {"www-authenticate": authority})
    version = call.query.get("api-version")
    if version is None:
        raise Refusal(400, "MissingApiVersionParameter", "The api-version query parameter is required.")
    if not VERSION.fullmatch(version):
        raise Refusal(400, "InvalidApiVersionParameter", "The api-version is not one that is supported.")
    if caller.object_id not in (world.writers if call.writes else world.readers):
        raise Refusal(403, "AuthorizationFailed", "The client does not have authorization to perform this action.")
    return caller
