"""The table of features and the provider permissions that each of them needs."""

from __future__ import annotations

from enum import Enum
from typing import Final

from attrs import frozen

from ..mounts.table import AUTH, SECRET


class Api(Enum):
    """Which of the provider's interfaces a permission is for."""

    DIRECTORY = "directory"
    """Application permissions (app roles), which an administrator consents to."""
    RESOURCES = "resource manager"
    """Actions, which a role assignment grants at a scope."""


@frozen
class Need:
    """A permission: any one of these names is enough. The first has the least rights."""

    api: Api
    any_of: tuple[str, ...]


@frozen(kw_only=True)
class Feature:
    """A row of the table. `kind` is that of the mount."""

    kind: str
    name: str
    needs: tuple[Need, ...]
    doc: str


def _directory(*names: str) -> Need:
    return Need(Api.DIRECTORY, names)


def _action(name: str) -> Need:
    return Need(Api.RESOURCES, (name,))


READ_APPLICATIONS: Final = _directory(
    "Application.Read.All", "Application.ReadWrite.OwnedBy", "Application.ReadWrite.All", "Directory.Read.All"
)
READ_GROUPS: Final = _directory(
    "GroupMember.Read.All",
    "GroupMember.ReadWrite.All",
    "Group.Read.All",
    "Group.ReadWrite.All",
    "Directory.Read.All",
)
WRITE_OWN_APPLICATIONS: Final = _directory("Application.ReadWrite.OwnedBy", "Application.ReadWrite.All")
WRITE_ANY_APPLICATION: Final = _directory("Application.ReadWrite.All")
ROTATE: Final = "rotate-root, scheduled rotation"

FEATURES: Final = (
    Feature(
        kind=AUTH,
        name="login with any token",
        needs=(),
        doc="The tenant's signing keys are public. Roles that bind only principals or groups need no credential.",
    ),
    Feature(
        kind=AUTH,
        name="roles that bind resources: virtual machines",
        needs=(
            _action("Microsoft.Compute/virtualMachines/read"),
            _action("Microsoft.ManagedIdentity/userAssignedIdentities/read"),
        ),
        doc="The machine, its location, its scale set and its identities, in every bound subscription.",
    ),
    Feature(
        kind=AUTH,
        name="roles that bind resources: scale sets",
        needs=(
            _action("Microsoft.Compute/virtualMachineScaleSets/read"),
            _action("Microsoft.ManagedIdentity/userAssignedIdentities/read"),
        ),
        doc="The scale set and its identities.",
    ),
    Feature(
        kind=AUTH,
        name="roles that bind resources: other resources",
        needs=(_action("Microsoft.Resources/subscriptions/providers/read"),),
        doc="The versions of the resource type's interface; and `<provider>/<type>/read` for each type that logs in.",
    ),
    Feature(
        kind=AUTH,
        name="bound_group_ids of principals in more groups than a token holds",
        needs=(READ_APPLICATIONS, READ_GROUPS),
        doc="The directory is asked for the principal's groups.",
    ),
    Feature(
        kind=AUTH,
        name=ROTATE,
        needs=(WRITE_OWN_APPLICATIONS,),
        doc="With `OwnedBy`, the application must be among its own owners.",
    ),
    Feature(
        kind=SECRET,
        name="roles with azure_roles",
        needs=(
            WRITE_OWN_APPLICATIONS,
            _action("Microsoft.Authorization/roleDefinitions/read"),
            _action("Microsoft.Authorization/roleAssignments/write"),
            _action("Microsoft.Authorization/roleAssignments/delete"),
        ),
        doc="Applications and principals are made and removed, and assigned at the scopes of the role.",
    ),
    Feature(
        kind=SECRET,
        name="roles with azure_groups",
        needs=(
            WRITE_OWN_APPLICATIONS,
            _directory("GroupMember.ReadWrite.All", "Group.ReadWrite.All", "Directory.ReadWrite.All"),
        ),
        doc="Principals become members of groups.",
    ),
    Feature(
        kind=SECRET,
        name="roles with application_object_id",
        needs=(WRITE_ANY_APPLICATION,),
        doc="Passwords are added to an application. `Application.ReadWrite.OwnedBy` is enough if we own it.",
    ),
    Feature(
        kind=SECRET,
        name="permanently_delete",
        needs=(WRITE_OWN_APPLICATIONS,),
        doc="Deleted applications and principals are removed for good.",
    ),
    Feature(
        kind=SECRET,
        name="reconcile",
        needs=(READ_APPLICATIONS,),
        doc="Applications and principals are listed; a repair needs what made them.",
    ),
    Feature(
        kind=SECRET,
        name=ROTATE,
        needs=(WRITE_OWN_APPLICATIONS,),
        doc="With `OwnedBy`, the application must be among its own owners.",
    ),
)


def features_of(kind: str) -> tuple[Feature, ...]:
    """The features of a kind of mount."""
    return tuple(feature for feature in FEATURES if feature.kind == kind)
