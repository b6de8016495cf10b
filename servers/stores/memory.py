"""The store of `--dev`: the core's reference store, forgotten when the process ends."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence

from cloudid_core.effects import ClockReading, Commit, Entry, Ready
from cloudid_core.store.memory import MemoryStore

from ..runtime import Runtime


class InMemory:
    """A `Store` made of the core's `MemoryStore`, for one process. Nothing waits."""

    public_database = ""
    clock: ClockReading | None = None

    def __init__(self) -> None:
        self._store = MemoryStore()

    async def open(self, runtime: Runtime) -> None:
        """Nothing is to be opened."""

    def read(self, key: str) -> Awaitable[Entry | None]:
        return Ready(self._store.read(key))

    def read_all(self, keys: Sequence[str]) -> Awaitable[Mapping[str, Entry]]:
        return Ready(self._store.read_all(keys))

    def list(self, prefix: str, after: str, limit: int) -> Awaitable[tuple[str, ...]]:
        return Ready(self._store.list(prefix, after, limit))

    def commit(self, commit: Commit) -> Awaitable[int]:
        return Ready(self._store.commit(commit.expects, commit.puts, commit.deletes))

    def close(self) -> None:
        """Nothing is open."""
