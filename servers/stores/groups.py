"""Groups: which commits of a batch an engine may write together, as one transaction that judges all it expects first.

Two commits of which one touches what the other writes do not go together: both would be judged by what was there before
either, both would hold, and one would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from cloudid_core.effects import Commit
from cloudid_core.errors import Conflict, OutcomeUnknown, StoreFailed

from .batches import Ticket

CommitTicket: TypeAlias = Ticket[Commit, int]
Mismatches: TypeAlias = Mapping[str, int]
"""The versions of keys that are not at the version that a commit expected."""


@frozen
class Limits:
    """The most that goes into one group of several commits. A single one may be larger."""

    commits: int
    keys: int
    """Expected ones, each once, and written ones."""
    bytes: int
    """Of values."""


def independent(batch: Sequence[CommitTicket], most: Limits) -> tuple[list[CommitTicket], list[CommitTicket]]:
    """Those that can be written together, and those that wait for the next batch."""
    now: list[CommitTicket] = []
    later: list[CommitTicket] = []
    expected: set[tuple[str, int]] = set()
    written: set[str] = set()
    size = 0
    for place, ticket in enumerate(batch):
        commit = ticket.request
        if not all(map(written.isdisjoint, (commit.expects, commit.puts, commit.deletes))):
            later.append(ticket)
            continue
        expected.update(commit.expects.items())
        written.update(commit.puts, commit.deletes)
        size += sum(map(len, commit.puts.values()))
        if now and (len(now) == most.commits or len(expected) + len(written) > most.keys or size > most.bytes):
            later += batch[place:]
            break
        now.append(ticket)
    return now, later


def without_conflicts(tickets: Sequence[CommitTicket], found: Mismatches) -> list[CommitTicket]:
    """Settle those whose expectations do not hold; answers the others. `found`: versions that were not expected."""
    left: list[CommitTicket] = []
    for ticket in tickets:
        expects = ticket.request.expects
        wrong = next((key for key, version in expects.items() if found.get(key, version) != version), None)
        if wrong is None:
            left.append(ticket)
        else:
            ticket.settle(Conflict(wrong))
    return left


def fail(tickets: Iterable[CommitTicket], failure: StoreFailed | OutcomeUnknown) -> None:
    """Each caller gets a failure of its own: exceptions collect the places that they pass."""
    for ticket in tickets:
        ticket.settle(type(failure)(str(failure)))
