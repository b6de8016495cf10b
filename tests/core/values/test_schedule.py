"""Cron schedules, compared with an independent implementation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import example, given
from hypothesis import strategies as st

from cloudid_core.values import rfc3339
from cloudid_core.values.schedule import Schedule


@pytest.mark.parametrize(
    "text, instant, expected",
    [
        ("* * * * *", "2026-11-21T03:20:47Z", "2026-11-21T03:21:00Z"),
        ("20 3 * * *", "2026-11-21T03:19:59.999Z", "2026-11-21T03:20:00Z"),
        ("20 3 * * *", "2026-11-21T03:20:00Z", "2026-11-22T03:20:00Z"),
        ("0 0 1 1 *", "2026-11-21T03:20:47Z", "2027-01-01T00:00:00Z"),
        ("59 23 31 DEC *", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"),
        ("0 0 * * 0", "2026-11-21T03:20:47Z", "2026-11-22T00:00:00Z"),
        ("0 0 * * 7", "2026-11-21T03:20:47Z", "2026-11-22T00:00:00Z"),
        ("0 0 * * Sun", "2026-11-21T03:20:47Z", "2026-11-22T00:00:00Z"),
        ("0 9-17/4 * * mon-fri", "2026-11-20T17:00:00Z", "2026-11-23T09:00:00Z"),
        ("5/20 * * * *", "2026-11-21T03:20:47Z", "2026-11-21T03:25:00Z"),
        ("1,2,3-5 00 * * *", "2026-11-21T00:03:00Z", "2026-11-21T00:04:00Z"),
        ("0 0 13 * fri", "2026-11-21T00:00:00Z", "2026-11-27T00:00:00Z"),
        ("0 0 */2 * fri", "2026-11-21T00:00:00Z", "2026-11-27T00:00:00Z"),
        ("0 0 31 2 mon", "2026-11-21T00:00:00Z", "2027-02-01T00:00:00Z"),
        ("0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"),
        ("0 0 29 2 */7", "2088-02-29T00:00:00Z", "2128-02-29T00:00:00Z"),
        ("0\t0  2 1 *", "1969-12-31T23:59:59Z", "1970-01-02T00:00:00Z"),
    ],
)
def test_next_after(text: str, instant: str, expected: str) -> None:
    assert rfc3339.show(Schedule.parse(text).next_after(rfc3339.parse(instant))) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@daily",
        "* * * *",
        "0 * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "-1 * * * *",
        "*/0 * * * *",
        "*/00 * * * *",
        "*/x * * * *",
        "*/-1 * * * *",
        "5-1 * * * *",
        "1- * * * *",
        "1-2-3 * * * *",
        "1//2 * * * *",
        "1,,2 * * * *",
        ",1 * * * *",
        "** * * * *",
        "? * * * *",
        "* * L * *",
        "* * 15W * *",
        "* * * * fri#2",
        "* * * * 5L",
        "jan * * * *",
        "* * * foo *",
        "* * * january *",
        "* * * * fri-sun",
        "٣ * * * *",
        "0 0 30 2 *",
        "0 0 31 2,4,6,9,11 *",
        "0 0 31 feb */2",
        "0," * 1000 + "0 * * * *",
        None,
        5,
        ["* * * * *"],
    ],
)
def test_what_is_no_schedule(text: object) -> None:
    with pytest.raises(ValueError, match=r"^must be a cron expression"):
        Schedule.parse(text)


def test_schedules_compare_by_value() -> None:
    assert Schedule.parse("0 0 * * *") == Schedule.parse("0 0 * * *") != Schedule.parse("0 1 * * *")
    assert repr(Schedule.parse("0 0 * * *")) == "Schedule(text='0 0 * * *')"


MONTHS = ("jan", "Feb", "MAR", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "Mon", "TUE", "wed", "thu", "fri", "sat")


@st.composite
def fields(draw: st.DrawFn, least: int, most: int, names: tuple[str, ...] = ()) -> str:
    """One field of an expression, with every form of term; some run backwards or are out of range."""

    def term() -> str:
        step = draw(st.sampled_from(["", "", "/1", "/2", "/5", "/30", "/99"]))
        first = draw(st.integers(least, most))
        match draw(st.sampled_from(["*", "number", "number", "range", "name"])):
            case "*":
                return "*" + step
            case "range":
                last = draw(st.integers(max(least, first - 1), most + 1))
                # The oracle takes "5-5/2" for "5/2", which goes on to the end.
                return f"{first}-{last}" + (step if last != first else "")
            case "name" if names:
                return draw(st.sampled_from(names)) + step
            case _:
                return f"{first}{step}"

    return ",".join(term() for _ in range(draw(st.integers(1, 3))))


EXPRESSIONS = st.builds(
    lambda *parts: " ".join(parts),
    fields(0, 59),
    fields(0, 23),
    fields(1, 31),
    fields(1, 12, MONTHS),
    fields(0, 7, WEEKDAYS),
)
MOMENTS = st.datetimes(min_value=datetime(1999, 12, 1), max_value=datetime(2101, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(EXPRESSIONS, MOMENTS)
@example("0 0 29 2 *", datetime(2096, 3, 1, tzinfo=UTC))
@example("* * * * *", datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC))
def test_the_oracle_agrees(text: str, moment: datetime) -> None:
    """Both refuse an expression, or both name the same three instants that follow."""
    try:
        oracle = CronSim(text, moment)
    except CronSimError:
        with pytest.raises(ValueError):
            Schedule.parse(text)
        return
    schedule, instant = Schedule.parse(text), moment.timestamp()
    for _ in range(3):
        instant = schedule.next_after(instant)
        assert datetime.fromtimestamp(instant, UTC) == next(oracle)


@given(EXPRESSIONS, MOMENTS, st.timedeltas(timedelta(), timedelta(days=40)))
def test_nothing_lies_between(text: str, moment: datetime, later: timedelta) -> None:
    """From anywhere before a due instant, that instant or an earlier one is next; never one in the past."""
    try:
        schedule = Schedule.parse(text)
    except ValueError:
        return
    start, other = moment.timestamp(), (moment + later).timestamp()
    due = schedule.next_after(start)
    assert due > start
    assert due % 60 == 0
    if other < due:
        assert schedule.next_after(other) == due


@given(st.text(alphabet="0123456789*/,- LW#?janmon", max_size=20))
def test_texts_are_read_or_refused_without_being_shown(text: str) -> None:
    try:
        Schedule.parse(text)
    except ValueError as error:
        assert str(error).startswith("must be a cron expression")  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    "text, days",
    [
        ("0 3 * * *", 1),
        ("0 3 * * 0", 7),
        ("0 3 1 * *", 31),
        ("0 3 1 1 *", 366),
        ("0 0,12 * * *", 0.5),
        ("0 8-20 * * *", 0.5),
        ("* * * * *", 1 / 1440),
        ("0 0 29 2 *", 4 * 365 + 1),
    ],
)
def test_the_longest_gap(text: str, days: float) -> None:
    assert Schedule.parse(text).longest_gap() == days * 86_400
