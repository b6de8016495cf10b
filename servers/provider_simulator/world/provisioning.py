"""Provisioning: how machines, with their scale sets and identities, are created and removed."""

from __future__ import annotations

import re
from typing import Final

from ..engine.requests import Refusal
from ..engine.shapes import Form, Name, Text
from .access import permit
from .machines import SCALE_SET, USER_IDENTITY, VIRTUAL_MACHINE, WEB_SITE, Identity, Machine, ScaleSet, resource_id
from .world import World

IN_SETS: Final = ("vmss_uniform", "vmss_flexible")
KINDS: Final = ("vm", *IN_SETS, "resource")
IDENTITIES_GROUP: Final = "identities"
ARC_KEYS: Final = "/var/opt/azcmagent/tokens"
"""The folder that Arc's agent writes keys into, on Linux."""
NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?")
GROUP_NAME: Final = re.compile(r"[\w().-]{0,89}[\w()-]")
RESOURCE_TYPE: Final = re.compile(r"[A-Za-z0-9.]{1,60}/[A-Za-z0-9]{1,60}")


class WantedIdentities(Form, frozen=True):
    """The names of user-assigned identities, and whether there is a system-assigned one. `None`: as is usual."""

    system_assigned: bool | None = None
    user_assigned: tuple[Name, ...] | None = None


class MachineRequest(Form, frozen=True):
    """A machine to create. `resource_name` differs from `name` if two groups hold machines of one name."""

    name: Text
    kind: Text = "vm"
    subscription: Text | None = None
    resource_group: Text = "machines"
    location: Text = "westus2"
    resource_name: Text | None = None
    resource_type: Text = WEB_SITE
    scale_set: Text | None = None
    identities: WantedIdentities = WantedIdentities()
    groups: tuple[Name, ...] = ()
    reader: bool = False
    arc_key_file: Text | None = None


def create_machine(world: World, request: MachineRequest) -> Machine:
    """Create the machine, and the resource group, scale set and identities that it needs and that do not exist."""
    _check(world, request)
    subscription = request.subscription or world.subscriptions[0]
    world.resource_groups.setdefault((subscription, request.resource_group.lower()), request.resource_group)
    name = request.resource_name or request.name
    scale_set = _scale_set(world, request, subscription) if request.kind in IN_SETS else None
    if scale_set:
        own_id, instance_id = scale_set.resource_id, _instance_id(world, scale_set)
    else:
        kind = VIRTUAL_MACHINE if request.kind == "vm" else request.resource_type
        own_id = instance_id = resource_id(subscription, request.resource_group, kind, name)
    if instance_id.lower() in world.resources:
        raise Refusal(409, "Conflict", f"{instance_id} already exists.")
    if scale_set:
        users = scale_set.users
    else:
        users = _user_identities(world, request.identities.user_assigned or (), subscription, request.location)
    if scale_set and scale_set.kind == "vmss_uniform":
        system = scale_set.system
    else:
        system = _system_identity(world, name, instance_id, request)
    machine = Machine(
        name=request.name,
        kind=request.kind,
        subscription=subscription,
        resource_group=request.resource_group,
        location=request.location,
        resource_id=own_id,
        instance_id=instance_id,
        vm_id=world.randomness.guid(f"machine {request.name}"),
        system=system,
        users=users,
        platform_secret=world.randomness.text(f"platform secret of {request.name}", 32),
        arc_key_file=request.arc_key_file or f"{ARC_KEYS}/{request.name}.key",
        scale_set=scale_set,
    )
    world.machines[request.name.lower()] = world.resources[instance_id.lower()] = machine
    for identity in machine.identities:
        for group in request.groups:
            world.directory.join(world.directory.group(group), identity.principal_id)
        if request.reader:
            permit(world, identity.principal_id, reading=True, writing=False)
    return machine


def remove_machine(world: World, name: str) -> None:
    """Remove the machine, its system-assigned identity, and its scale set if that has no other instance."""
    machine = world.machines.pop(name.lower(), None)
    if machine is None:
        raise Refusal(404, "MachineNotFound", "There is no machine of that name.")
    del world.resources[machine.instance_id.lower()]
    world.power.pop(machine.instance_id, None)
    scale_set = machine.scale_set
    last_of_set = scale_set is not None and all(other.scale_set is not scale_set for other in world.machines.values())
    if scale_set is not None and last_of_set:
        del world.resources[scale_set.resource_id.lower()]
        del world.scale_sets[scale_set.name.lower()]
    if machine.system is not None and (machine.kind != "vmss_uniform" or last_of_set):
        permit(world, machine.system.principal_id, reading=False, writing=False)
        principal = world.directory.principals.get(machine.system.principal_id)
        if principal is not None:
            world.directory.remove_principal(principal)


