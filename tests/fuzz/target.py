"""What a target of the fuzzer is: a parser of ours, what it may raise, how much it may work, and what has to hold."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from attrs import frozen

CALLS: Final = 2000
CALLS_FOR_A_BYTE: Final = 100
"""Calls of functions, Python's and C's: how many an input may cause, however short, and how many more for a byte."""


class Refusal:
    """A parser has refused its input, in one of the ways that it declares."""

    def __repr__(self) -> str:
        return "refused"


REFUSED: Final = Refusal()


def _anything(given: Any, found: Any) -> None:
    """No claim beyond the declared exceptions and the bounded work."""


@frozen
class Target:
    """A parser of ours."""

    read: Callable[[Any], Any]
    seeds: tuple[bytes | str, ...]
    """Inputs to begin with. Their type is what the parser takes: bytes or text."""

    holds: Callable[[Any, Any], None] = _anything
    """Fails unless what was read (or `REFUSED`) is right for the input: an oracle, a round trip, an invariant."""

    refusals: tuple[type[Exception], ...] = (ValueError,)
    calls: int = CALLS

    def examine(self, raw: bytes) -> object:
        """What the parser makes of an input, or `REFUSED`. Raises whatever is wrong with that."""
        given = raw if isinstance(self.seeds[0], bytes) else raw.decode(errors="replace")
        work = _Work()
        try:
            with work:
                found = self.read(given)
        except self.refusals:
            found = REFUSED
        most = self.calls + CALLS_FOR_A_BYTE * len(raw)
        assert work.calls <= most, f"{work.calls} calls for {len(raw)} bytes; {most} are allowed"
        self.holds(given, found)
        return found


class _Work:
    """Counts the calls of functions inside a `with`: work, whatever the speed of the machine."""

    def __init__(self) -> None:
        self.calls = 0

    def __enter__(self) -> None:
        self._before = sys.getprofile()
        sys.setprofile(self._count)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _count(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self.calls += 1
