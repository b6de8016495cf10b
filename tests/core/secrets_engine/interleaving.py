"""Something that happens between two effects of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cloudid_core.effects import Effect, Failure, Program
from cloudid_core.errors import CloudidError
from cloudid_core.testing import World

T = TypeVar("T")


def interleaved(world: World, program: Program[T], events: Mapping[int, list[Callable[[], object]]]) -> tuple[T, int]:
    """What a program answers while something happens before some of its effects; how many these are."""
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
