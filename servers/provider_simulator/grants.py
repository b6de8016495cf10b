"""Grants: the role assignments that there are. They stay when their principal goes."""

from __future__ import annotations

from attrs import frozen

from .objects import Value
from .replicas import Spread, Table
from .scopes import covers


@frozen
class Assignment(Value):
    """A role that a principal has at a scope."""

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
        return f"{self.scope}/providers/Microsoft.Authorization/roleAssignments/{self.guid}"

    @property
    def content(self) -> tuple[str, str, str]:
        """What no other assignment may have: principal, role and scope."""
        return self.principal_id, self.definition, self.scope.lower()


class Grants:
    """Assignments by the path that names them, in lower case."""

    def __init__(self, spread: Spread) -> None:
        self.assignments: Table[Assignment] = Table(spread)
        self._paths: dict[tuple[str, str, str], str] = {}

    def add(self, assignment: Assignment) -> None:
        path = assignment.path.lower()
        self.assignments.put(path, assignment)
        self._paths[assignment.content] = path

    def remove(self, assignment: Assignment) -> None:
        self.assignments.put(self._paths.pop(assignment.content), None)

    def has(self, content: tuple[str, str, str]) -> bool:
        return content in self._paths

    def count_within(self, scope: str) -> int:
        """How many there are at a scope and below it."""
        return sum(covers(scope, assignment.scope) for assignment in self.assignments.all())
