"""The token bucket."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.caches import Bounded
from cloudid_core.quotas.rate_limit import Taken, take


def buckets(size: int = 4) -> Bounded[Hashable, Any]:
    return Bounded(size)


def wait(
    kept: Bounded[Hashable, Any], key: str, now: float, *, size: float, interval: float, block: float = 0
) -> float:
    """When to come again, after one was taken."""
    return take(kept, key, now, size=size, interval=interval, block=block).wait


def test_so_many_pass_at_once_and_as_many_again_in_an_interval() -> None:
    kept = buckets()
    assert [wait(kept, "a", 100.0, size=3, interval=60) for _ in range(4)] == [0, 0, 0, 20]
    assert wait(kept, "a", 119.0, size=3, interval=60) == pytest.approx(1.0)
    assert wait(kept, "a", 120.0, size=3, interval=60) == 0
    assert [wait(kept, "a", 1000.0, size=3, interval=60) for _ in range(4)] == [0, 0, 0, 20]


def test_who_took_too_many_is_blocked() -> None:
    kept = buckets()
    waits = [wait(kept, "a", at, size=1, interval=1, block=30) for at in (0.0, 0.0, 10.0, 29.0, 30.0)]
    assert waits == [0, 30, 20, 1, 0]


def test_a_rate_below_one_lets_one_pass() -> None:
    kept = buckets()
    assert [wait(kept, "a", at, size=0.1, interval=1) for at in (0.0, 5.0, 10.0)] == [0, 5, 0]


def test_a_clock_that_was_set_back_fills_nothing() -> None:
    kept = buckets()
    assert wait(kept, "a", 100.0, size=1, interval=60) == 0
    assert wait(kept, "a", 40.0, size=1, interval=60) > 0


def test_each_key_has_its_own() -> None:
    kept = buckets()
    assert [wait(kept, key, 0.0, size=1, interval=60) for key in "aabb"] == [0, 60, 0, 60]


def test_it_tells_what_is_left_and_when_it_is_full_again() -> None:
    kept = buckets()
    assert take(kept, "a", 0.0, size=2.5, interval=10) == Taken(0, 2, 1, 4)
    assert take(kept, "a", 0.0, size=2.5, interval=10) == Taken(0, 2, 0, 8)
    assert take(kept, "a", 0.0, size=2.5, interval=10) == Taken(2, 2, 0, 8)
    assert take(kept, "a", 4.0, size=2.5, interval=10) == Taken(0, 2, 0, 8)


def test_nothing_is_left_while_it_is_blocked() -> None:
    kept = buckets()
    taken = [take(kept, "a", at, size=2, interval=10, block=60) for at in (0.0, 0.0, 0.0, 40.0, 60.0)]
    assert [(each.wait, each.remaining, each.full_in) for each in taken] == [
        (0, 1, 5),
        (0, 0, 10),
        (60, 0, 60),
        (20, 0, 20),
        (0, 1, 5),
    ]


@given(st.lists(st.floats(0, 10), max_size=60), st.integers(1, 5), st.integers(1, 20))
def test_no_more_pass_than_the_rate_allows(pauses: list[float], size: int, interval: int) -> None:
    kept, now, passed = buckets(), 0.0, 0
    for pause in pauses:
        now += pause
        passed += not wait(kept, "a", now, size=size, interval=interval)
    assert passed <= size + now * size / interval + 1e-6
