"""JSON from outside: what is read, and what is refused for its values, its depth and its numbers."""

from __future__ import annotations

import json
import math
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values.json_text import DEEPEST, MOST_CONTAINERS, MOST_VALUES, TooComplex, computed, decode, is_deeper

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_what_is_read_is_what_was_written(value: object) -> None:
    for text in (json.dumps(value), msgspec.json.encode(value)):
        assert msgspec.json.decode(msgspec.json.encode(decode(text))) == value


@pytest.mark.parametrize("text", ["1e308", "-0.0", "1.5", "2.2250738585072011e-308", "5e-324", "0." + "1" * 5000])
def test_a_number_with_a_fraction_stays_as_it_is_written_until_it_is_wanted(text: str) -> None:
    number = decode(f'{{"a":[{text}]}}')["a"][0]
    assert msgspec.json.encode(number) == text.encode()
    assert computed(number) == float(text)
    assert math.copysign(1, float(text)) == math.copysign(1, cast(float, computed(number)))


def test_an_infinite_number_has_no_value() -> None:
    for text in ("1e999", "-1e999"):
        with pytest.raises(ValueError, match="must be a number in the range"):
            computed(decode(text))


def test_other_values_are_computed_already() -> None:
    for value in (None, True, 7, "1.5", [1], {"a": 1}, 2.5):
        assert computed(value) is value


@pytest.mark.parametrize("text", ["", "{", "NaN", "1e", ".5", '"\\ud800"', '"\ud800"', "9" * 5000, b'"\xff"'])
def test_what_is_not_json_is_no_value(text: bytes | str) -> None:
    with pytest.raises(ValueError) as refused:
        decode(text)
    assert not isinstance(refused.value, TooComplex)


@pytest.mark.parametrize("element", ["1e308", "[]", "{}", '""', "1", '{"":0}', '[[[""]]]', '"x"', '"\\\\"', '"\\""'])
def test_the_number_of_values_is_bounded(element: str) -> None:
    """However short they are; and never one that is within the bound."""
    decode("[" + ",".join([element] * (MOST_CONTAINERS // 4)) + "]")
    with pytest.raises(TooComplex, match="too many values"):
        decode("[" + ",".join([element] * (MOST_VALUES + 2)) + "]")


@pytest.mark.parametrize("element, most", [("10", MOST_VALUES - 1), ("[]", MOST_CONTAINERS - 1)])
def test_exactly_as_many_as_are_allowed(element: str, most: int) -> None:
    decode("[" + ",".join([element] * most) + "]")
    with pytest.raises(TooComplex, match="too many values"):
        decode("[" + ",".join([element] * (most + 2)) + "]")


@pytest.mark.parametrize("text", ["a,", "[{", '"', "\\", '\\"', '\\,"[', "\n", "é,"])
def test_what_is_in_a_string_counts_for_nothing(text: str) -> None:
    """A policy, or a list separated by commas, may be as long as a body."""
    long = text * MOST_VALUES
    assert decode(json.dumps({"policy": long, "x": [1, 2]})) == {"policy": long, "x": [1, 2]}


@given(JSON)
def test_depth_is_counted_as_one_would(value: object) -> None:
    for limit in range(6):
        assert is_deeper(value, limit) == (depth_of(value) > limit)


def depth_of(value: object) -> int:
    """As one would define it."""
    match value:
        case dict():
            return 1 + max(map(depth_of, value.values()), default=0)
        case list():
            return 1 + max(map(depth_of, value), default=0)
        case _:
            return 0


@pytest.mark.parametrize("opening, closing", [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded(opening: str, closing: str) -> None:
    """Exactly as deep as is allowed is allowed; many shallow containers are no depth."""
    decode(opening * DEEPEST + "0" + closing * DEEPEST)
    decode("[" + ",".join([opening + "0" + closing] * 1000) + "]")
    for depth in (DEEPEST + 1, 500, 9_000):
        with pytest.raises(TooComplex, match="nested too deeply"):
            decode(opening * depth + "0" + closing * depth)
