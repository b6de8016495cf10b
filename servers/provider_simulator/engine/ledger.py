"""The ledger: every object that was ever created through the API of the directory or of the resource manager.

`docs/reference/simulator.md` has the members of an entry. Applications and principals are deleted first and purged
later; all others are purged as they are deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import asdict, evolve, frozen

from . import Immutable
from .requests import Json

SOFT_DELETED: Final = ("application", "principal")
CASCADES: Final = ("principal", "password", "certificate", "federation", "membership", "directory_role", "app_role")


@frozen
class LedgerEntry(Immutable):
    """An object that was created."""

    kind: str
    id: str
    of: tuple[str, ...]
    display_name: str | None
    unique_name: str | None
    made_at: float
    made_by: str
    deleted_at: float | None = None
    purged_at: float | None = None


class Ledger:
    """All entries, in the order in which the objects were created."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.entries: list[LedgerEntry] = []
        self._numbers: dict[str, int] = {}
        self._children: dict[str, list[int]] = {}

    def record(
        self,
        by: str | None,
        kind: str,
        object_id: str,
        of: tuple[str, ...],
        display_name: str | None = None,
        unique_name: str | None = None,
    ) -> None:
        """Note what a client created; objects that exist from the start (`by` no client) are not noted."""
        if by is None:
            return
        self._numbers[object_id] = len(self.entries)
        if kind in CASCADES:
            for parent in of:
                self._children.setdefault(parent, []).append(len(self.entries))
        self.entries.append(LedgerEntry(kind, object_id, of, display_name, unique_name, self._now(), by))

    def note_deleted(self, object_id: str) -> None:
        """Note that the object, which may have no entry, was deleted, and with it what belongs to it."""
        for number in (self._numbers.get(object_id), *self._children.pop(object_id, ())):
            if number is not None and (made := self.entries[number]).deleted_at is None:
                now = self._now()
                purged_at = None if made.kind in SOFT_DELETED else now
                self.entries[number] = evolve(made, deleted_at=now, purged_at=purged_at)
                self.note_deleted(made.id)

    def note_purged(self, object_id: str) -> None:
        if (number := self._numbers.get(object_id)) is not None:
            self.entries[number] = evolve(self.entries[number], purged_at=self._now())

    def alive(self) -> list[LedgerEntry]:
        """What was created and is not deleted."""
        return [made for made in self.entries if made.deleted_at is None]

    def soft_deleted(self) -> list[LedgerEntry]:
        """What is deleted and not purged."""
        return [made for made in self.entries if made.deleted_at is not None and made.purged_at is None]

    def as_json(self) -> list[Json]:
        return [asdict(made) for made in self.entries]