def _check(world: World, request: MachineRequest) -> None:
    names = (request.name, request.resource_name, request.scale_set, *(request.identities.user_assigned or ()))
    if any(name is not None and not NAME.fullmatch(name) for name in names):
        raise Refusal(400, "InvalidName", "Names have 1 to 80 letters, digits, '.', '-' or '_'.")
    if not GROUP_NAME.fullmatch(request.resource_group):
        raise Refusal(400, "InvalidName", "The name of the resource group is not valid.")
    if not RESOURCE_TYPE.fullmatch(request.resource_type):
        raise Refusal(400, "InvalidType", "A resource type looks like Microsoft.Web/sites.")
    if request.kind not in KINDS:
        raise Refusal(400, "InvalidKind", f"'kind' must be one of {', '.join(KINDS)}.")
    if request.subscription is not None and request.subscription not in world.subscriptions:
        raise Refusal(400, "InvalidSubscription", "There is no such subscription.")
    if request.name.lower() in world.machines:
        raise Refusal(409, "Conflict", "A machine of that name already exists.")


def _scale_set(world: World, request: MachineRequest, subscription: str) -> ScaleSet:
    name, flexible, wanted = request.scale_set or request.name, request.kind == "vmss_flexible", request.identities
    existing = world.scale_sets.get(name.lower())
    if existing is not None:
        place = (request.kind, subscription, request.resource_group.lower(), request.location)
        if (existing.kind, existing.subscription, existing.resource_group.lower(), existing.location) != place:
            raise Refusal(
                409, "Conflict", "A scale set of that name exists, of a different kind or in a different place."
            )
        if wanted.user_assigned is not None or (not flexible and wanted.system_assigned is not None):
            raise Refusal(400, "BadRequest", "The scale set already exists, and its instances share its identities.")
        return existing
    set_id = resource_id(subscription, request.resource_group, SCALE_SET, name)
    default_users = (f"{name}-identity",) if flexible else ()
    names = default_users if wanted.user_assigned is None else wanted.user_assigned
    scale_set = ScaleSet(
        name=name,
        kind=request.kind,
        subscription=subscription,
        resource_group=request.resource_group,
        location=request.location,
        resource_id=set_id,
        system=None if flexible else _system_identity(world, name, set_id, request),
        users=_user_identities(world, names, subscription, request.location),
    )
    world.scale_sets[name.lower()] = world.resources[set_id.lower()] = scale_set
    return scale_set


def _instance_id(world: World, scale_set: ScaleSet) -> str:
    if scale_set.kind == "vmss_uniform":
        world.instances_made[scale_set.name] += 1
        return f"{scale_set.resource_id}/virtualMachines/{world.instances_made[scale_set.name] - 1}"
    name = f"{scale_set.name}_{world.randomness.bytes(f'instance of {scale_set.name}', 4).hex()}"
    return resource_id(scale_set.subscription, scale_set.resource_group, VIRTUAL_MACHINE, name)


def _system_identity(world: World, name: str, of: str, request: MachineRequest) -> Identity | None:
    """By default a machine has a system-assigned identity, unless it is an instance of a flexible set."""
    wanted = request.identities.system_assigned
    if not (request.kind != "vmss_flexible" if wanted is None else wanted):
        return None
    principal = world.directory.add_principal(name, "ManagedIdentity")
    return Identity(name, of, principal.id, principal.client_id, request.location)


def _user_identities(world: World, names: tuple[str, ...], subscription: str, location: str) -> tuple[Identity, ...]:
    """The identities of these names, created where there are none: equal names mean the same identity."""
    found: dict[str, Identity] = {}
    for name in dict.fromkeys(names):
        if name.lower() not in world.identities:
            principal = world.directory.add_principal(name, "ManagedIdentity")
            world.resource_groups.setdefault((subscription, IDENTITIES_GROUP), IDENTITIES_GROUP)
            own_id = resource_id(subscription, IDENTITIES_GROUP, USER_IDENTITY, name)
            identity = Identity(name, own_id, principal.id, principal.client_id, location)
            world.identities[name.lower()] = world.resources[own_id.lower()] = identity
        found[name] = world.identities[name.lower()]
    return tuple(found.values())
