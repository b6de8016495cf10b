"""What all requests to the resource manager have in common: callers, scopes, headers and errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ..engine.requests import Call, Caller, Json, Refusal, page
from ..identity.tokens import BadToken, arm_audiences, read_bearer
from ..world.access import MANAGEMENT_GROUP, SCOPE, may
from ..world.world import World

VERSION: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}(-[a-z]+)?")
FOR_EVERYBODY: Final = re.compile(r"/arm/(tenants|subscriptions|providers(/[^/]+)?)", re.IGNORECASE)
"""What any principal of the tenant may read; the subscriptions are those that it may see."""

VERBS: Final = {"PUT": "write", "DELETE": "delete", "POST": "action"}
TOKEN_ERRORS: Final[dict[BadToken, tuple[str, str]]] = {
    "missing": ("AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing."),
    "invalid": ("InvalidAuthenticationToken", "The access token is invalid."),
    "expired": ("ExpiredAuthenticationToken", "The access token expiry is in the past."),
    "audience": ("InvalidAuthenticationTokenAudience", "The access token is for another audience."),
}


COUNTERS: Final = {"DELETE": ("deletes",), "PUT": ("writes",), "POST": ("writes",)}
"""What the answers to each method count down."""
READS: Final = ("reads", "global-reads")
FAILURE_CAUSE: Final = {"x-ms-failure-cause": "gateway"}
"""The header of errors that no resource provider answers."""


def headers(world: World, call: Call) -> dict[str, str]:
    """A client's own id of its request comes back, if it asks for that."""
    request_id = world.randomness.guid("request")
    left = str(world.requests_left)
    counters = COUNTERS.get(call.method, READS)
    counted = {f"x-ms-ratelimit-remaining-subscription-{name}": left for name in counters}
    own = call.headers.get("x-ms-client-request-id")
    is_wanted = own and call.headers.get("x-ms-return-client-request-id", "").lower() == "true"
    returned = {"x-ms-client-request-id": own} if own and is_wanted else {}
    return {"x-ms-request-id": request_id, "x-ms-correlation-request-id": request_id, **counted, **returned}


def list_items(world: World, call: Call, items: Sequence[Json]) -> Json:
    """A page of a list. The last page has no link."""
    shown, following = page(items, call, world.base_url, world.behaviour.page_size)
    return {"value": shown, **({"nextLink": following} if following else {})}


def folded(own_id: str) -> str:
    """A resource id as the provider of managed identities writes it."""
    return own_id.replace("/resourceGroups/", "/resourcegroups/")


def authenticate(world: World, call: Call) -> Caller:
    caller = read_bearer(world, call, arm_audiences(world))
    if isinstance(caller, str):
        authority = f'Bearer authorization_uri="{world.base_url}/login/{world.tenant_id}", error="invalid_token"'
        raise Refusal(401, *TOKEN_ERRORS[caller], {"www-authenticate": authority})
    version = call.query.get("api-version")
    if version is None:
        raise Refusal(400, "MissingApiVersionParameter", "The api-version query parameter is required.")
    if not VERSION.fullmatch(version):
        raise Refusal(400, "InvalidApiVersionParameter", "The api-version is not one that is supported.")
    if not FOR_EVERYBODY.fullmatch(call.path) and not may(world, caller.object_id, *action_of(call)):
        raise Refusal(403, "AuthorizationFailed", "The client does not have authorization to perform this action.")
    return caller


def action_of(call: Call) -> tuple[str, str]:
    """The action that a request is, by which role definitions grant it, and the scope of it.

    GET …/providers/Microsoft.Compute/virtualMachines/web is Microsoft.Compute/virtualMachines/read at that machine;
    roles and their assignments belong to the scope that they are at.
    """
    path = call.path.removeprefix("/arm")
    holder, found, named = path.rpartition("/providers/")
    if not found or "/" not in named:  # the hierarchy itself
        named = f"Microsoft.Resources{path}"
    namespace, *segments = named.split("/")
    scope = holder if namespace.lower() == "microsoft.authorization" else path
    return "/".join((namespace, *segments[::2], VERBS.get(call.method, "read"))), scope or "/"


def require_place(world: World, names: Mapping[str, str | None]) -> tuple[str, str]:
    """The subscription and resource group that are named (else empty), in lower case, if they exist; `Refusal` 404."""
    place = (names.get("subscription") or "").lower(), (names.get("group") or "").lower()
    if place[0] and place[0] not in world.subscriptions:
        raise Refusal(404, "SubscriptionNotFound", "The subscription could not be found.")
    if place[1] and place not in world.resource_groups:
        raise Refusal(404, "ResourceGroupNotFound", "The resource group could not be found.")
    return place


def require_scope(world: World, call: Call) -> str:
    """The scope in the path, if its subscription and group exist and its form is valid; `Refusal` 400 or 404."""
    scope = call.names.get("scope", "").rstrip("/") or "/"
    match = SCOPE.fullmatch(scope.lower())
    if match is None:
        raise Refusal(400, "InvalidScope", "The scope is not valid.")
    if match["management"] is not None and match["management"] not in (MANAGEMENT_GROUP, world.tenant_id):
        raise Refusal(404, "ManagementGroupNotFound", "The management group could not be found.")
    require_place(world, match.groupdict())
    return scope
