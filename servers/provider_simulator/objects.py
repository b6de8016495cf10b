"""Directory objects: applications, principals and groups. They are values: to change one is to put another there."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import field, frozen

Self = TypeVar("Self", bound="Value")


class Value:
    """Something that never changes, so that copies of a world share it."""

    __slots__ = ()

    def __deepcopy__(self: Self, memo: dict[int, Any]) -> Self:
        return self


@frozen
class Password(Value):
    """A client secret and when it is good for signing in."""

    key_id: str
    display_name: str | None
    secret: str = field(repr=False)
    starts_at: float
    ends_at: float

    @property
    def hint(self) -> str:
        return self.secret[:3]


@frozen
class Application(Value):
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
class Principal(Value):
    """Somebody who can be granted access: the directory's side of an application or of a machine's identity."""

    id: str
    client_id: str
    display_name: str
    kind: str
    """`Application` or `ManagedIdentity`."""
    passwords: tuple[Password, ...] = ()
    tags: tuple[str, ...] = ()


@frozen
class Group(Value):
    """A security group. Its members are principals and groups."""

    id: str
    display_name: str
    members: frozenset[str] = frozenset()
