"""Role assignments. They outlive their principals."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from ..engine.behaviour import Replica
from ..engine.immutable import Immutable
from ..engine.replicas import Replication, Table
from .scopes import covers


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
        self._paths: dict[tuple[str, str, str], str] = {}
        self._paths_of: dict[str, dict[str, None]] = {}
        """By principal, in the order of their creation. A path stays, since replicas learn later that it is gone."""

    def add(self, assignment: RoleAssignment) -> None:
        path = assignment.path.lower()
        self.table.put(path, assignment)
        self._paths[assignment.content] = path
        self._paths_of.setdefault(assignment.principal_id, {})[path] = None

    def remove(self, assignment: RoleAssignment) -> None:
        self.table.put(self._paths.pop(assignment.content), None)

    def has(self, content: tuple[str, str, str]) -> bool:
        return content in self._paths

    def of(self, principal_id: str, replica: Replica | None = None) -> Iterator[RoleAssignment]:
        """Those of a principal that a replica knows; without a replica, as they are."""
        found = (self.table.get(path, replica) for path in self._paths_of.get(principal_id, ()))
        return (assignment for assignment in found if assignment is not None)

    def count_within(self, scope: str) -> int:
        """How many there are at a scope and below it."""
        return sum(covers(scope, assignment.scope) for assignment in self.table.all())
