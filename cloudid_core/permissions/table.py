"""The table of features and the provider permissions that each of them needs."""

from __future__ import annotations

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
    """A row of the table. `kind` is that of the mount."""

    kind: str
    name: str
    needs: tuple[Need, ...]
    doc: str


def _directory(page: str, *names: str) -> Need:
    return Need(Api.DIRECTORY, names, f"https://learn.microsoft.com/graph/api/{page}")


def _action(page: str, name: str) -> Need:
    return Need(
        Api.RESOURCES, (name,), f"https://learn.microsoft.com/azure/role-based-access-control/permissions/{page}"
    )


COMPUTE: Final = "compute"
IDENTITY: Final = "identity"
MANAGEMENT: Final = "management-and-governance"
"""Pages of the resource manager's actions."""

READ_IDENTITIES: Final = _action(IDENTITY, "Microsoft.ManagedIdentity/userAssignedIdentities/read")
ADD_PASSWORDS: Final = _directory(
    "application-addpassword", "Application.ReadWrite.OwnedBy", "Application.ReadWrite.All"
)
MAKE_APPLICATIONS: Final = _directory(
    "application-post-applications", "Application.ReadWrite.OwnedBy", "Application.ReadWrite.All"
)
READ_PERMISSIONS: Final = _action(MANAGEMENT, "Microsoft.Authorization/permissions/read")
CHECK: Final = "the check of permissions"
CHECK_DOC: Final = "Without it the provider does not say which actions are granted, and all of them count as missing."
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
        needs=(_action(COMPUTE, "Microsoft.Compute/virtualMachines/read"), READ_IDENTITIES),
        doc="The machine, its location, its scale set and its identities, in every bound subscription.",
    ),
    Feature(
        kind=AUTH,
        name="roles that bind resources: scale sets",
        needs=(_action(COMPUTE, "Microsoft.Compute/virtualMachineScaleSets/read"), READ_IDENTITIES),
        doc="The scale set and its identities.",
    ),
    Feature(
        kind=AUTH,
        name="roles that bind resources: other resources",
        needs=(_action(MANAGEMENT, "Microsoft.Resources/subscriptions/providers/read"),),
        doc="The versions of the resource type's interface; and `<provider>/<type>/read` for each type that logs in.",
    ),
    Feature(
        kind=AUTH,
        name="bound_group_ids of principals in more groups than a token holds",
        needs=(
            _directory(
                "directoryobject-getmembergroups",
                "Application.Read.All",
                "Directory.Read.All",
                "Application.ReadWrite.All",
                "Directory.ReadWrite.All",
            ),
        ),
        doc="The directory is asked for the groups of the service principal.",
    ),
    Feature(
        kind=AUTH,
        name=ROTATE,
        needs=(ADD_PASSWORDS,),
        doc="With `OwnedBy`, the application must be among its own owners.",
    ),
    Feature(kind=AUTH, name=CHECK, needs=(READ_PERMISSIONS,), doc=CHECK_DOC),
    Feature(
        kind=SECRET,
        name="roles with azure_roles",
        needs=(
            MAKE_APPLICATIONS,
            _action(MANAGEMENT, "Microsoft.Authorization/roleDefinitions/read"),
            _action(MANAGEMENT, "Microsoft.Authorization/roleAssignments/write"),
            _action(MANAGEMENT, "Microsoft.Authorization/roleAssignments/delete"),
        ),
        doc="Applications and principals are made and removed, and assigned at the scopes of the role.",
    ),
    Feature(
        kind=SECRET,
        name="roles with azure_groups",
        needs=(
            _directory("group-post-members", "Application.ReadWrite.All"),
            _directory(
                "group-post-members", "GroupMember.ReadWrite.All", "Group.ReadWrite.All", "Directory.ReadWrite.All"
            ),
        ),
        doc="Principals are made as for `azure_roles` and become members of groups; `OwnedBy` is not enough.",
    ),
    Feature(
        kind=SECRET,
        name="roles with directory_roles",
        needs=(
            MAKE_APPLICATIONS,
            _directory("rbacapplication-post-roleassignments", "RoleManagement.ReadWrite.Directory"),
        ),
        doc="Principals are made as for `azure_roles` and get roles of the directory. Who has this permission can give"
        " anybody any role of the directory: grant it only if roles ask for them.",
    ),
    Feature(
        kind=SECRET,
        name="roles with app_roles",
        needs=(
            MAKE_APPLICATIONS,
            _directory("serviceprincipal-post-approleassignedto", "AppRoleAssignment.ReadWrite.All"),
            _directory(
                "serviceprincipal-get", "Application.Read.All", "Application.ReadWrite.All", "Directory.Read.All"
            ),
        ),
        doc="Principals are made as for `azure_roles` and get app roles of APIs. Who has this permission can give"
        " anybody any app role, also those of the directory's API: grant it only if roles ask for them.",
    ),
    Feature(
        kind=SECRET,
        name="roles with application_object_id",
        needs=(_directory("application-addpassword", "Application.ReadWrite.All"),),
        doc="Passwords are added to an application, for leases, `token_scopes` and static roles."
        " `Application.ReadWrite.OwnedBy` is enough if we own it.",
    ),
    Feature(
        kind=SECRET,
        name="roles with proof federated_credential",
        needs=(
            _directory(
                "application-post-federatedidentitycredentials",
                "Application.ReadWrite.OwnedBy",
                "Application.ReadWrite.All",
            ),
        ),
        doc="A federated identity credential is added to the role's application. `Application.ReadWrite.OwnedBy` is"
        " enough if we own it.",
    ),
    Feature(
        kind=SECRET,
        name="roles with proof certificate",
        needs=(_directory("application-update", "Application.ReadWrite.OwnedBy", "Application.ReadWrite.All"),),
        doc="A certificate is added to the role's application. `Application.ReadWrite.OwnedBy` is enough if we own it.",
    ),
    Feature(
        kind=SECRET,
        name="permanently_delete",
        needs=(
            _directory("directory-deleteditems-delete", "Application.ReadWrite.OwnedBy", "Application.ReadWrite.All"),
        ),
        doc="Deleted applications and principals are removed for good.",
    ),
    Feature(
        kind=SECRET,
        name="reconcile",
        needs=(
            _directory(
                "application-list",
                "Application.Read.All",
                "Application.ReadWrite.OwnedBy",
                "Application.ReadWrite.All",
                "Directory.Read.All",
            ),
        ),
        doc="Applications and principals are listed; a repair needs what made them.",
    ),
    Feature(
        kind=SECRET,
        name=ROTATE,
        needs=(ADD_PASSWORDS,),
        doc="With `OwnedBy`, the application must be among its own owners.",
    ),
    Feature(kind=SECRET, name=CHECK, needs=(READ_PERMISSIONS,), doc=CHECK_DOC),
)


def features_of(kind: str) -> tuple[Feature, ...]:
    """The features of a kind of mount."""
    return tuple(feature for feature in FEATURES if feature.kind == kind)
