"""What is remembered of the stretches of tokens."""

from __future__ import annotations

from math import inf
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.tokens import stretches
from cloudid_core.tokens.stretches import Stretch, Stretches

Reading: TypeAlias = "tuple[int, int, float | None]"
POSITIONS = range(30)


def readings() -> st.SearchStrategy[list[Reading]]:
    """Stretches between two positions, as they are read one after the other."""
    bounds = st.lists(st.sampled_from(POSITIONS), min_size=2, max_size=2, unique=True).map(sorted)
    one = st.tuples(bounds, st.none() | st.integers(0, 9).map(float))
    return st.lists(one.map(lambda read: (read[0][0], read[0][1], read[1])), max_size=20)


def key(position: int) -> str:
    return f"{position:02}"


@given(readings())
def test_every_key_is_due_as_it_was_read_last(made: list[Reading]) -> None:
    known = Stretches()
    expected = dict.fromkeys(POSITIONS, inf)
    for after, until, due_at in made:
        known.remember(key(after), key(until), due_at)
        expected |= dict.fromkeys(range(after + 1, until + 1), inf if due_at is None else due_at)
    for position, due_at in expected.items():
        found = [each.due_at for each in known if each.after < key(position) <= each.until]
        assert found == ([] if due_at == inf else [due_at])


@given(readings())
def test_stretches_are_in_order_and_have_no_key_in_common(made: list[Reading]) -> None:
    known = Stretches()
    for after, until, due_at in made:
        known.remember(key(after), key(until), due_at)
    bounds = [bound for each in known for bound in (each.after, each.until)]
    assert bounds == sorted(bounds)
    assert all(each.after < each.until for each in known)


def test_the_longest_due_comes_first() -> None:
    known = Stretches()
    for number, due_at in enumerate((3.0, 1.0, 2.0, 5.0)):
        known.remember(key(number), key(number + 1), due_at)
    assert [each.due_at for each in known.due(3.0)] == [1.0, 2.0, 3.0]


def test_a_full_memory_takes_nothing_new_and_forgets_what_is_out_of_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "MOST", 2)
    known = Stretches()
    for number in range(4):
        known.remember(key(number), key(number + 1), 1.0)
    assert list(known) == [Stretch("00", "01", 1.0), Stretch("01", "02", 1.0)]
    known.remember("00", "01", 2.0)
    assert list(known) == [Stretch("01", "02", 1.0)]
    known.remember("00", "01", 2.0)
    assert list(known) == [Stretch("00", "01", 2.0), Stretch("01", "02", 1.0)]
