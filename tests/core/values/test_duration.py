"""Durations."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values import duration

LONGEST = (2**63 - 1) // 10**9
NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


@pytest.mark.parametrize(
    "raw, expected",
    [
        (None, 0),
        ("", 0),
        (0, 0),
        (3600, 3600),
        ("0", 0),
        ("3600", 3600),
        ("+5", 5),
        ("007", 7),
        ("1d", 86_400),
        ("182d", 15_724_800),
        ("90m", 5400),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("1.h", 3600),
        (".5m", 30),
        ("30m1h", 5400),
        ("1m1m", 120),
        ("1500ms", 1),
        ("2000000μs", 2),
        ("3000000us", 3),
        ("1999999999ns", 1),
        ("-0", 0),
        (LONGEST, LONGEST),
        (f"{LONGEST}s", LONGEST),
    ],
)
def test_seconds(raw: object, expected: int) -> None:
    length = duration.seconds(raw)
    assert length == expected
    assert type(length) is int


@pytest.mark.parametrize(
    "raw",
    [
        True,
        False,
        1.5,
        3.0,
        float("nan"),
        [],
        [5],
        {},
        " 5",
        "5 s",
        "5\n",
        "5S",
        "5H",
        "1w",
        "1y",
        "1.5d",
        "1d12h",
        "12h1d",
        "1.5",
        ".",
        ".s",
        "s",
        "+",
        "-",
        "d",
        "1h-5m",
        "--5s",
        "٣s",
        "1e3s",
        "soon",
        LONGEST + 1,
        -LONGEST - 1,
        str(LONGEST + 1),
        f"{LONGEST + 1}s",
        "106752d",
        "2562048h",
        "9" * 90 + "s",
        "0" * 1_000_000,
    ],
)
def test_what_is_no_duration(raw: object) -> None:
    for read in (duration.seconds, duration.precise_seconds):
        with pytest.raises(ValueError, match="must be a duration"):
            read(raw)


@pytest.mark.parametrize("raw", [-5, "-5", "-1d", "-1h30m", "-0.5s", "-1ns"])
def test_plain_durations_are_not_negative(raw: object) -> None:
    for read in (duration.seconds, duration.precise_seconds):
        with pytest.raises(ValueError, match="negative") as caught:
            read(raw)
        assert str(raw) not in str(caught.value)


@pytest.mark.parametrize("raw, expected", [("500ms", 0.5), ("1m0.25s", 60.25), ("1ns", 1e-9), (4, 4.0), ("", 0.0)])
def test_precise_seconds_keep_fractions(raw: object, expected: float) -> None:
    length = duration.precise_seconds(raw)
    assert length == expected
    assert type(length) is float


@pytest.mark.parametrize(
    "length, expected",
    [(4, "4s"), (60.0, "60s"), (0.5, "0.5s"), (0, "0s"), (100, "100s"), (1e-9, "0.000000001s"), (86_400, "86400s")],
)
def test_show(length: float, expected: str) -> None:
    assert duration.show(length) == expected


@given(st.integers(0, LONGEST * 10**9))
def test_what_is_shown_reads_back_the_same(nanoseconds: int) -> None:
    length = duration.precise_seconds(f"{nanoseconds}ns")
    assert duration.precise_seconds(duration.show(length)) == length


DIGITS = st.integers(0, 9999).map(str)
DECIMALS = DIGITS | st.builds("{}.{}".format, DIGITS, DIGITS) | DIGITS.map("{}.".format) | DIGITS.map(".{}".format)


@pytest.mark.parametrize("raw", ["1ns", "900ms", "999999µs", "0.5s", ".999s", "999999999ns"])
def test_a_positive_duration_below_a_second_does_not_become_zero(raw: str) -> None:
    """0 often means without limit."""
    with pytest.raises(ValueError, match="at least a second"):
        duration.seconds(raw)


@given(st.lists(st.tuples(DECIMALS, st.sampled_from(sorted(NANOSECONDS))), min_size=1, max_size=5), st.booleans())
def test_parts_add_up(parts: list[tuple[str, str]], negative: bool) -> None:
    """Every part is cut off at the nanosecond, the sum at the second; less than nothing is refused."""
    total = sum(int(Fraction(number) * NANOSECONDS[unit]) for number, unit in parts)
    text = "-" * negative + "".join(number + unit for number, unit in parts)
    if (negative and total) or 0 < total < 10**9:
        with pytest.raises(ValueError, match=r"negative|second"):
            duration.seconds(text)
    else:
        assert duration.seconds(text) == total // 10**9


@given(st.text(alphabet="0123456789.+-dhmsnuµ ", max_size=12))
def test_texts_are_read_or_refused_without_being_shown(text: str) -> None:
    try:
        assert 0 <= duration.seconds(text) <= duration.precise_seconds(text) <= LONGEST
    except ValueError as error:
        assert str(error) in {  # noqa: PT017 - either outcome is right, but not every text
            "must be a duration",
            "must be a duration such as 30s, 5m or 1h30m",
            "must be a duration of 0 or at least a second",
            "must be a duration of less than 292 years",
            "must not be a negative duration",
        }
