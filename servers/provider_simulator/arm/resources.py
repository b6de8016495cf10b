"""Resources: machines, scale sets and their instances, managed identities, and resources of any other type."""

from __future__ import annotations

from typing import Final

from cloudid_core.effects import HttpResponse

from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Route
from ..world.machines import SCALE_SET, USER_IDENTITY, VIRTUAL_MACHINE, Identity, Machine, Resource, ScaleSet
from ..world.world import World
from .conventions import answer, headers, list_items, require_place
from .providers import DISPLAY_LOCATIONS, TYPE_VERSIONS

RUNNING: Final = "running"
POWER: Final = {"start": RUNNING, "powerOff": "stopped", "deallocate": "deallocated"}
"""What each action makes of a virtual machine. It exists all the while, with its identities."""


def list_all(world: World, call: Call) -> HttpResponse:
    """All resources of a resource group or subscription; instances of uniform sets are not listed."""
    require_place(world, call.names["subscription"], call.names.get("group"))
    folder = call.path.removeprefix("/arm").lower().removesuffix("resources")
    found = (resource for own_id, resource in world.resources.items() if own_id.startswith(folder))
    return list_items(world, call, [_summary(each) for each in found if not _is_uniform_instance(each)])


def _is_uniform_instance(resource: Resource) -> bool:
    return isinstance(resource, Machine) and resource.kind == "vmss_uniform"


def _summary(resource: Resource) -> Json:
    own_id = resource.instance_id if isinstance(resource, Machine) else resource.resource_id
    space, kind, name = own_id.split("/")[-3:]
    return {"id": own_id, "name": name, "type": f"{space}/{kind}", "location": resource.location}


def list_resources(world: World, call: Call) -> HttpResponse:
    """All resources of the type that the path ends in, in its resource group or subscription."""
    require_place(world, call.names["subscription"], call.names.get("group"))
    folder, _, rest = call.path.removeprefix("/arm").lower().partition("/providers/")
    found = (
        resource
        for own_id, resource in world.resources.items()
        if own_id.startswith(f"{folder}/") and own_id.partition("/providers/")[2].rpartition("/")[0] == rest
    )
    return list_items(world, call, [_show(world, call, resource) for resource in found])


def list_instances(world: World, call: Call) -> HttpResponse:
    """The instances of a uniform scale set; those of a flexible one are virtual machines of the resource group."""
    require_place(world, call.names["subscription"], call.names["group"])
    set_id = call.path.removeprefix("/arm").lower().removesuffix("/virtualmachines")
    if not isinstance(world.resources.get(set_id), ScaleSet):
        raise not_found()
    found = (machine for machine in world.machines.values() if machine.instance_id.lower().startswith(f"{set_id}/"))
    return list_items(world, call, [_show(world, call, machine) for machine in found])


def read_instance_view(world: World, call: Call) -> HttpResponse:
    """The state of a virtual machine, or of an instance of a uniform scale set."""
    return answer(world, _instance_view(world, _virtual_machine(world, call)))


def change_power(world: World, call: Call) -> HttpResponse:
    """Do what the path ends in to a virtual machine, or to an instance of a uniform scale set: at once, without 202."""
    machine = _virtual_machine(world, call)
    states = {action.lower(): state for action, state in POWER.items()}
    world.power[machine.instance_id] = states[call.path.lower().rpartition("/")[2]]
    return HttpResponse(200, headers(world))


def _virtual_machine(world: World, call: Call) -> Machine:
    """The machine of a path that says behind it what is asked of it."""
    require_place(world, call.names["subscription"], call.names["group"])
    machine = world.resources.get(call.path.removeprefix("/arm").lower().rpartition("/")[0])
    if not isinstance(machine, Machine) or machine.kind == "resource":
        raise not_found()
    return machine


def _instance_view(world: World, machine: Machine) -> Json:
    state = world.power.get(machine.instance_id, RUNNING)
    return {"statuses": [{"code": f"PowerState/{state}", "level": "Info", "displayStatus": f"VM {state}"}]}


def read_system_identity(world: World, call: Call) -> HttpResponse:
    """The system-assigned identity of a resource."""
    own_id = call.names["resource"].lower()
    found = world.resources.get(own_id)
    system = None if found is None or isinstance(found, Identity) else found.system
    if system is None:
        raise not_found()
    shown = show_identity(world, system)
    path = f"{system.resource_id}/providers/Microsoft.ManagedIdentity/identities/default"
    return answer(world, {**shown, "id": path, "name": "default", "type": "Microsoft.ManagedIdentity/identities"})


def read_resource(world: World, call: Call) -> HttpResponse:
    """The resource of this id, of any type."""
    require_place(world, call.names["subscription"], call.names.get("group"))
    found = world.resources.get(call.path.removeprefix("/arm").lower())
    if found is None:
        raise not_found()
    return answer(world, _show(world, call, found))


def not_found() -> Refusal:
    return Refusal(404, "ResourceNotFound", "The resource was not found in its resource group.")


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
        properties["instanceView"] = _instance_view(world, machine)
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
    versions = TYPE_VERSIONS.get(f"{space}/{kind}")
    if versions and call.query["api-version"] not in versions:
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


LISTED: Final = (VIRTUAL_MACHINE, SCALE_SET, USER_IDENTITY)
IN_SUBSCRIPTION: Final = "/arm/subscriptions/{subscription}/providers"
IN_GROUP: Final = "/arm/subscriptions/{subscription}/resourceGroups/{group}/providers"
INSTANCES: Final = f"{IN_GROUP}/{SCALE_SET}/{{set}}/virtualMachines"
MACHINES: Final = (f"{INSTANCES}/{{number}}", f"{IN_GROUP}/{VIRTUAL_MACHINE}/{{name}}")

ROUTES: Final = (
    Route("GET", "/arm/subscriptions/{subscription}/resources", list_all),
    Route("GET", "/arm/subscriptions/{subscription}/resourceGroups/{group}/resources", list_all),
    *(Route("GET", f"{IN_SUBSCRIPTION}/{each}", list_resources) for each in LISTED),
    *(Route("GET", f"{IN_GROUP}/{each}", list_resources) for each in LISTED),
    Route("GET", INSTANCES, list_instances),
    *(Route("GET", f"{each}/instanceView", read_instance_view) for each in MACHINES),
    *(Route("POST", f"{each}/{action}", change_power) for each in MACHINES for action in POWER),
    Route("GET", "/arm{resource...}/providers/Microsoft.ManagedIdentity/identities/default", read_system_identity),
    Route("GET", f"{IN_GROUP}/{{rest...}}", read_resource),
)
