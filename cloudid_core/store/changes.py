"""Changes: what one commit expects, writes and deletes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ..events import Event


class Changes(msgspec.Struct, frozen=True):
    """The content of one commit, before it is encrypted. `a | b` combines two of them.

    `expects` holds the version that each entry must have (`ABSENT`: it must not exist). `puts` holds records by key. If
    one side puts a key, the deletion of the other is ignored: an entry that moves to its own key is kept.
    """

    expects: Mapping[str, int] = {}
    puts: Mapping[str, object] = {}
    deletes: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    """Events to record when the commit has succeeded."""

    def __repr__(self) -> str:
        return f"Changes(expects={dict(self.expects)!r}, puts={sorted(self.puts)!r}, deletes={self.deletes!r})"

    def __or__(self, other: Changes) -> Changes:
        puts = {**self.puts, **other.puts}
        deletes = dict.fromkeys((*self.deletes, *other.deletes))
        return Changes(
            {**self.expects, **other.expects},
            puts,
            tuple(key for key in deletes if key not in puts),
            self.events + other.events,
        )

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is written or deleted."""
        return not (self.puts or self.deletes)


NO_CHANGES: Final = Changes()
