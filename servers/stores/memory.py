"""The store of `--dev`: the core's reference store, forgotten when the process ends."""

from __future__ import annotations

from cloudid_core.effects import ClockReading, Commit, Entry
from cloudid_core.store.memory import MemoryStore

from ..common.runtime import Runtime


class InMemory:
    """A `Store` made of the core's `MemoryStore`, for one process. Nothing waits."""

    clock: ClockReading | None = None

    def __init__(self, store: MemoryStore | None = None) -> None:
        self._store = store or MemoryStore()

    async def open(self, runtime: Runtime) -> None:
        """Nothing is to be opened."""

    async def read(self, key: str) -> Entry | None:
        return self._store.read(key)

    async def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return self._store.list(prefix, after, limit)

    async def commit(self, commit: Commit) -> int:
        return self._store.commit(commit.expects, commit.puts, commit.deletes)

    def close(self) -> None:
        """Nothing is open."""
