"""Roles: their definitions, and who has which role where. Assignments outlive their principals.

The id of a definition ends in a GUID; people know it by its role name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from ..engine import Immutable
from ..engine.behaviour import Replica
from ..engine.replicas import Replication, Table

EVERYWHERE: Final = ("/",)


@frozen
class RoleDefinition(Immutable):
    """A built-in or custom role, and the scopes at and below which it can be assigned."""

    guid: str
    role_name: str
    actions: tuple[str, ...] = ()
    data_actions: tuple[str, ...] = ()
    assignable_scopes: tuple[str, ...] = EVERYWHERE
    not_actions: tuple[str, ...] = ()
    not_data_actions: tuple[str, ...] = ()
    description: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    updated_by: str | None = None

    @property
    def kind(self) -> str:
        return "BuiltInRole" if self.assignable_scopes == EVERYWHERE else "CustomRole"


BLOBS: Final = "Microsoft.Storage/storageAccounts/blobServices"
NOT_ROLES: Final = ("Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write")
READ_ROLES: Final = "Microsoft.Authorization/*/read"

OWNER: Final = RoleDefinition("8e3af657-a8ff-443c-a75c-2fe8c4bcb635", "Owner", ("*",))
READER: Final = RoleDefinition("acdd72a7-3385-48ef-bd42-f606fba81ae7", "Reader", ("*/read",))

BUILT_IN: Final = (
    OWNER,
    RoleDefinition("b24988ac-6180-42a0-ab88-20f7382dd24c", "Contributor", ("*",), not_actions=NOT_ROLES),
    READER,
    RoleDefinition(
        "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9", "User Access Administrator", ("*/read", "Microsoft.Authorization/*")
    ),
    *(
        RoleDefinition(guid, name, (f"{BLOBS}/containers/{what}",), (f"{BLOBS}/containers/blobs/{what}",))
        for guid, name, what in (
            ("2a2b9908-6ea1-4ae2-8e65-a410df84e7d1", "Storage Blob Data Reader", "read"),
            ("ba92f5b4-2d11-453d-a403-e96b0029c9fe", "Storage Blob Data Contributor", "*"),
        )
    ),
    RoleDefinition(
        "21090545-7ca7-4776-b22c-e363652d74d2", "Key Vault Reader", (READ_ROLES, "Microsoft.KeyVault/vaults/read")
    ),
    RoleDefinition(
        "9980e02c-c2be-4d73-94e8-173b1dc7cf3c",
        "Virtual Machine Contributor",
        (READ_ROLES, "Microsoft.Compute/virtualMachines/*"),
    ),
    RoleDefinition("43d0d8ad-25c7-4714-9337-8ba259a9fe05", "Monitoring Reader", ("*/read",)),
)

AMBIGUOUS: Final = "Deployer"
"""Two custom definitions have this name; both can be assigned in the first subscription, one in the second too."""


@frozen
class RoleAssignment(Immutable):
    """A role of a principal at a scope."""

    guid: str
    scope: str
    definition: str
    """The guid of the role definition."""
    principal_id: str
    principal_kind: str
    made_at: float
    made_by: str
    """The principal."""
    description: str | None = None

    @property
    def path(self) -> str:
        return f"{self.scope.rstrip('/')}/providers/Microsoft.Authorization/roleAssignments/{self.guid}"

    @property
    def content(self) -> tuple[str, str, str]:
        """Principal, role and scope: unique among assignments."""
        return self.principal_id, self.definition, self.scope.lower()


class RoleAssignments:
    """Role assignments by their paths in lower case."""

    def __init__(self, replication: Replication) -> None:
        self.table: Table[RoleAssignment] = Table(replication)
        self._paths_of: dict[str, dict[str, None]] = {}
        """By principal, in the order of their creation. A path stays, since replicas learn later that it is gone."""

    def add(self, assignment: RoleAssignment) -> None:
        path = assignment.path.lower()
        self.table.put(path, assignment)
        self._paths_of.setdefault(assignment.principal_id, {})[path] = None

    def remove(self, assignment: RoleAssignment) -> None:
        self.table.put(assignment.path.lower(), None)

    def of(self, principal_id: str, replica: Replica | None = None) -> Iterator[RoleAssignment]:
        """Those of a principal that a replica knows; without a replica, as they are."""
        found = (self.table.get(path, replica) for path in self._paths_of.get(principal_id, ()))
        return (assignment for assignment in found if assignment is not None)
