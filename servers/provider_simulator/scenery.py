"""Scenery: the world as it is at first, with a machine of every kind and some that are easily confused."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from .definitions import AMBIGUOUS, BUILT_IN, RoleDefinition
from .machines import Order, create
from .world import World

SERVICE: Final = "cloudid-service"
APPLICATIONS: Final = (SERVICE, "reporting")
"""The first one is the service's own, which may read and change everything; the other may nothing."""

GROUPS: Final = ("all-machines", "web-machines", "batch-machines", "cloud-admins")
NESTED: Final = {"all-machines": ("web-machines", "batch-machines")}
SECRET_LIFETIME: Final = 180 * 86_400.0

MACHINES: Final = (
    # One of each shape of identity.
    Order("vm-system", groups=("batch-machines",)),
    Order("vm-user", system_assigned=False, user_assigned=("vm-user-identity",)),
    Order("vm-both", user_assigned=("vm-both-identity",)),
    Order("vm-many", system_assigned=False, user_assigned=("many-a", "many-b", "many-c")),
    Order("vm-bare", system_assigned=False),
    # One identity on two machines: its principal does not tell them apart.
    Order(
        "worker-1", resource_group="batch", system_assigned=False, user_assigned=("worker",), groups=("batch-machines",)
    ),
    Order("worker-2", resource_group="batch", system_assigned=False, user_assigned=("worker",)),
    # Scale sets, and something that is no virtual machine.
    Order("fleet-uniform", "vmss_uniform", resource_group="fleets"),
    Order("fleet-flexible", "vmss_flexible", resource_group="fleets"),
    Order("shop", "resource", resource_group="sites", location="westeurope"),
    # Names that begin alike, and one name in two groups and two subscriptions.
    Order("web", resource_group="prod", location="westeurope", groups=("web-machines",)),
    Order("web2", resource_group="prod", location="westeurope"),
    Order("web-evil", resource_group="prod-evil", resource_name="web"),
)
ABROAD: Final = Order("web-abroad", resource_group="prod", resource_name="web")
"""In the second subscription."""


def furnish(world: World) -> None:
    """Fill a cleared world."""
    world.subscriptions += [world.dice.guid("subscription"), world.dice.guid("subscription")]
    directory = world.directory
    for name in APPLICATIONS:
        application = directory.add_application(name)
        principal = directory.add_principal(name, "Application", application)
        directory.add_password(application, "first", world.now(), world.now() + SECRET_LIFETIME)
        if name == SERVICE:
            world.readers.add(principal.id)
            world.writers.add(principal.id)
    for group in GROUPS:
        directory.group(group)
    for outer, inner in NESTED.items():
        for name in inner:
            directory.join(directory.group(outer), directory.group(name).id)
    _define_roles(world)
    for order in MACHINES:
        create(world, order)
    create(world, evolve(ABROAD, subscription=world.subscriptions[1]))


def _define_roles(world: World) -> None:
    first, second = (f"/subscriptions/{subscription}" for subscription in world.subscriptions)
    for definition in (
        *BUILT_IN,
        RoleDefinition(world.dice.guid("role"), AMBIGUOUS, ("*/read",), (), (first,)),
        RoleDefinition(world.dice.guid("role"), AMBIGUOUS, ("*",), (), (first, second)),
    ):
        world.role_definitions[definition.guid] = definition
