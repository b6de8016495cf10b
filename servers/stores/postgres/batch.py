"""Batch: which commits go together into one statement, and how they travel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from cloudid_core.effects import Commit
from cloudid_core.errors import Conflict

from ..batches import Ticket
from . import schema, statements

CommitTicket: TypeAlias = Ticket[Commit, int]
Mismatches: TypeAlias = Mapping[str, int]
"""The versions of keys that are not at the version that a commit expected."""

MOST_KEYS: Final = 512
"""In one batch: each takes one of the database's lock slots, which all nodes share. One commit may have more."""

MOST_BYTES: Final = 4 * 2**20


def independent(batch: Sequence[CommitTicket]) -> tuple[list[CommitTicket], list[CommitTicket]]:
    """Those that can be written together, and those that wait for the next batch."""
    now: list[CommitTicket] = []
    later: list[CommitTicket] = []
    written: set[str] = set()
    keys = size = 0
    for place, ticket in enumerate(batch):
        commit = ticket.request
        keys += len(commit.expects) + len(commit.puts) + len(commit.deletes)
        size += sum(map(len, commit.puts.values()))
        if now and (len(now) == schema.BATCH_VERSIONS or keys > MOST_KEYS or size > MOST_BYTES):
            later += batch[place:]
            break
        if all(map(written.isdisjoint, (commit.expects, commit.puts, commit.deletes))):
            now.append(ticket)
            written.update(commit.puts, commit.deletes)
        else:
            later.append(ticket)
    return now, later


def parameters_of(
    tickets: Sequence[CommitTicket], writer: bytes, session: bytes, number: int, timeline: int
) -> tuple[bytes, ...]:
    """As `statements.COMMIT` wants them."""
    commits = [ticket.request for ticket in tickets]
    expected = {pair for commit in commits for pair in commit.expects.items()}
    puts = [(key, value, place) for place, commit in enumerate(commits) for key, value in commit.puts.items()]
    deleted = {key for commit in commits for key in commit.deletes if key not in commit.puts}
    return (
        writer,
        session,
        statements.int8(number),
        statements.int8(timeline << schema.TIMELINE_BIT),
        statements.texts(key.encode() for key, _ in expected),
        statements.int8s(version for _, version in expected),
        statements.texts(key.encode() for key, _, _ in puts),
        statements.byteas(value for _, value, _ in puts),
        statements.int4s(place for _, _, place in puts),
        statements.texts(key.encode() for key in deleted),
    )


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
