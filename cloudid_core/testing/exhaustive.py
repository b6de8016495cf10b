"""Exhaustive faults: a scenario is run once for every effect and every way in which that effect can go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from ..errors import CloudidError
from .faults import Crashed, Fault, FaultKind, troubles_of
from .world import World

W = TypeVar("W", bound=World)


def count_effects(scenario: Callable[[W], object], make: Callable[[], W]) -> int:
    """How many effects a scenario has in a fresh world when nothing goes wrong."""
    world = make()
    start = len(world.trace)
    scenario(world)
    return len(world.trace) - start


def every_fault(
    scenario: Callable[[W], object],
    make: Callable[[], W],
    *,
    depth: int = 1,
    kinds: frozenset[FaultKind] = frozenset(FaultKind),
    given: tuple[Fault, ...] = (),
    sample: Callable[[Iterable[tuple[Fault, ...]]], Iterable[tuple[Fault, ...]]] = iter,
) -> Iterator[W]:
    """A fresh world for every way in which a scenario can go wrong: tell the scenario in it, and see what is left.

        for world in every_fault(log_in, make_world):
            with suppress(Crashed, CloudidError):
                log_in(world)
            assert is_sound(world)

    `make` prepares a world, the same each time; its own effects do not fail. `depth` is how many faults, one after the
    other, each world has: with 2, every ordered pair of them. A scenario that is to go wrong again while it recovers
    catches `Crashed` and recovers itself. `given` are faults that every world has besides, before the others.
    `sample` chooses some of the ways: no world is made for the others.
    """
    for plan in sample(_plans(scenario, make, given, depth, kinds)):
        world = make()
        world.inject(*plan)
        yield world


def _plans(
    scenario: Callable[[W], object],
    make: Callable[[], W],
    faults: tuple[Fault, ...],
    depth: int,
    kinds: frozenset[FaultKind],
) -> Iterator[tuple[Fault, ...]]:
    """All continuations of `faults` by `depth` more, each at a later effect than the one before."""
    world = make()
    start = faults[-1].at + 1 if faults else len(world.trace)
    world.inject(*faults)
    if faults:
        with suppress(Crashed, CloudidError):
            scenario(world)
    else:
        scenario(world)
    for at, (_, effect) in enumerate(world.trace[start:], start):
        for kind in troubles_of(effect):
            if kind in kinds:
                plan = (*faults, Fault(at, kind))
                if depth == 1:
                    yield plan
                else:
                    yield from _plans(scenario, make, plan, depth - 1, kinds)
