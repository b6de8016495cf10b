"""Durations: "90m", "1h30m", "182d", "0.5s", or a bare number of seconds.

The grammar: an integer is seconds; an integer with `d` is days of 24 hours, and stands alone; otherwise one or more
decimal numbers with a unit (ns, us, µs, ms, s, m, h) after an optional sign. "" and null are 0. A JSON number with a
fraction has no unit, so it is refused.
"""

from __future__ import annotations

import re
from typing import Final

_SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # micro sign, U+00B5
    "μs": 10**3,  # Greek letter mu, U+03BC
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_DAY: Final = 24 * 3600
_LONGEST: Final = (2**63 - 1) // _SECOND * _SECOND  # whole seconds that fit 64 bits of nanoseconds, about 292 years
_LONGEST_TEXT: Final = 100

_WHOLE: Final = re.compile(r"([+-]?[0-9]+)(d?)")
_PART: Final = re.compile(r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(ns|us|µs|μs|ms|s|m|h)")
_PARTS: Final = re.compile(rf"([+-]?)((?:{_PART.pattern})+)")


def seconds(raw: object) -> int:
    """Return a duration in whole seconds, rounded down. Refuse negative durations, and those below one second except 0.

    A limit of 900 ms must not become 0, which often means that there is no limit.
    """
    nanoseconds = _nanoseconds(raw)
    if 0 < nanoseconds < _SECOND:
        raise ValueError("must be a duration of 0 or at least a second")
    return nanoseconds // _SECOND


def precise_seconds(raw: object) -> float:
    """Return a duration in seconds, with its fraction to the nanosecond. Refuse negative durations."""
    return _nanoseconds(raw) / _SECOND


def show(seconds: float) -> str:
    """Return one number with the unit `s`, to the nanosecond ("4s", "0.5s"), which `precise_seconds` reads back."""
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


def _nanoseconds(raw: object) -> int:
    match raw:
        case None | "":
            return 0
        case bool():
            raise ValueError("must be a duration")
        case int():
            nanoseconds = raw * _SECOND
        case str() if len(raw) <= _LONGEST_TEXT:
            nanoseconds = _text_nanoseconds(raw)
        case _:
            raise ValueError("must be a duration")
    if abs(nanoseconds) > _LONGEST:
        raise ValueError("must be a duration of less than 292 years")
    if nanoseconds < 0:
        raise ValueError("must not be a negative duration")
    return nanoseconds


def _text_nanoseconds(text: str) -> int:
    if whole := _WHOLE.fullmatch(text):
        number, day = whole.groups()
        return int(number) * (_DAY if day else 1) * _SECOND
    if parts := _PARTS.fullmatch(text):
        length = 0
        for whole, fraction, bare_fraction, unit in _PART.findall(parts[2]):
            digits = fraction or bare_fraction
            length += int(whole or 0) * _UNITS[unit] + int(digits or 0) * _UNITS[unit] // 10 ** len(digits)
        return -length if parts[1] == "-" else length
    raise ValueError("must be a duration such as 30s, 5m or 1h30m")
