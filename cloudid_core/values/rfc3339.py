"""Instants as RFC 3339 texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

LATEST: Final = 253_402_300_799.0
"""The end of the year 9999: the latest time that has a text."""
_TO_SECONDS: Final = len("2026-11-21T03:20:47")
_TEXT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt](?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)


@lru_cache(4096)
def show(instant: float) -> str:
    """Return seconds since the epoch as text in UTC: "2026-11-21T03:20:47Z", with milliseconds unless they are zero.

    Repeated look-ups of a token show the same times.
    """
    seconds, millis = divmod(round(instant * 1000), 1000)
    return f"{_second(seconds)}.{millis:03}Z" if millis else f"{_second(seconds)}Z"


def show_now(instant: float) -> str:
    """Return a text like `show`, always with milliseconds."""
    seconds, millis = divmod(round(instant * 1000), 1000)
    return f"{_second(seconds)}.{millis:03}Z"


@lru_cache(256)
def _second(seconds: int) -> str:
    """Return the text of a second. Responses and events that follow each other share it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:_TO_SECONDS]


def parse(text: object) -> float:
    """Return seconds since the epoch, to the microsecond, for any offset from UTC. Leap seconds are refused."""
    if not isinstance(text, str) or not _TEXT.fullmatch(text):
        raise ValueError("must be a time such as 2026-11-21T03:20:47Z")
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except ValueError:
        raise ValueError("must be a time that exists") from None
