"""Values as people read them: durations as `1h`, times as "in 54 min", lists with commas, marks in colour."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from cloudid_core.catalog import CATALOG
from cloudid_core.forms import spellings_of
from cloudid_core.values import rfc3339

MORE_DURATIONS: Final = frozenset(
    {"lease_duration", "ttl", "creation_ttl", "explicit_max_ttl", "default_lease_ttl", "max_lease_ttl", "period"}
)
"""Members of answers that are seconds and no fields of a request."""
TIME_ENDS: Final = ("_time", "_time_utc")
"""How members end that are seconds since 1970 where they are numbers."""
DURATION: Final = "duration"
"""How the kinds of fields begin whose values are durations."""
EARLIEST: Final = 10**9
RECORDED: Final = "time"
"""The member of entries of a log: when it was, as it is written there."""
UNITS: Final = ((24 * 3600, "d"), (3600, "h"), (60, "min"), (1, "s"))
"""Of relative times: the largest that fits twice, or whose number is exact."""

RED, GREEN, YELLOW = "31", "32", "33"
COLOURS: Final = tuple(
    (re.compile(pattern, re.MULTILINE), colour)
    for pattern, colour in (
        (r"^ *✗(?= )|^(?:PROBLEM|WRONG|FAILED)\b|(?<=^state)  +cannot serve$", RED),
        (r"^ *✓(?= )|^ok\b|(?<=^state)  +healthy$", GREEN),
        (r"^ *\?(?= )|^note\b|(?<=^state)  +serves, with problems$", YELLOW),
    )
)


def coloured(text: str) -> str:
    """Return a text for standard output, with its marks in colour where that is a terminal that shows colours."""
    if not has_colours(sys.stdout.isatty()):
        return text
    for pattern, colour in COLOURS:
        text = pattern.sub(lambda found, colour=colour: in_colour(found[0], colour), text)  # type: ignore[misc]
    return text


def in_colour(text: str, colour: str) -> str:
    return f"\033[{colour}m{text}\033[0m"


def has_colours(is_terminal: bool) -> bool:
    """Return whether to use colours: on a terminal, unless `NO_COLOR` is set or the terminal has none."""
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def text_of(value: object, name: str = "", now: float | None = None) -> str:
    """Return a value in words. `name`: of the member that has it, which says what a number means."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return _number(value, name, now)
        case str():
            return value if name == RECORDED else _time(value, now)
        case Mapping():
            return ", ".join(f"{key}={text_of(each, key, now)}" for key, each in value.items())
        case Sequence():
            parts = [text_of(each, name, now) for each in value]
            return ("; " if any(isinstance(each, Mapping) for each in value) else ", ").join(parts)
        case _:
            return json.dumps(value, ensure_ascii=False)


def duration(seconds: float) -> str:
    """Return seconds as `1h30m` or `32d`, which every field for a duration takes."""
    if seconds != int(seconds) or seconds < 0:
        return f"{seconds:g}s"
    left = int(seconds)
    if left and left % (24 * 3600) == 0:
        return f"{left // (24 * 3600)}d"
    parts = []
    for size, unit in ((3600, "h"), (60, "m"), (1, "s")):
        number, left = divmod(left, size)
        parts += [f"{number}{unit}"] if number else []
    return "".join(parts) or "0"


def relative(instant: float, now: float | None = None) -> str:
    """Return a time as "in 54 min" or "45 s ago"."""
    seconds = instant - (time.time() if now is None else now)
    size, unit = next(((size, unit) for size, unit in UNITS if abs(seconds) >= 2 * size), UNITS[-1])
    count = f"{abs(seconds) / size:.0f} {unit}"
    return f"in {count}" if seconds > 0 else f"{count} ago"


def _number(value: float, name: str, now: float | None) -> str:
    if name in _durations():
        return duration(value)
    if name.endswith(TIME_ENDS) and value > EARLIEST:
        return relative(value, now)
    return str(value)


def _time(text: str, now: float | None) -> str:
    try:
        return relative(rfc3339.parse(text), now)
    except ValueError:
        return text


@cache
def _durations() -> frozenset[str]:
    """The names of members that are seconds: those of all fields for durations, and `MORE_DURATIONS`."""
    forms = {route.form for component in CATALOG for route in component.routes.routes}
    fields = {name: field for form in forms for name, field in spellings_of(form).items()}
    return MORE_DURATIONS | {name for name, field in fields.items() if field.kind.name.startswith(DURATION)}
