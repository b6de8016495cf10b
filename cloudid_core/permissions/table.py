"""The table of features and the Azure permissions that each of them needs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from attrs import frozen

from ..mounts import AUTH, SECRET


class Api(Enum):
    """The Azure API that a permission is for."""

    DIRECTORY = "directory"
    """Application permissions (app roles) of Microsoft Graph, to which an administrator consents."""
    RESOURCES = "resource manager"
    """Actions of Azure Resource Manager, which a role assignment grants at a scope."""


@frozen
class Need:
    """A permission: any one of these names is enough. The first has the least privileges."""

    api: Api
    any_of: tuple[str, ...]
    source: str
    """The page of Microsoft's documentation that describes them."""


@frozen(kw_only=True)
class Feature:
    """A row of the table."""

    name: str
    needs: tuple[Need, ...]
    doc: str


def _directory(page: str, *names: str) -> Need:
    return Need(Api.DIRECTORY, names, f"https://learn.microsoft.com/graph/api/{page}")


def _action(page: str, name: str) -> Need:
    return Need(
        Api.RESOURCES, (name,), f"https://learn.microsoft.com/azure/role-based-access-control/permissions/{page}"
    )


def _feature(name: str, doc: str, *needs: Need) -> Feature:
    return Feature(name=name, needs=needs, doc=doc)


COMPUTE: Final = "compute"
IDENTITY: Final = "identity"
MANAGEMENT: Final = "management-and-governance"
"""Pages about Azure Resource Manager's actions."""

READ_IDENTITIES: Final = _action(IDENTITY, "Microsoft.ManagedIdentity/userAssignedIdentities/read")
OWNED_OR_ALL: Final = ("Application.ReadWrite.OwnedBy", "Application.ReadWrite.All")
ADD_PASSWORDS: Final = _directory("application-addpassword", *OWNED_OR_ALL)
MAKE_APPLICATIONS: Final = _directory("application-post-applications", *OWNED_OR_ALL)
READ_PERMISSIONS: Final = _action(MANAGEMENT, "Microsoft.Authorization/permissions/read")
CHECK: Final = "the check of permissions"
CHECK_DOC: Final = "Without it, Azure does not return the granted actions, and all of them count as missing."
ROTATE: Final = "rotate-root, scheduled rotation"

FOR_LOGINS: Final = (
    _feature(
        "login with any token",
        "The tenant's signing keys are public. Roles that bind only service principals or groups need no credential.",
    ),
    _feature(
        "roles that bind resources: virtual machines",
        "Reads the machine with its location, scale set and identities, in every bound subscription.",
        _action(COMPUTE, "Microsoft.Compute/virtualMachines/read"),
        READ_IDENTITIES,
    ),
    _feature(
        "roles that bind resources: scale sets",
        "Reads the scale set and its identities.",
        _action(COMPUTE, "Microsoft.Compute/virtualMachineScaleSets/read"),
        READ_IDENTITIES,
    ),
    _feature(
        "roles that bind resources: other resources",
        "Reads the API versions of the resource type. Also needs `<provider>/<type>/read` for each type that logs in.",
        _action(MANAGEMENT, "Microsoft.Resources/subscriptions/providers/read"),
    ),
    _feature(
        "bound_group_ids of principals in more groups than a token holds",
        "Reads the groups of the service principal from Microsoft Graph.",
        _directory(
            "directoryobject-getmembergroups",
            "Application.Read.All",
            "Directory.Read.All",
            "Application.ReadWrite.All",
            "Directory.ReadWrite.All",
        ),
    ),
    _feature(ROTATE, "With `OwnedBy`, the app registration must be one of its own owners.", ADD_PASSWORDS),
    _feature(CHECK, CHECK_DOC, READ_PERMISSIONS),
)
FOR_CREDENTIALS: Final = (
    _feature(
        "roles with azure_roles",
        "Creates and deletes app registrations and service principals, and assigns roles at the scopes of the role.",
        MAKE_APPLICATIONS,
        _action(MANAGEMENT, "Microsoft.Authorization/roleDefinitions/read"),
        _action(MANAGEMENT, "Microsoft.Authorization/roleAssignments/read"),
        _action(MANAGEMENT, "Microsoft.Authorization/roleAssignments/write"),
        _action(MANAGEMENT, "Microsoft.Authorization/roleAssignments/delete"),
    ),
    _feature(
        "roles with azure_groups",
        "Creates service principals as for `azure_roles`, and adds them to groups. `OwnedBy` is not enough.",
        _directory("group-post-members", "Application.ReadWrite.All"),
        _directory("group-post-members", "GroupMember.ReadWrite.All", "Group.ReadWrite.All", "Directory.ReadWrite.All"),
    ),
    _feature(
        "roles with directory_roles",
        "Creates service principals as for `azure_roles`, and assigns directory roles to them. This "
        "permission can grant anyone any directory role, so grant it only if you use such roles.",
        MAKE_APPLICATIONS,
        _directory("rbacapplication-post-roleassignments", "RoleManagement.ReadWrite.Directory"),
    ),
    _feature(
        "roles with app_roles",
        "Creates service principals as for `azure_roles`, and assigns app roles of APIs to them. This "
        "permission can grant anyone any app role, including those of Microsoft Graph, so grant it only if "
        "you use such roles.",
        MAKE_APPLICATIONS,
        _directory("serviceprincipal-post-approleassignedto", "AppRoleAssignment.ReadWrite.All"),
        _directory("serviceprincipal-get", "Application.Read.All", "Application.ReadWrite.All", "Directory.Read.All"),
    ),
    _feature(
        "roles with application_object_id",
        "Adds client secrets to an app registration, for leases, `token_scopes` and static roles. "
        "`Application.ReadWrite.OwnedBy` is enough if the mount's service principal owns it.",
        _directory("application-addpassword", "Application.ReadWrite.All"),
    ),
    _feature(
        "roles with proof federated_credential",
        "Adds a federated identity credential to the role's app registration. "
        "`Application.ReadWrite.OwnedBy` is enough if the mount's service principal owns it.",
        _directory("application-post-federatedidentitycredentials", *OWNED_OR_ALL),
    ),
    _feature(
        "roles with proof certificate",
        "Adds a certificate to the role's app registration. `Application.ReadWrite.OwnedBy` is enough if "
        "the mount's service principal owns it.",
        _directory("application-update", *OWNED_OR_ALL),
    ),
    _feature(
        "permanently_delete",
        "Deletes soft-deleted app registrations and service principals permanently.",
        _directory("directory-deleteditems-delete", *OWNED_OR_ALL),
    ),
    _feature(
        "reconcile",
        "Lists app registrations and service principals. To remove objects, it also needs the "
        "permissions that created them.",
        _directory("application-list", "Application.Read.All", *OWNED_OR_ALL, "Directory.Read.All"),
    ),
    _feature(ROTATE, "With `OwnedBy`, the app registration must be one of its own owners.", ADD_PASSWORDS),
    _feature(CHECK, CHECK_DOC, READ_PERMISSIONS),
)
FEATURES: Final[Mapping[str, tuple[Feature, ...]]] = {AUTH: FOR_LOGINS, SECRET: FOR_CREDENTIALS}
"""Features by the kind of mount."""


def features_of(kind: str) -> tuple[Feature, ...]:
    return FEATURES[kind]
