"""The reference store: versioned entries in a dictionary. It defines the behaviour of all other stores."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping

from ..effects import ABSENT, Entry
from ..errors import Conflict


class MemoryStore:
    """An ordered map of entries. It never waits, and only fails if a commit's expectations do not hold."""

    def __init__(self) -> None:
        self.revision = 0
        self._entries: dict[str, Entry] = {}
        self._sorted_keys: list[str] | None = []
        """`None` after a key was added or removed. Lists are rare, so they sort."""

    def read(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def read_all(self, keys: Iterable[str]) -> dict[str, Entry]:
        """Return the entries that exist."""
        return {key: entry for key in keys if (entry := self.read(key)) is not None}

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        if self._sorted_keys is None:
            self._sorted_keys = sorted(self._entries)
        start = max(bisect_left(self._sorted_keys, prefix), bisect_right(self._sorted_keys, after))
        found = self._sorted_keys[start : start + limit]
        while found and not found[-1].startswith(prefix):
            found.pop()
        return tuple(found)

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        """Write all changes or none. Return the new version of everything that was put."""
        entries = self._entries
        for key, version in expects.items():
            entry = entries.get(key)
            if version != (ABSENT if entry is None else entry.version):
                raise Conflict(key)
        self.revision += 1
        for key in deletes:
            if self._entries.pop(key, None) is not None:
                self._sorted_keys = None
        for key, value in puts.items():
            if key not in self._entries:
                self._sorted_keys = None
            self._entries[key] = Entry(value, self.revision)
        return self.revision

    def copy(self) -> MemoryStore:
        """Return an independent store with the same entries."""
        twin = MemoryStore()
        twin.revision, twin._entries, twin._sorted_keys = self.revision, dict(self._entries), None
        return twin
