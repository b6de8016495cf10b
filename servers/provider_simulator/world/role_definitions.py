"""Role definitions. The id of a definition ends in a GUID; people know it by its role name."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..engine.immutable import Immutable

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

    @property
    def kind(self) -> str:
        return "BuiltInRole" if self.assignable_scopes == EVERYWHERE else "CustomRole"


BLOBS: Final = "Microsoft.Storage/storageAccounts/blobServices"

OWNER: Final = RoleDefinition("8e3af657-a8ff-443c-a75c-2fe8c4bcb635", "Owner", ("*",))
READER: Final = RoleDefinition("acdd72a7-3385-48ef-bd42-f606fba81ae7", "Reader", ("*/read",))

BUILT_IN: Final = (
    OWNER,
    RoleDefinition(
        "b24988ac-6180-42a0-ab88-20f7382dd24c",
        "Contributor",
        ("*",),
        not_actions=("Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write"),
    ),
    READER,
    RoleDefinition(
        "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9",
        "User Access Administrator",
        ("*/read", "Microsoft.Authorization/*"),
    ),
    RoleDefinition(
        "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1",
        "Storage Blob Data Reader",
        (f"{BLOBS}/containers/read",),
        (f"{BLOBS}/containers/blobs/read",),
    ),
    RoleDefinition(
        "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
        "Storage Blob Data Contributor",
        (f"{BLOBS}/containers/*",),
        (f"{BLOBS}/containers/blobs/*",),
    ),
    RoleDefinition(
        "21090545-7ca7-4776-b22c-e363652d74d2",
        "Key Vault Reader",
        ("Microsoft.Authorization/*/read", "Microsoft.KeyVault/vaults/read"),
    ),
    RoleDefinition(
        "9980e02c-c2be-4d73-94e8-173b1dc7cf3c",
        "Virtual Machine Contributor",
        ("Microsoft.Authorization/*/read", "Microsoft.Compute/virtualMachines/*"),
    ),
    RoleDefinition("43d0d8ad-25c7-4714-9337-8ba259a9fe05", "Monitoring Reader", ("*/read",)),
)

AMBIGUOUS: Final = "Deployer"
"""Two custom definitions have this name; both can be assigned in the first subscription, one in the second too."""
