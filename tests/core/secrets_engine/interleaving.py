"""Something that happens between two effects of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cloudid_core.effects import Commit, Effect, Failure, Program
from cloudid_core.errors import CloudidError, Conflict
from cloudid_core.testing import World

T = TypeVar("T")


def interleaved(world: World, program: Program[T], events: Mapping[int, list[Callable[[], object]]]) -> tuple[T, int]:
    """Run a program, with events before some of its effects. Its answer, and how many effects it had."""
    reply: Any = None
    number = 0
    while True:
        for event in events.get(number, []):
            event()
        try:
            effect = program.send(reply)
        except StopIteration as stop:
            return stop.value, number
        try:
            reply = world.perform(_answer(effect))
        except CloudidError as error:
            reply = Failure(error)
        number += 1


async def _answer(effect: Effect[T]) -> T:
    return await effect


def raced(world: World, program: Program[T], part: str, event: Callable[[], object]) -> tuple[T, int]:
    """What a program answers when something happens right before its first commit that puts an entry named like `part`.

    The number is how many commits that put such an entry conflict. The test fails if there is no such commit.
    """
    reply: Any = None
    conflicts, has_happened = 0, False
    while True:
        try:
            effect = program.send(reply)
        except StopIteration as stop:
            assert has_happened, f"no commit puts an entry named like {part}"
            return stop.value, conflicts
        is_meant = isinstance(effect, Commit) and any(part in key for key in effect.puts)
        if is_meant and not has_happened:
            event()
            has_happened = True
        try:
            reply = world.perform(_answer(effect))
        except CloudidError as error:
            reply = Failure(error)
            conflicts += is_meant and isinstance(error, Conflict)
