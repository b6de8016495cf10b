"""The core's reference store behind the protocol of blocking stores, to compare others with."""

from __future__ import annotations

from collections.abc import Sequence

from cloudid_core.effects import Commit
from cloudid_core.errors import HostFailure
from cloudid_core.store.memory import MemoryStore
from cloudid_servers.stores import Outcome


class ReferenceStore(MemoryStore):
    """Commits one after the other, each for itself."""

    waited = 0.0

    def commit_all(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
        return [self._outcome(commit) for commit in commits]

    def close(self) -> None:
        """Nothing is open."""

    def _outcome(self, commit: Commit) -> Outcome:
        try:
            return self.commit(commit.expects, commit.puts, commit.deletes)
        except HostFailure as failure:
            return failure
