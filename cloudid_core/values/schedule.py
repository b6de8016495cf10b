"""Schedules: cron expressions of five fields, in UTC.

Minute, hour, day of month, month, day of week: each `*`, a number or name, a range `a-b`, a step `…/n`, or a list of
these. If both day fields are restricted, a day has to satisfy either of them. A field that starts with `*` does not
restrict, and then the day has to satisfy both.

There is no library for this: a write is refused if its schedule is never due or has too long a gap, with a text that
names the field, and libraries do neither. They iterate over dates, accept six fields and other extensions, and each
embedder would have to install one. The tests compare this module with `cronsim`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain, pairwise
from typing import Final

from attrs import field, frozen

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST: Final = 256
_SHORT_MONTHS: Final = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_HORIZON: Final = 41 * 366
"""Days. The rarest slot, 29 February on one day of the week, recurs within 40 years."""

_TERM: Final = re.compile(
    r"(?:(?P<star>\*)|(?P<first>[a-z0-9]+)(?:-(?P<last>[a-z0-9]+))?)(?:/(?P<step>0?[1-9][0-9]{0,3}))?"
)


def _words(least: int, most: int, names: str = "") -> dict[str, int]:
    """Return the spellings of the numbers from `least` to `most`.

    They are the number, with or without a leading zero, and its name.
    """
    numbers = range(least, most + 1)
    named = dict(zip(names.split(), numbers, strict=False))
    return {str(n): n for n in numbers} | {f"{n:02}": n for n in numbers} | named


_MINUTES: Final = _words(0, 59)
_HOURS: Final = _words(0, 23)
_DAYS: Final = _words(1, 31)
_MONTHS: Final = _words(1, 12, "jan feb mar apr may jun jul aug sep oct nov dec")
_WEEKDAYS: Final = _words(0, 7, "sun mon tue wed thu fri sat")


@frozen
class Schedule:
    """The days of a schedule, and the times on such a day."""

    text: str
    minutes: tuple[int, ...] = field(repr=False)
    """Minutes of the day in ascending order, at least one."""
    days: frozenset[int] = field(repr=False)
    months: frozenset[int] = field(repr=False)
    weekdays: frozenset[int] = field(repr=False)
    """0 is Sunday."""
    either_day: bool = field(repr=False)
    """Whether a day has to satisfy only one of `days` and `weekdays`."""

    @classmethod
    def parse(cls, text: object) -> Schedule:
        """Parse a cron expression. Refuse one that is never due (31 February)."""
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise ValueError("must be a cron expression")
        fields = text.lower().split()
        if len(fields) != 5:
            raise ValueError("must be a cron expression of five fields")
        minutes = _values(fields[0], "minute", _MINUTES)
        hours = _values(fields[1], "hour", _HOURS)
        days = _values(fields[2], "day of month", _DAYS)
        months = _values(fields[3], "month", _MONTHS)
        weekdays = frozenset(day % 7 for day in _values(fields[4], "day of week", _WEEKDAYS))
        either_day = not fields[2].startswith("*") and not fields[4].startswith("*")
        if not either_day and min(days) > max(_SHORT_MONTHS.get(month, 31) for month in months):
            raise ValueError("must be a cron expression with a day that exists in its months")
        times = sorted(60 * hour + minute for hour in hours for minute in minutes)
        return cls(text, tuple(times), days, months, weekdays, either_day)

    def next_after(self, instant: float) -> float:
        """Return the first due instant after `instant`, both in seconds since the epoch."""
        earliest = _EPOCH + timedelta(minutes=instant // 60 + 1)
        today, minute = earliest.date(), 60 * earliest.hour + earliest.minute
        index = bisect_left(self.minutes, minute)
        if self._includes(today) and index < len(self.minutes):
            return _instant(today, self.minutes[index])
        return _instant(self._next_day(today), self.minutes[0])

    def longest_gap(self) -> float:
        """Return the longest time between two consecutive due instants, in seconds."""
        gaps = [0.0, *(60.0 * (later - earlier) for earlier, later in pairwise(self.minutes))]
        day = self._next_day(_EPOCH.date())
        while day.toordinal() - _EPOCH.toordinal() < _HORIZON:
            after = self._next_day(day)
            gaps.append(_instant(after, self.minutes[0]) - _instant(day, self.minutes[-1]))
            day = after
        return max(gaps)

    def _next_day(self, day: date) -> date:
        """Return the first day after `day`."""
        for _ in range(_HORIZON):
            is_in_month = day.month in self.months
            day = day + timedelta(days=1) if is_in_month else (day.replace(day=1) + timedelta(days=32)).replace(day=1)
            if self._includes(day):
                return day
        raise AssertionError("every schedule that parses recurs within the horizon")

    def _includes(self, day: date) -> bool:
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        fits = (by_date or by_weekday) if self.either_day else (by_date and by_weekday)
        return fits and day.month in self.months


def _instant(day: date, minute: int) -> float:
    return datetime.combine(day, time(*divmod(minute, 60)), tzinfo=UTC).timestamp()


def _values(text: str, unit: str, words: dict[str, int]) -> frozenset[int]:
    """Return the values that one field of the expression lists."""
    ranges = [_range(term, words) for term in text.split(",")]
    if not all(ranges):
        raise ValueError(f"must be a cron expression with a valid {unit}")
    return frozenset(chain.from_iterable(ranges))


def _range(term: str, words: dict[str, int]) -> range:
    """Return the values of one term, or none if it is malformed."""
    found = _TERM.fullmatch(term)
    if found is None:
        return range(0)
    first = min(words.values()) if found["star"] else words.get(found["first"])
    if found["last"]:
        last = words.get(found["last"])
    else:
        last = max(words.values()) if found["star"] or found["step"] else first
    if first is None or last is None:
        return range(0)
    return range(first, last + 1, int(found["step"] or 1))
