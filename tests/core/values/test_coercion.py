"""Weak scalars."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from cloudid_core.values import coercion

INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    "raw, expected",
    [
        ("", ""),
        (" a ", " a "),
        (7, "7"),
        (1.5, "1.5"),
        (-0.25, "-0.25"),
        (Raw("1.50"), "1.5"),
        (Raw("1e2"), "100.0"),
        (True, "1"),
        (False, "0"),
        (None, ""),
    ],
)
def test_text(raw: object, expected: str) -> None:
    assert coercion.text(raw) == expected


@pytest.mark.parametrize("raw", [[], ["a"], {}, {"a": 1}, (), b"a"])
def test_text_refuses_what_is_no_scalar(raw: object) -> None:
    with pytest.raises(ValueError):
        coercion.text(raw)


@pytest.mark.parametrize(
    "raw, expected",
    [
        (None, 0),
        ("", 0),
        (True, 1),
        (False, 0),
        (3, 3),
        (3.0, 3),
        (Raw("3.0"), 3),
        (Raw("3e2"), 300),
        (-3.0, -3),
        ("12", 12),
        ("+12", 12),
        ("-12", -12),
        ("0", 0),
        ("00", 0),
        ("010", 8),
        ("0x1F", 31),
        ("0X1f", 31),
        ("-0x1f", -31),
        ("0o17", 15),
        ("0b101", 5),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
    ],
)
def test_integer(raw: object, expected: int) -> None:
    number = coercion.integer(raw)
    assert number == expected
    assert type(number) is int


@pytest.mark.parametrize(
    "raw",
    [
        1.5,
        Raw("1.5"),
        Raw("1e19"),
        float("inf"),
        float("nan"),
        1e19,
        2**63,
        -(2**63) - 1,
        str(2**63),
        "1.5",
        "3.0",
        "1e3",
        "1_000",
        " 1",
        "1\n",
        "٣",
        "08",
        "0b2",
        "0x",
        "--1",
        "+",
        "one",
        "1" * 10_000,
        [],
        [1],
        {},
    ],
)
def test_integer_refuses(raw: object) -> None:
    with pytest.raises(ValueError, match="must be an integer"):
        coercion.integer(raw)


@given(INT64, st.sampled_from([str, hex, oct, bin, float, int]))
def test_every_notation_of_an_integer_reads_the_same(number: int, notation: type) -> None:
    written = notation(number)
    if isinstance(written, float) and abs(number) > 2**53:
        return
    assert coercion.integer(written) == number


@pytest.mark.parametrize("raw", [True, 1, -1, 0.5, Raw("5e-1"), "1", "t", "T", "true", "TRUE", "True"])
def test_true(raw: object) -> None:
    assert coercion.boolean(raw) is True


@pytest.mark.parametrize("raw", [False, None, "", 0, 0.0, Raw("0.0"), "0", "f", "F", "false", "FALSE", "False"])
def test_false(raw: object) -> None:
    assert coercion.boolean(raw) is False


@pytest.mark.parametrize("raw", ["yes", "no", "2", "tRuE", " true", [], [True], {}])
def test_boolean_refuses(raw: object) -> None:
    with pytest.raises(ValueError, match="must be true or false"):
        coercion.boolean(raw)


@pytest.mark.parametrize("read", [coercion.text, coercion.integer, coercion.boolean])
@pytest.mark.parametrize("raw", [Raw("1e999"), Raw("-1e999")])
def test_a_number_that_is_infinite_is_refused(read: Callable[[object], object], raw: Raw) -> None:
    with pytest.raises(ValueError, match="must be a number in the range"):
        read(raw)


@given(st.from_regex(r"[g-z]{8,}", fullmatch=True))
def test_errors_do_not_hold_the_input(raw: str) -> None:
    for read in (coercion.integer, coercion.boolean):
        with pytest.raises(ValueError) as caught:
            read(raw)
        assert raw not in str(caught.value)
