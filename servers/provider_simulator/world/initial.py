"""The initial world: a machine of every kind, and some that are easily confused."""

from __future__ import annotations

from typing import Final

import msgspec

from .access import permit
from .provisioning import MachineRequest, WantedIdentities, create_machine
from .roles import AMBIGUOUS, BUILT_IN, RoleDefinition
from .world import World

SERVICE: Final = "cloudid-service"
APPLICATIONS: Final = (SERVICE, "reporting")
"""The first one is for the service under test and may read and change everything; the other has no rights."""

GROUPS: Final = ("all-machines", "web-machines", "batch-machines", "cloud-admins")
NESTED: Final = {"all-machines": ("web-machines", "batch-machines")}
SECRET_LIFETIME: Final = 180 * 86_400.0

WORKER: Final = WantedIdentities(False, ("worker",))
MACHINES: Final = (
    # One of each shape of identity.
    MachineRequest("vm-system", groups=("batch-machines",)),
    MachineRequest("vm-user", identities=WantedIdentities(False, ("vm-user-identity",))),
    MachineRequest("vm-both", identities=WantedIdentities(True, ("vm-both-identity",))),
    MachineRequest("vm-many", identities=WantedIdentities(False, ("many-a", "many-b", "many-c"))),
    MachineRequest("vm-bare", identities=WantedIdentities(False)),
    # One identity on two machines: its principal does not tell them apart.
    MachineRequest("worker-1", resource_group="batch", identities=WORKER, groups=("batch-machines",)),
    MachineRequest("worker-2", resource_group="batch", identities=WORKER),
    # Scale sets, and something that is no virtual machine.
    MachineRequest("fleet-uniform", "vmss_uniform", resource_group="fleets"),
    MachineRequest("fleet-flexible", "vmss_flexible", resource_group="fleets"),
    MachineRequest("shop", "resource", resource_group="sites", location="westeurope"),
    # Names that begin alike, and one name in two groups and two subscriptions.
    MachineRequest("web", resource_group="prod", location="westeurope", groups=("web-machines",)),
    MachineRequest("web2", resource_group="prod", location="westeurope"),
    MachineRequest("web-evil", resource_group="prod-evil", resource_name="web"),
)
ABROAD: Final = MachineRequest("web-abroad", resource_group="prod", resource_name="web")
"""In the second subscription."""


def populate(world: World) -> None:
    """Fill a cleared world."""
    world.subscriptions += [world.randomness.guid("subscription"), world.randomness.guid("subscription")]
    directory = world.directory
    for name in APPLICATIONS:
        application = directory.add_application(name)
        principal = directory.add_principal(name, "Application", application)
        directory.add_password(application, "first", world.now(), world.now() + SECRET_LIFETIME)
        if name == SERVICE:
            permit(world, principal.id, reading=True, writing=True)
    for group in GROUPS:
        directory.group(group)
    for outer, inner in NESTED.items():
        for name in inner:
            directory.join(directory.group(outer), directory.group(name).id)
    first, second = (f"/subscriptions/{subscription}" for subscription in world.subscriptions)
    for definition in (
        *BUILT_IN,
        RoleDefinition(world.randomness.guid("role"), AMBIGUOUS, ("*/read",), (), (first,)),
        RoleDefinition(world.randomness.guid("role"), AMBIGUOUS, ("*",), (), (first, second)),
    ):
        world.role_definitions[definition.guid] = definition
    for request in MACHINES:
        create_machine(world, request)
    create_machine(world, msgspec.structs.replace(ABROAD, subscription=world.subscriptions[1]))
