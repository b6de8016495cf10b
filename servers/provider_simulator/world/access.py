"""Access: what role assignments let a principal do, and scopes, of management groups, subscriptions, and so on down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from ..engine.behaviour import Replica
from .roles import OWNER, READER, RoleAssignment, RoleDefinition
from .world import World

ROOT: Final = "/"
SCOPE: Final = re.compile(
    r"/"
    r"|/subscriptions/(?P<subscription>[^/]+)(?:/resourcegroups/(?P<group>[^/]+))?(?:/providers(?:/[^/]+){3,})?"
    r"|/providers/microsoft\.management/managementgroups/(?P<management>[^/]+)"
    r"|/providers/(?!microsoft\.management/)[^/]+(?:/[^/]+/[^/]+)*"
)
"""In lower case."""

MANAGEMENT_GROUP: Final = "contoso"
"""It contains all subscriptions, as does the root group, whose name is the tenant's id."""

IN_MANAGEMENT: Final = "/providers/microsoft.management/"


def may(world: World, principal_id: str, action: str, scope: str) -> bool:
    """Whether a role of the principal, or of a group that it is in, grants the action at the scope."""
    return any(
        _is_among(action, definition.actions) and not _is_among(action, definition.not_actions)
        for definition in granted(world, principal_id, scope)
    )


def granted(world: World, principal_id: str, scope: str) -> Iterator[RoleDefinition]:
    """The roles that a principal has at a scope: its own first, then those of its groups."""
    yield from _assigned(world, principal_id, scope)
    for group in world.directory.groups_of(principal_id):
        yield from _assigned(world, group.id, scope)


def _assigned(world: World, principal_id: str, scope: str) -> Iterator[RoleDefinition]:
    found = world.role_assignments.of(principal_id, Replica.ASSIGNMENTS)
    return (world.role_definitions[each.definition] for each in found if covers(each.scope, scope))


def permit(world: World, principal_id: str, *, reading: bool, writing: bool) -> None:
    """Let a principal read, or read and change, everything in the cloud from now on, or only that of the directory.

    In the resource manager it has the role of readers or owners at the root, and none if it may not read.
    """
    for permitted, wanted in ((world.readers, reading), (world.writers, writing)):
        (permitted.add if wanted else permitted.discard)(principal_id)
    assignments = world.role_assignments
    for each in tuple(assignments.of(principal_id)):
        if each.scope == ROOT:
            assignments.remove(each)
    if reading:
        guid, role = world.randomness.guid(f"access of {principal_id}"), OWNER if writing else READER
        assignments.add(
            RoleAssignment(guid, ROOT, role.guid, principal_id, "ServicePrincipal", world.now(), principal_id)
        )


def consent(world: World, principal_id: str, permissions: tuple[str, ...]) -> None:
    """Give a principal these application permissions, and no others. One that changes something changes everything."""
    world.consents[principal_id] = permissions
    world.readers.add(principal_id)
    if any("ReadWrite" in permission for permission in permissions):
        world.writers.add(principal_id)


@lru_cache(maxsize=4096)
def _is_among(action: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern matches, in which `*` is any text; case is ignored."""
    return any(
        re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), action, re.IGNORECASE) for pattern in patterns
    )


def covers(outer: str, inner: str) -> bool:
    """Whether the outer scope is, or contains, the inner one."""
    outer, inner = outer.lower(), inner.lower()
    return (
        outer in ("/", inner)
        or inner.startswith(f"{outer}/")
        or (outer.startswith(IN_MANAGEMENT) and inner.startswith("/subscriptions/"))
    )


def subscription_of(scope: str) -> str | None:
    """The scope of the subscription that contains it, in lower case."""
    match = SCOPE.fullmatch(scope.lower())
    return f"/subscriptions/{match['subscription']}" if match and match["subscription"] else None
