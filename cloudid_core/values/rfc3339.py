"""Instants as RFC 3339 texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt](?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def show(instant: float) -> str:
    """Seconds since the epoch as a text in UTC: "2026-11-21T03:20:47Z", with milliseconds where they are not zero."""
    moment = _EPOCH + timedelta(milliseconds=round(instant * 1000))
    text = moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
    return text.removesuffix("+00:00") + "Z"


def show_now(instant: float) -> str:
    """As `show`, always with milliseconds; quick for instants that are close to each other."""
    milliseconds = round(instant * 1000)
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(4)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds").removesuffix("+00:00")


def parse(text: object) -> float:
    """Seconds since the epoch, to the microsecond; any offset from UTC is understood. Leap seconds are refused."""
    if not isinstance(text, str) or not _TEXT.fullmatch(text):
        raise ValueError("must be a time such as 2026-11-21T03:20:47Z")
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except ValueError:
        raise ValueError("must be a time that exists") from None
