"""Stores: what hosts keep entries in, behind one small synchronous protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from cloudid_core.effects import Commit, Entry
from cloudid_core.errors import HostFailure

Outcome: TypeAlias = int | HostFailure
"""The version of a commit, or why there is none."""


class Store(Protocol):
    """An ordered map of versioned entries, as `cloudid_core.store.memory.MemoryStore` defines it."""

    waits: bool
    """Whether commits wait for a disk, and so must be kept off an event loop. Reads never do."""

    def read(self, key: str) -> Entry | None:
        """One entry. Raises `StoreFailed`."""
        ...

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        """Up to `limit` keys with the prefix that sort after `after`, in order. Raises `StoreFailed`."""
        ...

    def commit_all(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
        """Try each commit, in order; each succeeds or fails on its own. Raises nothing."""
        ...

    def close(self) -> None: ...
