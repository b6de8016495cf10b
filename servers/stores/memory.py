"""The store of `--dev`: the core's reference store, forgotten when the process ends."""

from __future__ import annotations

from collections.abc import Sequence

from cloudid_core.effects import Commit
from cloudid_core.errors import HostFailure
from cloudid_core.store import memory

from . import Outcome


class MemoryStore(memory.MemoryStore):
    """The reference store, for one process."""

    waits = False

    def commit_all(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
        return [self._outcome(commit) for commit in commits]

    def close(self) -> None:
        """Nothing is open."""

    def _outcome(self, commit: Commit) -> Outcome:
        try:
            return self.commit(commit.expects, commit.puts, commit.deletes)
        except HostFailure as failure:
            return failure
