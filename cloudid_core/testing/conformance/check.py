"""Check: one thing that every host must be able to do, as a program that fails on a host that cannot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from attrs import frozen

from ...effects import Program, RandomBytes

T = TypeVar("T")


class NotConforming(AssertionError):
    """A host does not do what is asked of every host."""


@frozen
class Check:
    """A named check. Call it for a fresh program; it can be run on a host whose store is in use."""

    name: str
    story: Callable[[], Program[None]]
    waits: bool
    """Whether it needs a host on which time passes and programs run side by side."""

    def __call__(self) -> Program[None]:
        return self.story()


def checks_of(*stories: Callable[[], Program[None]], waits: bool) -> tuple[Check, ...]:
    """Checks that are named like their functions."""
    return tuple(Check(story.__name__, story, waits) for story in stories)


def checks_with(given: T, *stories: Callable[[T], Program[None]]) -> tuple[Check, ...]:
    """As `checks_of`, for stories that are handed something. All of them wait."""
    return tuple(Check(story.__name__, partial(story, given), waits=True) for story in stories)


def expect(what: str, actual: object, wanted: object) -> None:
    """Fail unless both are equal."""
    if actual != wanted:
        raise NotConforming(f"{what}: {actual!r} where {wanted!r} is right")


async def fresh_prefix() -> str:
    """A prefix of keys that no check has used before."""
    return f"conformance/{(await RandomBytes(16)).hex()}/"
