"""Directory objects: applications, service principals and groups, as immutable values."""

from __future__ import annotations

from attrs import field, frozen

from ..engine.immutable import Immutable


@frozen
class Password(Immutable):
    """A client secret, and from when until when it can be used to sign in."""

    key_id: str
    display_name: str | None
    secret: str = field(repr=False)
    starts_at: float
    ends_at: float

    @property
    def hint(self) -> str:
        return self.secret[:3]


@frozen
class Application(Immutable):
    """A registered application."""

    id: str
    client_id: str
    display_name: str
    created_at: float
    unique_name: str | None = None
    passwords: tuple[Password, ...] = ()
    tags: tuple[str, ...] = ()
    sign_in_audience: str = "AzureADMyOrg"


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


@frozen
class FederatedCredential(Immutable):
    """An issuer, and the subject and audience of its assertions, that an application trusts."""

    id: str
    client_id: str
    issuer: str
    subject: str
    audience: str


@frozen
class Group(Immutable):
    """A security group. Its members are principals and groups."""

    id: str
    display_name: str
    members: frozenset[str] = frozenset()
