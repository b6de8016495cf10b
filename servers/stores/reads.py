"""Reads: what the batches of a store in a database ask for, and what they get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import frozen

from cloudid_core.effects import Entry

from .batches import Ticket


@frozen
class KeyList:
    """The first `limit` keys that start with `prefix` and sort after `after`."""

    prefix: str
    after: str
    limit: int


Question: TypeAlias = "tuple[str, ...] | KeyList"
"""Keys whose entries are wanted, or which keys to list."""
Answer: TypeAlias = "Mapping[str, Entry] | tuple[str, ...]"
Read: TypeAlias = Ticket[Question, Answer]
