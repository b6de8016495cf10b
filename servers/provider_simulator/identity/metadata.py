"""The metadata services of the machines: identity tokens, and facts about the machine.

The same machine has its tokens as a virtual machine, as an App Service, and from the agent of Arc.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from ..engine.requests import ANONYMOUS, Call, Caller, Json, Refusal
from ..engine.routing import Route, Service
from ..world.machines import Identity, Machine
from ..world.world import World
from .keys import current_key
from .tokens import machine_claims

LIFETIME: Final = 86_400
RENEW_BEFORE: Final = 300
"""Seconds before its expiry from which on a cached token is replaced."""

AUDIENCE: Final = re.compile(r"[a-z]{2,10}://\S{1,500}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
VERSION: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")
VM: Final = "/metadata/identity/oauth2/token"
APP_SERVICE: Final = "/msi/token"
ARC: Final = "/arc/token"
SELECTORS: Final = ("client_id", "object_id", "msi_res_id", "mi_res_id")

bad_request: Final = partial(Refusal, 400, "invalid_request")


def error(world: World, refusal: Refusal, headers: Mapping[str, str]) -> Json:
    return {"error": refusal.code, "error_description": refusal.message}


def authenticate(world: World, call: Call) -> Caller:
    """Require the header that proves that the caller controls the request, and refuse forwarded requests."""
    if not call.path.endswith(APP_SERVICE) and call.headers.get("metadata", "").lower() != "true":
        raise bad_request("Required metadata header not specified")
    if "x-forwarded-for" in call.headers:
        raise bad_request("Forwarded requests are not answered.")
    if "api-version" not in call.query:
        raise bad_request("Required query variable 'api-version' is missing")
    if not VERSION.fullmatch(call.query["api-version"]):
        raise bad_request("The value of 'api-version' is not supported.")
    return ANONYMOUS


def _machine(world: World, call: Call) -> Machine:
    machine = world.machines.get(call.names["machine"].lower())
    if machine is None:
        raise Refusal(404, "not_found", "No machine has that name.")
    return machine


def issue_token(world: World, call: Call) -> Json:
    """A token, in the forms of all three services.

    Processes of App Service and of functions show the secret that their platform gave them. The key that Arc's agent
    wants proves that the caller may read the file that the challenge names.
    """
    machine = _machine(world, call)
    secret = machine.platform_secret.encode()
    path = call.path.lower()
    if path.endswith(APP_SERVICE):
        if not hmac.compare_digest(call.headers.get("x-identity-header", "").encode(), secret):
            raise Refusal(401, "unauthorized", "The identity header is not that of the platform.")
    elif path.endswith(ARC):
        scheme, _, key = call.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic" or not hmac.compare_digest(key.encode(), secret):
            challenge = {"www-authenticate": f"Basic realm={machine.arc_key_file}"}
            raise Refusal(401, "unauthorized", "The key is missing or wrong.", challenge)
    resource = call.query.get("resource", "")
    if not resource:
        raise bad_request("Required query variable 'resource' is missing")
    identity = _choose(machine, call)
    if not AUDIENCE.fullmatch(resource):
        message = f"AADSTS500011: The resource principal named {resource} was not found in the tenant."
        raise Refusal(400, "invalid_resource", message)
    access_token, expires_on = _cached_token(world, machine, identity, resource)
    remaining = str(max(0, expires_on - int(world.now())))
    return {
        "access_token": access_token,
        "client_id": identity.client_id,
        "expires_in": remaining,
        "expires_on": str(expires_on),
        "ext_expires_in": remaining,
        "not_before": str(expires_on - LIFETIME),
        "resource": resource,
        "token_type": "Bearer",
    }


def _choose(machine: Machine, call: Call) -> Identity:
    """The identity that the query names; by default the system-assigned one, or else the only one."""
    chosen = [(name, call.query[name].lower()) for name in SELECTORS if call.query.get(name)]
    if len(chosen) > 1:
        raise bad_request("Only one of client_id, object_id and msi_res_id may be given")
    for name, value in chosen:
        for identity in machine.identities:
            known = {"client_id": identity.client_id, "object_id": identity.principal_id}
            if value == known.get(name, identity.resource_id.lower()):
                return identity
    if chosen or not machine.identities:
        raise bad_request("Identity not found")
    if machine.system is None and len(machine.users) > 1:
        raise bad_request(
            "Multiple user assigned identities exist, please specify the clientId / resourceId of the identity in the"
            " token request"
        )
    return machine.identities[0]


def _cached_token(world: World, machine: Machine, identity: Identity, resource: str) -> tuple[str, int]:
    """Machines get the same token until shortly before its expiry."""
    key = (machine.vm_id, identity.client_id, resource)
    cached = world.machine_tokens.get(key)
    now = int(world.now())
    if cached is None or not cached[1] - LIFETIME <= now < cached[1] - RENEW_BEFORE:
        claims = machine_claims(world, machine, identity, resource, LIFETIME)
        cached = world.machine_tokens[key] = (current_key(world).sign(claims), claims["exp"])
    return cached


def describe_instance(world: World, call: Call) -> Json:
    machine = _machine(world, call)
    compute = {
        "azEnvironment": "AzurePublicCloud",
        "location": machine.location,
        "name": machine.instance_name,
        "osType": "Linux",
        "provider": "Microsoft.Compute",
        "resourceGroupName": machine.resource_group,
        "resourceId": machine.instance_id,
        "subscriptionId": machine.subscription,
        "tagsList": [],
        "vmId": machine.vm_id,
        "vmScaleSetName": machine.scale_set.name if machine.scale_set else "",
        "vmSize": "Standard_D2s_v5",
        "zone": "",
    }
    return {"compute": compute, "network": {"interface": []}}


METADATA: Final = Service(
    name="metadata",
    prefix="/machines/",
    authenticate=authenticate,
    error=error,
    routes=(
        *(Route("GET", f"/machines/{{machine}}{path}", issue_token) for path in (VM, APP_SERVICE, ARC)),
        Route("GET", "/machines/{machine}/metadata/instance", describe_instance),
    ),
)
