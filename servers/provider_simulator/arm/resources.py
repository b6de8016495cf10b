"""Subscriptions, resource providers, machines, scale sets and identities."""

from __future__ import annotations

from typing import Final

from cloudid_core.effects import HttpResponse

from ..engine.requests import Call, Json, Refusal, page
from ..engine.routing import Route
from ..world.machines import (
    SCALE_SET,
    USER_IDENTITY,
    VIRTUAL_MACHINE,
    WEB_SITE,
    Identity,
    Machine,
    Resource,
    ScaleSet,
    resource_id,
)
from ..world.world import World
from .conventions import PAGE_SIZE, answer, require_place

TYPE_VERSIONS: Final = {
    VIRTUAL_MACHINE: ("2024-07-01", "2023-09-01", "2022-11-01"),
    SCALE_SET: ("2024-07-01", "2023-09-01", "2022-11-01"),
    USER_IDENTITY: ("2025-01-31-preview", "2024-11-30", "2023-01-31"),
    WEB_SITE: ("2022-11-01-preview", "2022-09-01", "2022-03-01", "2021-03-01"),
}
"""Resource types, and the API versions that each of them lists, newest first."""

DISPLAY_LOCATIONS: Final = {
    "westus2": "West US 2",
    "westeurope": "West Europe",
    "northeurope": "North Europe",
    "eastus": "East US",
    "germanywestcentral": "Germany West Central",
}
"""How some resource types write their location."""


def _require_place(world: World, call: Call) -> None:
    require_place(world, call.names["subscription"], call.names.get("group"))


def read_subscription(world: World, call: Call) -> HttpResponse:
    _require_place(world, call)
    own_id = call.names["subscription"].lower()
    return answer(
        world,
        {
            "id": f"/subscriptions/{own_id}",
            "subscriptionId": own_id,
            "tenantId": world.tenant_id,
            "displayName": f"Subscription {world.subscriptions.index(own_id) + 1}",
            "state": "Enabled",
        },
    )


def read_provider(world: World, call: Call) -> HttpResponse:
    """A resource provider: its types and their API versions."""
    _require_place(world, call)
    namespace = call.names["namespace"].lower()
    types = [name.split("/") for name in TYPE_VERSIONS if name.lower().startswith(f"{namespace}/")]
    if not types:
        raise Refusal(404, "InvalidResourceNamespace", "The resource namespace is invalid.")
    display_name = types[0][0]
    return answer(
        world,
        {
            "id": f"/subscriptions/{call.names['subscription'].lower()}/providers/{display_name}",
            "namespace": display_name,
            "registrationState": "Registered",
            "resourceTypes": [
                {
                    "resourceType": kind,
                    "locations": list(DISPLAY_LOCATIONS.values()),
                    "apiVersions": list(TYPE_VERSIONS[f"{space}/{kind}"]),
                }
                for space, kind in types
            ],
        },
    )


def list_identities(world: World, call: Call) -> HttpResponse:
    """The user-assigned identities of a resource group."""
    _require_place(world, call)
    folder = resource_id(call.names["subscription"], call.names["group"], USER_IDENTITY, "").lower()
    found = [i for i in world.identities.values() if i.resource_id.lower().startswith(folder)]
    items, following = page(found, call, world.base_url, PAGE_SIZE)
    value: Json = {"value": [show_identity(world, identity) for identity in items]}
    return answer(world, value if following is None else {**value, "nextLink": following})


def read_resource(world: World, call: Call) -> HttpResponse:
    """The resource of this id, of any type."""
    _require_place(world, call)
    found = world.resources.get(call.path.removeprefix("/arm").lower())
    if found is None:
        raise Refusal(404, "ResourceNotFound", "The resource was not found in its resource group.")
    return answer(world, _show(world, call, found))


def _show(world: World, call: Call, found: Resource) -> Json:
    if isinstance(found, Identity):
        return show_identity(world, found)
    if isinstance(found, ScaleSet):
        return show_scale_set(world, found)
    if found.kind == "resource":
        return show_other(world, call, found)
    return show_machine(world, found, with_view=call.query.get("$expand", "").lower() == "instanceview")


def show_machine(world: World, machine: Machine, with_view: bool) -> Json:
    properties: Json = {"vmId": machine.vm_id, "provisioningState": "Succeeded"}
    if machine.kind == "vmss_flexible" and machine.scale_set:
        properties["virtualMachineScaleSet"] = {"id": machine.scale_set.resource_id}
    if with_view:
        running = {"code": "PowerState/running", "level": "Info", "displayStatus": "VM running"}
        properties["instanceView"] = {"statuses": [running]}
    uniform = machine.kind == "vmss_uniform"
    return {
        "id": machine.instance_id,
        "name": machine.instance_name,
        "type": f"{SCALE_SET}/virtualMachines" if uniform else VIRTUAL_MACHINE,
        "location": machine.location,
        **_identity(world, machine.system, machine.users),
        "properties": properties,
    }


def show_scale_set(world: World, scale_set: ScaleSet) -> Json:
    """A flexible set does not show the principals of its identities; each identity has to be read for that."""
    uniform = scale_set.kind == "vmss_uniform"
    return {
        "id": scale_set.resource_id,
        "name": scale_set.name,
        "type": SCALE_SET,
        "location": scale_set.location,
        **_identity(world, scale_set.system, scale_set.users, with_principals=uniform),
        "properties": {
            "orchestrationMode": "Uniform" if uniform else "Flexible",
            "provisioningState": "Succeeded",
        },
    }


def show_identity(world: World, identity: Identity) -> Json:
    return {
        "id": identity.resource_id,
        "name": identity.name,
        "type": USER_IDENTITY,
        "location": identity.location,
        "tags": {},
        "properties": {
            "tenantId": world.tenant_id,
            "principalId": identity.principal_id,
            "clientId": identity.client_id,
        },
    }


def show_other(world: World, call: Call, resource: Machine) -> Json:
    space, kind, name = resource.resource_id.split("/")[-3:]
    if call.query["api-version"] not in TYPE_VERSIONS.get(f"{space}/{kind}", (call.query["api-version"],)):
        raise Refusal(400, "NoRegisteredProviderFound", "No resource provider is registered for this api-version.")
    return {
        "id": resource.resource_id,
        "name": name,
        "type": f"{space}/{kind}",
        "kind": "app",
        "location": DISPLAY_LOCATIONS.get(resource.location, resource.location),
        **_identity(world, resource.system, resource.users),
        "properties": {},
    }


def _identity(
    world: World, system: Identity | None, users: tuple[Identity, ...], with_principals: bool = True
) -> dict[str, Json]:
    """The `identity` member; empty if the resource has no identity."""
    kinds = [kind for kind, present in (("SystemAssigned", system), ("UserAssigned", users)) if present]
    block: Json = {"type": ", ".join(kinds)}
    if system is not None:
        block |= {"principalId": system.principal_id, "tenantId": world.tenant_id}
    if users:
        block["userAssignedIdentities"] = {
            user.resource_id: {"principalId": user.principal_id, "clientId": user.client_id} if with_principals else {}
            for user in users
        }
    return {"identity": block} if kinds else {}


IN_GROUP: Final = "/arm/subscriptions/{subscription}/resourceGroups/{group}/providers"

ROUTES: Final = (
    Route("GET", "/arm/subscriptions/{subscription}", read_subscription),
    Route("GET", "/arm/subscriptions/{subscription}/providers/{namespace}", read_provider),
    Route("GET", f"{IN_GROUP}/{USER_IDENTITY}", list_identities),
    Route("GET", f"{IN_GROUP}/{{rest...}}", read_resource),
)
