"""The token endpoint: access tokens for client secrets and for client assertions."""

from __future__ import annotations

import hmac
from typing import Final

from cloudid_core.effects import HttpResponse

from ..engine.behaviour import Replica
from ..engine.requests import Call, json_response
from ..world.objects import Application, Principal
from ..world.world import World
from .assertions import JWT_BEARER, read_assertion
from .certificates import check_certificate, names_certificate
from .discovery import login_address
from .errors import require_tenant, token_error
from .federation import check_federated
from .keys import current_key
from .tokens import application_claims, is_first_party

LIFETIME: Final = 3599
DEFAULT_SCOPE: Final = "/.default"
OPENID_SCOPES: Final = {"openid", "offline_access", "profile", "email"}
"""Scopes that the vendor's libraries add to every request; they have no effect here."""


def token_v2(world: World, call: Call) -> HttpResponse:
    principal = _authenticate(world, call)
    scopes = [scope for scope in call.form().get("scope", "").split() if scope not in OPENID_SCOPES]
    if len(scopes) != 1 or not scopes[0].endswith(DEFAULT_SCOPE):
        raise token_error(1002012)
    token = _issue(world, principal, scopes[0].removesuffix(DEFAULT_SCOPE))
    return json_response(
        200, {"token_type": "Bearer", "expires_in": LIFETIME, "ext_expires_in": LIFETIME, "access_token": token}
    )


def token_v1(world: World, call: Call) -> HttpResponse:
    """The older endpoint, which takes a resource instead of a scope and answers numbers as strings."""
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
    """The principal of the application whose secret or assertion is in the form."""
    require_tenant(world, call.names["tenant"])
    form = call.form()
    if "grant_type" not in form or "client_id" not in form:
        raise token_error(900144)
    if form["grant_type"] != "client_credentials":
        raise token_error(70003)
    front_end = _front_end(world)
    application = world.directory.application_of(form["client_id"], Replica.SIGN_IN, front_end)
    if application is None:
        raise token_error(700016)
    principal = world.directory.principal_of(application.client_id, Replica.SIGN_IN, front_end)
    if form.get("client_assertion_type") == JWT_BEARER and "client_assertion" in form:
        assertion = read_assertion(form["client_assertion"])
        if names_certificate(assertion, application.client_id):
            check_certificate(world, application, f"{login_address(world, call)}/{call.names['tenant']}", assertion)
        else:
            check_federated(world, application.client_id, assertion)
    elif "client_secret" in form:
        _check_secret(world, application, principal, form["client_secret"].encode())
    else:
        raise token_error(7000218)
    if principal is None:
        raise token_error(7000229)
    return principal


def _check_secret(world: World, application: Application, principal: Principal | None, secret: bytes) -> None:
    passwords = application.passwords + (principal.passwords if principal else ())
    matching = [p for p in passwords if hmac.compare_digest(p.secret.encode(), secret)]
    if not matching or world.now() < matching[0].starts_at:
        raise token_error(7000215)
    if world.now() >= matching[0].ends_at:
        raise token_error(7000222)


def _front_end(world: World) -> int:
    """The front end of the token endpoint that the request reaches."""
    count = world.behaviour.front_ends
    return 0 if count == 1 else int.from_bytes(world.randomness.bytes("front end", 4)) % count


def _issue(world: World, principal: Principal, audience: str) -> str:
    if not is_first_party(world, audience) and not audience.startswith("api://"):
        raise token_error(500011)
    return current_key(world).sign(application_claims(world, principal, audience, LIFETIME))
