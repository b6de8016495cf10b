"""What credentials hold: the application that they belong to, and the rights of its principal."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from .assignments import scope_of_assignment
from .provisioned import Provisioned


@frozen(kw_only=True)
class Rights:
    """An application and what the service gave its principal: role assignments as pairs of a scope and the id of a
    definition, and memberships by their kinds. Only an application that the service did not make has an
    `application_id`.
    """

    client_id: str = ""
    """Empty while the application is still to be made."""
    application_id: str = ""
    assignments: tuple[tuple[str, str], ...] = ()
    memberships: Mapping[str, tuple[str, ...]] = field(factory=dict)


def rights_made(provisioned: Provisioned) -> Rights | None:
    """What an application of its own gives a lease. `None`: its record does not say which definitions are assigned."""
    if len(provisioned.definitions) != len(provisioned.assignments):
        return None
    scopes = map(scope_of_assignment, provisioned.assignments)
    return Rights(
        client_id=provisioned.client_id,
        assignments=tuple(zip(scopes, provisioned.definitions, strict=True)),
        memberships=provisioned.memberships,
    )
