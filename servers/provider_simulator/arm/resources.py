"""Resources: machines, scale sets and their instances, managed identities, and resources of any other type."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from cloudid_core.effects import HttpResponse

from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Route
from ..world.machines import (
    SCALE_SET,
    USER_IDENTITY,
    VIRTUAL_MACHINE,
    HasIdentities,
    Identity,
    Machine,
    Resource,
    ScaleSet,
)
from ..world.world import World
from .conventions import folded, headers, list_items, require_place
from .hierarchy import DISPLAY_LOCATIONS, TYPE_VERSIONS

not_found: Final = partial(Refusal, 404, "ResourceNotFound", "The resource was not found in its resource group.")
unknown_type: Final = partial(
    Refusal, 404, "InvalidResourceType", "The resource type could not be found in the namespace for api version."
)
OTHERS: Final = ("microsoft.network", "microsoft.storage", "microsoft.keyvault", "microsoft.sql", "microsoft.resources")
"""Namespaces that have types without resources here."""
GROUP: Final = re.compile("/resourcegroups/[^/]+")
SKU: Final = {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": 1}
NAMED_GROUP: Final = re.compile("(/resourcegroups/)([^/]+)", re.IGNORECASE)
RUNNING: Final = "running"
POWER: Final = {"start": RUNNING, "powerOff": "stopped", "deallocate": "deallocated"}
"""What each action makes of a virtual machine. It exists all the while, with its identities."""


def list_all(world: World, call: Call) -> Json:
    """All resources of a resource group or subscription; instances of uniform sets are not listed."""
    require_place(world, call.names)
    folder = _path(call).removesuffix("resources")
    found = (_own(resource) for own_id, resource in world.resources.items() if own_id.startswith(folder))
    return list_items(world, call, [own for own in found if own["type"] != f"{SCALE_SET}/virtualMachines"])


def list_resources(world: World, call: Call) -> Json:
    """All resources of the type that the path ends in, in its resource group or subscription.

    Below a uniform scale set its instances; those of a flexible one are virtual machines of the resource group.
    """
    require_place(world, call.names)
    path = _path(call)
    if "set" in call.names and not isinstance(world.resources.get(path.rpartition("/")[0]), ScaleSet):
        raise not_found()
    folders = ((own_id.rpartition("/")[0], resource) for own_id, resource in world.resources.items())
    if "group" in call.names:
        return list_items(world, call, [_show(world, call, each) for folder, each in folders if folder == path])
    found = [_show(world, call, each) for folder, each in folders if GROUP.sub("", folder) == path]
    return list_items(world, call, [{**each, "id": _in_capitals(each["id"])} for each in found])


def _in_capitals(own_id: str) -> str:
    """A resource id as lists of a subscription often show it: the name of its group in capitals."""
    return NAMED_GROUP.sub(lambda match: match[1] + match[2].upper(), own_id)


def change_power(world: World, call: Call) -> HttpResponse:
    """Do what the path ends in to a virtual machine, or to an instance of a uniform scale set: at once, without 202."""
    machine, action = _virtual_machine(world, call), _path(call).rpartition("/")[2]
    world.power[machine.instance_id] = next(state for name, state in POWER.items() if name.lower() == action)
    return HttpResponse(200, headers(world, call))


def _path(call: Call) -> str:
    return call.path.removeprefix("/arm").lower()


def _virtual_machine(world: World, call: Call) -> Machine:
    """The machine of a path that says behind it what is asked of it."""
    require_place(world, call.names)
    machine = world.resources.get(_path(call).rpartition("/")[0])
    if not isinstance(machine, Machine) or machine.kind == "resource":
        raise not_found()
    return machine


def _instance_view(world: World, machine: Machine) -> Json:
    """The state of a virtual machine, or of an instance of a uniform scale set."""
    state = world.power.get(machine.instance_id, RUNNING)
    return {"statuses": [{"code": f"PowerState/{state}", "level": "Info", "displayStatus": f"VM {state}"}]}


def read_system_identity(world: World, call: Call) -> Json:
    found = world.resources.get(call.names["resource"].lower())
    system = None if found is None or isinstance(found, Identity) else found.system
    if system is None:
        raise not_found()
    path = f"{system.resource_id}/providers/Microsoft.ManagedIdentity/identities/default"
    own = {"id": path, "name": "default", "type": "Microsoft.ManagedIdentity/identities"}
    return _show(world, call, system) | own


def read_resource(world: World, call: Call) -> Json:
    """The resource of this id, of any type."""
    require_place(world, call.names)
    if found := world.resources.get(_path(call)):
        return _show(world, call, found)
    raise not_found() if _is_known(call.names["rest"]) else unknown_type()


def _is_known(path: str) -> bool:
    """Whether a type of resource exists, or may exist: of most namespaces all types are taken as such."""
    namespace = path.split("/")[0].lower()
    return namespace in {name.split("/")[0].lower() for name in TYPE_VERSIONS} or namespace.startswith(OTHERS)


def _own(resource: Resource) -> Json:
    """What is shown of a resource of any kind."""
    own_id = resource.instance_id if isinstance(resource, Machine) else resource.resource_id
    kinds = own_id.rpartition("/providers/")[2].split("/")
    name = resource.instance_name if isinstance(resource, Machine) else kinds[-1]
    return {"id": own_id, "name": name, "type": "/".join((kinds[0], *kinds[1::2])), "location": resource.location}


def _show(world: World, call: Call, found: Resource) -> Json:
    own = _own(found)
    if isinstance(found, Identity):
        ids = {"tenantId": world.tenant_id, "principalId": found.principal_id, "clientId": found.client_id}
        return {**own, "id": folded(own["id"]), "type": USER_IDENTITY, "tags": {}, "properties": ids}
    if isinstance(found, ScaleSet):
        uniform = found.kind == "vmss_uniform"
        mode = {"orchestrationMode": "Uniform" if uniform else "Flexible", "provisioningState": "Succeeded"}
        # A flexible set does not show the principals of its identities; each identity has to be read for that.
        more: Json = {"properties": mode, **({"sku": SKU} if uniform else {})}
        return {**own, "tags": {}, **_identity(world, found, with_principals=uniform), **more}
    if found.kind == "resource":
        versions = TYPE_VERSIONS.get(own["type"])
        if versions and call.query["api-version"] not in versions:
            raise Refusal(400, "NoRegisteredProviderFound", "No resource provider is registered for this api-version.")
        shown = {"kind": "app", "location": DISPLAY_LOCATIONS.get(found.location, found.location)}
        return {**own, **shown, **_identity(world, found), "properties": {}}
    properties: Json = {"vmId": found.vm_id, "provisioningState": "Succeeded"}
    if found.kind == "vmss_flexible" and found.scale_set:
        properties["virtualMachineScaleSet"] = {"id": found.scale_set.resource_id}
    if call.query.get("$expand", "").lower() == "instanceview":
        properties["instanceView"] = _instance_view(world, found)
    number = found.instance_id.rpartition("/")[2]
    instance: Json = {"instanceId": number, "sku": SKU} if found.kind == "vmss_uniform" else {}
    return {**own, **instance, "tags": {}, **_identity(world, found), "properties": properties}


def _identity(world: World, of: HasIdentities, with_principals: bool = True) -> Json:
    """The `identity` member; empty if the resource has no identity."""
    kinds = [kind for kind, present in (("SystemAssigned", of.system), ("UserAssigned", of.users)) if present]
    block: Json = {"type": ", ".join(kinds)}
    if of.system is not None:
        block |= {"principalId": of.system.principal_id, "tenantId": world.tenant_id}
    if of.users:
        block["userAssignedIdentities"] = {
            folded(user.resource_id): {"principalId": user.principal_id, "clientId": user.client_id}
            if with_principals
            else {}
            for user in of.users
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
    Route("GET", INSTANCES, list_resources),
    *(
        Route("GET", f"{each}/instanceView", lambda world, call: _instance_view(world, _virtual_machine(world, call)))
        for each in MACHINES
    ),
    *(Route("POST", f"{each}/{action}", change_power) for each in MACHINES for action in POWER),
    Route("GET", "/arm{resource...}/providers/Microsoft.ManagedIdentity/identities/default", read_system_identity),
    Route("GET", f"{IN_GROUP}/{{rest...}}", read_resource),
)
