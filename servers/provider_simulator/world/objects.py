"""Directory objects: applications, service principals and groups, as immutable values."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha1
from typing import Any, Final

from attrs import field, frozen

from ..engine import Immutable


@frozen
class Password(Immutable):
    """A client secret, and from when until when it can be used to sign in."""

    key_id: str
    display_name: str | None
    secret: str = field(repr=False)
    starts_at: float
    ends_at: float


@frozen
class Certificate(Immutable):
    """The public half of a key that signs an application's assertions, in DER, and when it can be used to sign in."""

    key_id: str
    display_name: str | None
    der: bytes = field(repr=False)
    starts_at: float
    ends_at: float

    @property
    def thumbprint(self) -> str:
        """SHA-1 in upper-case hex digits, by which Azure shows a certificate."""
        return sha1(self.der, usedforsecurity=False).hexdigest().upper()


@frozen
class Application(Immutable):
    id: str
    client_id: str
    display_name: str
    created_at: float
    unique_name: str | None = None
    passwords: tuple[Password, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    tags: tuple[str, ...] = ()
    sign_in_audience: str = "AzureADandPersonalMicrosoftAccount"
    service_management_reference: str | None = None
    others: Mapping[str, Any] = field(factory=dict[str, Any], repr=False)
    """Members that have no effect here, as they were given."""


@frozen
class Principal(Immutable):
    """A service principal: the identity of an application, or of a machine's managed identity, in the tenant."""

    id: str
    client_id: str
    display_name: str
    kind: str
    """`Application` or `ManagedIdentity`."""
    passwords: tuple[Password, ...] = ()
    tags: tuple[str, ...] = ()
    created_at: float = 0.0
    sign_in_audience: str | None = None
    tenant_id: str | None = None
    """Of the application; a managed identity has none."""
    others: Mapping[str, Any] = field(factory=dict[str, Any], repr=False)
    """Members that have no effect here, as they were given."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.client_id,)


@frozen
class FederatedCredential(Immutable):
    """An issuer, and the subject and audience of its assertions, that an application trusts.

    The token endpoint learns of it some time after `known_from`, if the directory's API made it.
    """

    id: str
    client_id: str
    issuer: str
    subject: str
    audience: str
    name: str = ""
    known_from: float = 0.0
    description: str | None = None


@frozen
class Group(Immutable):
    """A security group. Its members are principals and groups."""

    id: str
    display_name: str
    members: frozenset[str] = frozenset()
    created_at: float = 0.0
    description: str | None = None
    mail_nickname: str = ""
    others: Mapping[str, Any] = field(factory=dict[str, Any], repr=False)
    """Members that have no effect here, as they were given."""


@frozen
class DirectoryRole(Immutable):
    """A role definition of the directory."""

    id: str
    display_name: str


@frozen
class Grant(Immutable):
    """A role of the directory that a principal has; of a `resource_id`, an app role of that API."""

    id: str
    principal_id: str
    role_id: str
    resource_id: str = ""
    principal_name: str = ""
    resource_name: str = ""
    created_at: float = 0.0

    @property
    def content(self) -> tuple[str, str, str]:
        """Unique among grants."""
        return self.principal_id, self.role_id, self.resource_id

    @property
    def label(self) -> str:
        """What the ledger calls it: [API/]ROLE/PRINCIPAL."""
        return "/".join(filter(None, (self.resource_id, self.role_id, self.principal_id)))


DIRECTORY_ROLES: Final = {
    role.id: role
    for role in (
        DirectoryRole("88d8e3e3-8f55-4a1e-953a-9b9898b8876b", "Directory Readers"),
        DirectoryRole("9b895d92-2cd3-44c7-9d02-a6ac2d5ea5c3", "Application Administrator"),
        DirectoryRole("62e90394-69f5-4237-9190-012177145e10", "Global Administrator"),
    )
}
"""By id."""

APP_ROLES: Final = {
    "reporting": {
        "5c1c8f6a-0d64-4b43-9d3e-2f8f0a4b7c11": "Reports.Read.All",
        "a7b5d0de-3b63-4f0b-8a1f-6f3a5d1e9c22": "Reports.Write.All",
    }
}
"""The values of the roles that APIs give to applications, by id, by the name of the API."""
