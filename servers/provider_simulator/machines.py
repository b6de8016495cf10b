"""Machines: virtual machines, scale sets, other resources that have an identity, and how they come and go.

    kind           what a login names (`resource_id`)      what its tokens name (`claimed_id`)
    vm             the machine                             the machine
    vmss_uniform   the scale set                           the scale set
    vmss_flexible  the scale set                           the instance, a machine called `SET_xxxxxxxx`
    resource       the resource                            the resource

All instances of a uniform set share its identities; those of a flexible set share its user-assigned ones, and each may
have one that the system assigned.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from .objects import Value
from .routing import Refusal
from .world import Identity, World

VIRTUAL_MACHINE: Final = "Microsoft.Compute/virtualMachines"
SCALE_SET: Final = "Microsoft.Compute/virtualMachineScaleSets"
USER_IDENTITY: Final = "Microsoft.ManagedIdentity/userAssignedIdentities"
WEB_SITE: Final = "Microsoft.Web/sites"

KINDS: Final = ("vm", "vmss_uniform", "vmss_flexible", "resource")
IDENTITIES_GROUP: Final = "identities"
NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?")
GROUP_NAME: Final = re.compile(r"[\w().-]{0,89}[\w()-]")
RESOURCE_TYPE: Final = re.compile(r"[A-Za-z0-9.]{1,60}/[A-Za-z0-9]{1,60}")


@frozen
class ScaleSet(Value):
    """A scale set, uniform or flexible."""

    name: str
    kind: str
    subscription: str
    resource_group: str
    location: str
    resource_id: str
    system: Identity | None
    users: tuple[Identity, ...]


@frozen
class Machine(Value):
    """Something that runs, has identities, and is reached under its unique `name`."""

    name: str
    kind: str
    subscription: str
    resource_group: str
    location: str
    resource_id: str
    instance_id: str
    vm_id: str
    system: Identity | None
    users: tuple[Identity, ...]
    scale_set: ScaleSet | None = None

    @property
    def claimed_id(self) -> str:
        return self.resource_id if self.kind == "vmss_uniform" else self.instance_id

    @property
    def instance_name(self) -> str:
        """The name within its resource group; for a uniform set that of the set and a number."""
        last = self.instance_id.rpartition("/")[2]
        return f"{self.scale_set.name}_{last}" if self.scale_set and self.kind == "vmss_uniform" else last

    @property
    def identities(self) -> tuple[Identity, ...]:
        return self.users if self.system is None else (self.system, *self.users)


@frozen
class Order(Value):
    """A machine to be made. `resource_name` differs from `name` where two groups hold machines of one name."""

    name: str
    kind: str = "vm"
    subscription: str | None = None
    resource_group: str = "machines"
    location: str = "westus2"
    resource_name: str | None = None
    resource_type: str = WEB_SITE
    scale_set: str | None = None
    system_assigned: bool | None = None
    user_assigned: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()
    reader: bool = False


def resource_id(subscription: str, group: str, kind: str, name: str) -> str:
    return f"/subscriptions/{subscription}/resourceGroups/{group}/providers/{kind}/{name}"


def create(world: World, order: Order) -> Machine:
    """Make the machine, and the group, scale set and identities that it needs and that are not there yet."""
    _check(world, order)
    subscription = order.subscription or world.subscriptions[0]
    world.resource_groups.setdefault((subscription, order.resource_group.lower()), order.resource_group)
    name = order.resource_name or order.name
    scale_set = None
    if order.kind in ("vmss_uniform", "vmss_flexible"):
        scale_set = _scale_set(world, order, subscription)
        own_id, instance_id = scale_set.resource_id, _instance_id(world, scale_set)
    else:
        kind = VIRTUAL_MACHINE if order.kind == "vm" else order.resource_type
        own_id = instance_id = resource_id(subscription, order.resource_group, kind, name)
    if instance_id.lower() in world.resources:
        raise Refusal(409, "Conflict", f"There is {instance_id} already.")
    if scale_set and scale_set.kind == "vmss_uniform":
        system, users = scale_set.system, scale_set.users
    else:
        users = (
            scale_set.users if scale_set else _user_identities(world, order.user_assigned or (), subscription, order)
        )
        system = _system_identity(world, name, instance_id, order) if _wants_system(order) else None
    machine = Machine(
        name=order.name,
        kind=order.kind,
        subscription=subscription,
        resource_group=order.resource_group,
        location=order.location,
        resource_id=own_id,
        instance_id=instance_id,
        vm_id=world.dice.guid(f"machine {order.name}"),
        system=system,
        users=users,
        scale_set=scale_set,
    )
    world.machines[order.name.lower()] = world.resources[instance_id.lower()] = machine
    for identity in machine.identities:
        for group in order.groups:
            world.directory.join(world.directory.group(group), identity.principal_id)
        if order.reader:
            world.readers.add(identity.principal_id)
    return machine


def remove(world: World, name: str) -> None:
    """Remove the machine, its system-assigned identity, and its scale set when that was its last instance."""
    machine = world.machines.pop(name.lower(), None)
    if machine is None:
        raise Refusal(404, "MachineNotFound", "There is no machine of that name.")
    del world.resources[machine.instance_id.lower()]
    scale_set = machine.scale_set
    last_of_set = scale_set is not None and all(other.scale_set is not scale_set for other in world.machines.values())
    if scale_set is not None and last_of_set:
        del world.resources[scale_set.resource_id.lower()]
        del world.scale_sets[scale_set.name.lower()]
    if machine.system is not None and (machine.kind != "vmss_uniform" or last_of_set):
        world.readers.discard(machine.system.principal_id)
        principal = world.directory.principals.get(machine.system.principal_id)
        if principal is not None:
            world.directory.forget_principal(principal)


def _check(world: World, order: Order) -> None:
    names = (order.name, order.resource_name, order.scale_set, *(order.user_assigned or ()))
    if any(name is not None and not NAME.fullmatch(name) for name in names):
        raise Refusal(400, "InvalidName", "Names have 1 to 80 letters, digits, '.', '-' or '_'.")
    if not GROUP_NAME.fullmatch(order.resource_group):
        raise Refusal(400, "InvalidName", "That is not the name of a resource group.")
    if not RESOURCE_TYPE.fullmatch(order.resource_type):
        raise Refusal(400, "InvalidType", "A resource type looks like Microsoft.Web/sites.")
    if order.kind not in KINDS:
        raise Refusal(400, "InvalidKind", f"'kind' must be one of {', '.join(KINDS)}.")
    if order.subscription is not None and order.subscription not in world.subscriptions:
        raise Refusal(400, "InvalidSubscription", "There is no such subscription.")
    if order.name.lower() in world.machines:
        raise Refusal(409, "Conflict", "There is a machine of that name already.")


def _wants_system(order: Order) -> bool:
    """By default a machine has an identity that the system assigned, but an instance of a flexible set has not."""
    return order.kind != "vmss_flexible" if order.system_assigned is None else order.system_assigned


def _scale_set(world: World, order: Order, subscription: str) -> ScaleSet:
    name = order.scale_set or order.name
    existing = world.scale_sets.get(name.lower())
    if existing is not None:
        place = (order.kind, subscription, order.resource_group.lower(), order.location)
        if (existing.kind, existing.subscription, existing.resource_group.lower(), existing.location) != place:
            raise Refusal(409, "Conflict", "There is a scale set of that name that differs in kind or place.")
        if order.user_assigned is not None or (order.kind == "vmss_uniform" and order.system_assigned is not None):
            raise Refusal(400, "BadRequest", "The scale set is there already, and its identities are shared.")
        return existing
    set_id = resource_id(subscription, order.resource_group, SCALE_SET, name)
    flexible = order.kind == "vmss_flexible"
    default_users = (f"{name}-identity",) if flexible else ()
    scale_set = ScaleSet(
        name=name,
        kind=order.kind,
        subscription=subscription,
        resource_group=order.resource_group,
        location=order.location,
        resource_id=set_id,
        system=_system_identity(world, name, set_id, order) if _wants_system(order) and not flexible else None,
        users=_user_identities(
            world, default_users if order.user_assigned is None else order.user_assigned, subscription, order
        ),
    )
    world.scale_sets[name.lower()] = world.resources[set_id.lower()] = scale_set
    return scale_set


def _instance_id(world: World, scale_set: ScaleSet) -> str:
    if scale_set.kind == "vmss_uniform":
        world.instances_made[scale_set.name] += 1
        return f"{scale_set.resource_id}/virtualMachines/{world.instances_made[scale_set.name] - 1}"
    name = f"{scale_set.name}_{world.dice.roll(f'instance of {scale_set.name}', 4).hex()}"
    return resource_id(scale_set.subscription, scale_set.resource_group, VIRTUAL_MACHINE, name)


def _system_identity(world: World, name: str, of: str, order: Order) -> Identity:
    principal = world.directory.add_principal(name, "ManagedIdentity")
    return Identity(name, of, principal.id, principal.client_id, order.location)


def _user_identities(world: World, names: tuple[str, ...], subscription: str, order: Order) -> tuple[Identity, ...]:
    return tuple(_user_identity(world, name, subscription, order.location) for name in dict.fromkeys(names))


def _user_identity(world: World, name: str, subscription: str, location: str) -> Identity:
    """The identity of that name. One name means one identity, whoever uses it."""
    existing = world.identities.get(name.lower())
    if existing is not None:
        return existing
    principal = world.directory.add_principal(name, "ManagedIdentity")
    world.resource_groups.setdefault((subscription, IDENTITIES_GROUP), IDENTITIES_GROUP)
    own_id = resource_id(subscription, IDENTITIES_GROUP, USER_IDENTITY, name)
    identity = Identity(name, own_id, principal.id, principal.client_id, location)
    world.identities[name.lower()] = world.resources[own_id.lower()] = identity
    return identity
