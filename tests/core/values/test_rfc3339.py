"""Instants as texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values import rfc3339


@pytest.mark.parametrize(
    "instant, expected",
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_795_231_247, "2026-11-21T03:20:47Z"),
        (1_795_231_247.25, "2026-11-21T03:20:47.250Z"),
        (0.9996, "1970-01-01T00:00:01Z"),
        (0.0004, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (-62_135_596_800, "0001-01-01T00:00:00Z"),
    ],
)
def test_show(instant: float, expected: str) -> None:
    assert rfc3339.show(instant) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2026-11-21T03:20:47Z", 1_795_231_247),
        ("2026-11-21t03:20:47z", 1_795_231_247),
        ("2026-11-21T04:20:47+01:00", 1_795_231_247),
        ("2026-11-20T21:50:47-05:30", 1_795_231_247),
        ("2026-11-21T03:20:47.5Z", 1_795_231_247.5),
        ("2026-11-21T03:20:47.1234567Z", 1_795_231_247.123456),
        ("2026-11-21T03:20:47.123456789Z", 1_795_231_247.123456),
        ("0001-01-01T00:00:00+23:59", -62_135_683_140),
    ],
)
def test_parse(text: str, expected: float) -> None:
    assert rfc3339.parse(text) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-21",
        "2026-11-21T03:20:47",
        "2026-11-21 03:20:47Z",
        "2026-11-21T03:20Z",
        "2026-11-21T03:20:47Z\n",
        "2026-11-21T03:20:47,5Z",
        "2026-11-21T03:20:47.Z",
        "2026-11-21T03:20:47.1234567890Z",
        "2026-11-21T03:20:47+0100",
        "2026-11-21T03:20:47+24:00",
        "2026-11-21T24:00:00Z",
        "2026-11-21T03:60:00Z",
        "2026-11-21T23:59:60Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-11-21T03:20:4\N{ARABIC-INDIC DIGIT SEVEN}Z",
        "20261121T032047Z",
        None,
        1_795_231_247,
    ],
)
def test_what_is_no_time(text: object) -> None:
    with pytest.raises(ValueError, match=r"^must be a time (such as 2026-11-21T03:20:47Z|that exists)$"):
        rfc3339.parse(text)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_what_is_shown_reads_back_the_same(milliseconds: int) -> None:
    instant = milliseconds / 1000
    assert rfc3339.parse(rfc3339.show(instant)) == instant


ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(min_value=datetime(1000, 1, 1), timezones=ZONES))  # noqa: DTZ001 - hypothesis wants it naive
def test_offsets_agree_with_the_oracle(moment: datetime) -> None:
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    assert rfc3339.parse(moment.isoformat()) == expected
