"""The metadata service that every machine has for itself: its identity tokens, and what it is."""

from __future__ import annotations

import re
from typing import Final

from cloudid_core.effects import HttpResponse

from .machines import Machine
from .routing import ANYBODY, Call, Caller, Family, Refusal, Route, json_response
from .tokens import machine_claims
from .world import Identity, World

LIFETIME: Final = 86_400
RENEW_BEFORE: Final = 300
"""So many seconds before its end a cached token is no longer handed out."""

AUDIENCE: Final = re.compile(r"[a-z]{2,10}://\S{1,500}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
VERSION: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")
SELECTORS: Final = ("client_id", "object_id", "msi_res_id", "mi_res_id")


def bad(message: str, code: str = "invalid_request") -> Refusal:
    return Refusal(400, code, message)


def word_error(world: World, refusal: Refusal) -> HttpResponse:
    return json_response(refusal.status, {"error": refusal.code, "error_description": refusal.message}, refusal.headers)


def admit(world: World, call: Call) -> Caller:
    """The header keeps out whoever can only make a machine fetch a URL; a proxy's header shows one from afar."""
    if call.headers.get("metadata", "").lower() != "true":
        raise bad("Required metadata header not specified")
    if "x-forwarded-for" in call.headers:
        raise bad("A request that was forwarded is not answered.")
    if "api-version" not in call.query:
        raise bad("Required query variable 'api-version' is missing")
    if not VERSION.fullmatch(call.query["api-version"]):
        raise bad("The value of 'api-version' is not supported.")
    return ANYBODY


def _machine(world: World, call: Call) -> Machine:
    machine = world.machines.get(call.names["machine"].lower())
    if machine is None:
        raise Refusal(404, "not_found", "There is no machine of that name.")
    return machine


def token(world: World, call: Call) -> HttpResponse:
    machine = _machine(world, call)
    resource = call.query.get("resource", "")
    if not resource:
        raise bad("Required query variable 'resource' is missing")
    identity = _choose(machine, call)
    if not AUDIENCE.fullmatch(resource):
        raise bad(
            f"AADSTS500011: The resource principal named {resource} was not found in the tenant.", "invalid_resource"
        )
    access_token, expires_on = _cached_token(world, machine, identity, resource)
    remaining = str(max(0, expires_on - int(world.now())))
    return json_response(
        200,
        {
            "access_token": access_token,
            "client_id": identity.client_id,
            "expires_in": remaining,
            "expires_on": str(expires_on),
            "ext_expires_in": remaining,
            "not_before": str(expires_on - LIFETIME),
            "resource": resource,
            "token_type": "Bearer",
        },
    )


def _choose(machine: Machine, call: Call) -> Identity:
    """The identity that the query names; else the system's; else the only one."""
    chosen = [(name, call.query[name].lower()) for name in SELECTORS if call.query.get(name)]
    if len(chosen) > 1:
        raise bad("Only one of client_id, object_id and msi_res_id may be given")
    for name, value in chosen:
        for identity in machine.identities:
            known = {"client_id": identity.client_id, "object_id": identity.principal_id}
            if value == known.get(name, identity.resource_id.lower()):
                return identity
    if chosen or not machine.identities:
        raise bad("Identity not found")
    if machine.system is None and len(machine.users) > 1:
        raise bad(
            "Multiple user assigned identities exist, please specify the clientId / resourceId of the identity in the"
            " token request"
        )
    return machine.identities[0]


def _cached_token(world: World, machine: Machine, identity: Identity, resource: str) -> tuple[str, int]:
    """A machine gets the same token again until it is nearly over."""
    key = (machine.vm_id, identity.client_id, resource)
    cached = world.machine_tokens.get(key)
    now = int(world.now())
    if cached is None or not cached[1] - LIFETIME <= now < cached[1] - RENEW_BEFORE:
        claims = machine_claims(world, machine, identity, resource, LIFETIME)
        cached = world.machine_tokens[key] = (world.signing_key().sign(claims), claims["exp"])
    return cached


def instance(world: World, call: Call) -> HttpResponse:
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
    return json_response(200, {"compute": compute, "network": {"interface": []}})


METADATA: Final = Family(
    name="metadata",
    prefix="/machines/",
    admit=admit,
    word=word_error,
    routes=(
        Route("GET", "/machines/{machine}/metadata/identity/oauth2/token", token),
        Route("GET", "/machines/{machine}/metadata/instance", instance),
    ),
)
