"""Batch: how many commits go together into one statement, and how they travel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..groups import CommitTicket, Limits
from . import schema, statements

LIMITS: Final = Limits(commits=schema.BATCH_VERSIONS, keys=512, bytes=4 * 2**20)
"""Each key takes one of the database's lock slots, which all nodes share."""


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
