"""What a store is: one small asynchronous protocol, and the adapter's for stores that wait for a disk; its format."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from cloudid_core.effects import ClockReading, Commit, Entry
from cloudid_core.errors import HostFailure, StoreFailed
from cloudid_core.version import VERSION

from ..runtime import Runtime

Outcome: TypeAlias = int | HostFailure
"""The version of a commit, or why there is none."""

FORMAT: Final = 2
"""Of what is stored, which databases keep beside it: 2 is roles, mounts and devices as of 0.1.0; 1 was before that.

It is raised when this release writes what the one before cannot read: entries are sealed, so that an older release
would take what it cannot read for damage, or for another master key. A store of an older format is taken over when it
is opened, and cannot go back.
"""


class Store(Protocol):
    """An ordered map of versioned entries, as `cloudid_core.store.memory.MemoryStore` defines it.

    Every method but `open` and `close` may be called concurrently. A caller that is cancelled cancels no commit: what
    was asked for is written or refused as a whole.
    """

    @property
    def clock(self) -> ClockReading | None:
        """The store's clock, as the last commit saw it; `None` where it is this machine's, or not known yet."""

    @property
    def public_database(self) -> str:
        """The database that every role of its server may connect to; empty: none, or the store is in no database."""
        return ""

    async def open(self, runtime: Runtime) -> None:
        """Start to work on this runtime; called once, before everything else. Raises `StoreFailed`."""

    def read(self, key: str) -> Awaitable[Entry | None]:
        """One entry. Raises `StoreFailed`."""

    def read_all(self, keys: Sequence[str]) -> Awaitable[Mapping[str, Entry]]:
        """The entries that are there, in one round trip. Raises `StoreFailed`."""

    def list(self, prefix: str, after: str, limit: int) -> Awaitable[tuple[str, ...]]:
        """Up to `limit` keys with the prefix that sort after `after`, in order. Raises `StoreFailed`."""

    def commit(self, commit: Commit) -> Awaitable[int]:
        """The version of the commit. Raises `Conflict`, `StoreFailed` or `OutcomeUnknown`, as `Commit` defines them."""

    def close(self) -> None:
        """Let go of files and connections. The runtime's background work has ended by then."""


class BlockingStore(Protocol):
    """A synchronous store that answers reads at once and whose commits wait for a disk.

    `cloudid_servers.stores.group_commit.GroupCommit` makes a `Store` of it.
    """

    def read(self, key: str) -> Entry | None:
        """One entry. Raises `StoreFailed`."""

    def read_all(self, keys: Sequence[str]) -> Mapping[str, Entry]:
        """The entries that are there. Raises `StoreFailed`."""

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        """Up to `limit` keys with the prefix that sort after `after`, in order. Raises `StoreFailed`."""

    @property
    def waited(self) -> float:
        """Seconds that the last `commit_all` waited for the disk."""

    def commit_all(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
        """Try each commit, in order; each succeeds or fails on its own. From any thread. Raises nothing."""

    def close(self) -> None: ...


def check(name: str, found: int, release: str) -> None:
    """Raises `StoreFailed` for a store of a later format, and says which release has taken it over."""
    if found > FORMAT:
        newer = f"cloudid {release}" if release else "a newer release"
        raise StoreFailed(
            f"{name} was opened by {newer} and has version {found} of the store's format, but cloudid "
            f"{VERSION} knows only {FORMAT}: use that release, or restore a backup from before the upgrade"
        )
