"""The rights of credentials: their app registration, and what was assigned to its service principal."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from .assignments import scope_of_assignment
from .provisioned import Provisioned


@frozen(kw_only=True)
class Rights:
    """An app registration and what cloudid assigned to its service principal.

    Role assignments are pairs of a scope and the id of a role definition, and memberships are listed by kind.
    `application_id` is set only for an app registration that cloudid did not create.
    """

    client_id: str = ""
    """Empty until the app registration is created."""
    application_id: str = ""
    assignments: tuple[tuple[str, str], ...] = ()
    memberships: Mapping[str, tuple[str, ...]] = field(factory=dict)


def rights_made(provisioned: Provisioned) -> Rights | None:
    """Return the rights that a lease's own app registration has.

    `None`: its record does not list the role definitions.
    """
    if len(provisioned.definitions) != len(provisioned.assignments):
        return None
    scopes = map(scope_of_assignment, provisioned.assignments)
    return Rights(
        client_id=provisioned.client_id,
        assignments=tuple(zip(scopes, provisioned.definitions, strict=True)),
        memberships=provisioned.memberships,
    )
