"""Pauses between tries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.backoff import Backoff
from cloudid_core.testing import World

CHANCE = st.floats(0, 1)


def test_pauses_grow_from_the_first_to_the_longest() -> None:
    pauses = Backoff(first=2.0, longest=10.0, growth=1.5)
    assert [pauses.pause(n, 0.5) for n in range(1, 7)] == [2.0, 3.0, 4.5, 6.75, 10.0, 10.0]


@given(st.integers(1, 100_000), CHANCE, st.floats(0.001, 100), st.floats(0, 1), st.floats(1, 2))
def test_a_pause_is_spread_about_its_length(n: int, chance: float, first: float, least: float, greatest: float) -> None:
    """However often something was tried, the pause is a number, and never longer than the spread allows."""
    pause = Backoff(first=first, longest=3600.0, spread=(least, greatest)).pause(n, chance)
    exact = min(first * 2.0 ** min(n - 1, 64), 3600.0)
    assert least * exact <= pause * (1 + 1e-9)
    assert pause <= greatest * exact * (1 + 1e-9)


def test_pauses_are_drawn_by_chance() -> None:
    world, pauses = World(seed=1), Backoff(first=1.0, longest=1.0, spread=(0.0, 1.0))
    drawn = {world.perform(pauses.draw(1)) for _ in range(20)}
    assert len(drawn) > 10
    assert all(0 <= pause < 1 for pause in drawn)
