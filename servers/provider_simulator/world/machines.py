"""Machines: virtual machines, scale sets and other resources that have managed identities.

    kind           what a login names (`resource_id`)      what its tokens name (`claimed_id`)
    vm             the machine                             the machine
    vmss_uniform   the scale set                           the scale set
    vmss_flexible  the scale set                           the instance, a machine called `SET_xxxxxxxx`
    resource       the resource                            the resource

All instances of a uniform set share its identities; those of a flexible set share its user-assigned ones, and each may
have one that the system assigned.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from attrs import field, frozen

from ..engine import Immutable

VIRTUAL_MACHINE: Final = "Microsoft.Compute/virtualMachines"
SCALE_SET: Final = "Microsoft.Compute/virtualMachineScaleSets"
USER_IDENTITY: Final = "Microsoft.ManagedIdentity/userAssignedIdentities"
WEB_SITE: Final = "Microsoft.Web/sites"


@frozen
class Identity(Immutable):
    """A managed identity. The resource id of a system-assigned one is its machine's."""

    name: str
    resource_id: str
    principal_id: str
    client_id: str
    location: str


@frozen
class HasIdentities(Immutable):
    name: str
    kind: str
    subscription: str
    resource_group: str
    location: str
    resource_id: str
    system: Identity | None
    users: tuple[Identity, ...]


@frozen
class ScaleSet(HasIdentities):
    """A scale set, uniform or flexible."""


@frozen
class Machine(HasIdentities):
    """A resource with identities and a metadata service, which is reached by its unique `name`."""

    instance_id: str
    vm_id: str
    platform_secret: str = field(repr=False)
    """What App Service gives its processes in `IDENTITY_HEADER`, and what Arc's agent writes into its key file."""
    arc_key_file: str
    """Where Arc's agent says that its key is."""
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


Resource: TypeAlias = Machine | ScaleSet | Identity


def resource_id(subscription: str, group: str, kind: str, name: str) -> str:
    return f"/subscriptions/{subscription}/resourceGroups/{group}/providers/{kind}/{name}"
