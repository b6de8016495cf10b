"""What the service must know, by what it has acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

GONE: Final = "gone"
"""The state of a thing that is not there, or dead."""

Kind: TypeAlias = str
Thing: TypeAlias = tuple[Kind, str]


class Expectations:
    """For each thing the states that it may be in.

    That is one once a change was acknowledged; a change that was sent and not acknowledged leaves open whether it was
    made. Each thing belongs to one client, which sends one request at a time.
    """

    def __init__(self) -> None:
        self._states: dict[Thing, set[str]] = {}
        self.acknowledged = 0
        """How many changes were acknowledged."""

    def begin(self, thing: Thing, state: str) -> None:
        """A request is about to be sent that brings a thing into a state."""
        self._states.setdefault(thing, {GONE}).add(state)

    def acknowledge(self, thing: Thing, state: str) -> None:
        """The request was answered: it has been done."""
        self._states[thing] = {state}
        self.acknowledged += 1

    def states(self, thing: Thing) -> set[str]:
        return self._states[thing]

    def certainly(self, kind: Kind, *states: str) -> list[str]:
        """The names of all things of a kind that are in one of the states for certain."""
        return [name for (kind_of, name), known in self._states.items() if kind_of == kind and known <= {*states}]

    def items(self) -> Iterator[tuple[Thing, set[str]]]:
        yield from self._states.items()
