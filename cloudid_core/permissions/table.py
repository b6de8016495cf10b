"""The table of features and the provider permissions that each of them needs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from attrs import frozen

from ..mounts import AUTH, SECRET


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
    source: str
    """The page of the provider's documentation that names them."""


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
"""Pages of the resource manager's actions."""

READ_IDENTITIES: Final = _action(IDENTITY, "Microsoft.ManagedIdentity/userAssignedIdentities/read")
OWNED_OR_ALL: Final = ("Application.ReadWrite.OwnedBy", "Application.ReadWrite.All")
ADD_PASSWORDS: Final = _directory("application-addpassword", *OWNED_OR_ALL)
MAKE_APPLICATIONS: Final = _directory("application-post-applications", *OWNED_OR_ALL)
READ_PERMISSIONS: Final = _action(MANAGEMENT, "Microsoft.Authorization/permissions/read")
CHECK: Final = "the check of permissions"
CHECK_DOC: Final = "Without it the provider does not say which actions are granted, and all of them count as missing."
ROTATE: Final = "rotate-root, scheduled rotation"

FOR_LOGINS: Final = (
    _feature(
        "login with any token",
        "The tenant's signing keys are public. Roles that bind only principals or groups need no credential.",
    ),
    _feature(
        "roles that bind resources: virtual machines",
        "The machine, its location, its scale set and its identities, in every bound subscription.",
        _action(COMPUTE, "Microsoft.Compute/virtualMachines/read"),
        READ_IDENTITIES,
    ),
    _feature(
        "roles that bind resources: scale sets",
        "The scale set and its identities.",
        _action(COMPUTE, "Microsoft.Compute/virtualMachineScaleSets/read"),
        READ_IDENTITIES,
    ),
    _feature(
        "roles that bind resources: other resources",
        "The versions of the resource type's interface; and `<provider>/<type>/read` for each type that logs in.",
        _action(MANAGEMENT, "Microsoft.Resources/subscriptions/providers/read"),
    ),
    _feature(
        "bound_group_ids of principals in more groups than a token holds",
        "The directory is asked for the groups of the service principal.",
        _directory(
            "directoryobject-getmembergroups",
            "Application.Read.All",
            "Directory.Read.All",
            "Application.ReadWrite.All",
            "Directory.ReadWrite.All",
        ),
    ),
    _feature(ROTATE, "With `OwnedBy`, the application must be among its own owners.", ADD_PASSWORDS),
    _feature(CHECK, CHECK_DOC, READ_PERMISSIONS),
)
FOR_CREDENTIALS: Final = (
    _feature(
        "roles with azure_roles",
        "Applications and principals are made and removed, and assigned at the scopes of the role.",
        MAKE_APPLICATIONS,
        _action(MANAGEMENT, "Microsoft.Authorization/roleDefinitions/read"),
        _action(MANAGEMENT, "Microsoft.Authorization/roleAssignments/read"),
        _action(MANAGEMENT, "Microsoft.Authorization/roleAssignments/write"),
        _action(MANAGEMENT, "Microsoft.Authorization/roleAssignments/delete"),
    ),
    _feature(
        "roles with azure_groups",
        "Principals are made as for `azure_roles` and become members of groups; `OwnedBy` is not enough.",
        _directory("group-post-members", "Application.ReadWrite.All"),
        _directory("group-post-members", "GroupMember.ReadWrite.All", "Group.ReadWrite.All", "Directory.ReadWrite.All"),
    ),
    _feature(
        "roles with directory_roles",
        "Principals are made as for `azure_roles` and get roles of the directory. Who has this permission can give"
        " anybody any role of the directory: grant it only if roles ask for them.",
        MAKE_APPLICATIONS,
        _directory("rbacapplication-post-roleassignments", "RoleManagement.ReadWrite.Directory"),
    ),
    _feature(
        "roles with app_roles",
        "Principals are made as for `azure_roles` and get app roles of APIs. Who has this permission can give"
        " anybody any app role, also those of the directory's API: grant it only if roles ask for them.",
        MAKE_APPLICATIONS,
        _directory("serviceprincipal-post-approleassignedto", "AppRoleAssignment.ReadWrite.All"),
        _directory("serviceprincipal-get", "Application.Read.All", "Application.ReadWrite.All", "Directory.Read.All"),
    ),
    _feature(
        "roles with application_object_id",
        "Passwords are added to an application, for leases, `token_scopes` and static roles."
        " `Application.ReadWrite.OwnedBy` is enough if we own it.",
        _directory("application-addpassword", "Application.ReadWrite.All"),
    ),
    _feature(
        "roles with proof federated_credential",
        "A federated identity credential is added to the role's application. `Application.ReadWrite.OwnedBy` is"
        " enough if we own it.",
        _directory("application-post-federatedidentitycredentials", *OWNED_OR_ALL),
    ),
    _feature(
        "roles with proof certificate",
        "A certificate is added to the role's application. `Application.ReadWrite.OwnedBy` is enough if we own it.",
        _directory("application-update", *OWNED_OR_ALL),
    ),
    _feature(
        "permanently_delete",
        "Deleted applications and principals are removed for good.",
        _directory("directory-deleteditems-delete", *OWNED_OR_ALL),
    ),
    _feature(
        "reconcile",
        "Applications and principals are listed; a repair needs what made them.",
        _directory("application-list", "Application.Read.All", *OWNED_OR_ALL, "Directory.Read.All"),
    ),
    _feature(ROTATE, "With `OwnedBy`, the application must be among its own owners.", ADD_PASSWORDS),
    _feature(CHECK, CHECK_DOC, READ_PERMISSIONS),
)
FEATURES: Final[Mapping[str, tuple[Feature, ...]]] = {AUTH: FOR_LOGINS, SECRET: FOR_CREDENTIALS}
"""By the kind of a mount."""


def features_of(kind: str) -> tuple[Feature, ...]:
    return FEATURES[kind]
