"""Retries: which calls are retried, and after how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import inf
from typing import Final

from attrs import frozen

from ..backoff import Backoff
from ..effects import Instant

RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which an idempotent call is retried."""

NOT_DONE: Final = frozenset({429, 503})
"""Statuses which mean that definitely nothing was done: every call is retried."""

SHORTEST_TRY: Final = 0.5
"""Minimum remaining seconds for a retry."""

LONGEST_HINT: Final = 24 * 3600.0
"""Maximum seconds of `Retry-After`. A longer pause is too long for any call, which then gives up."""

_MILLISECONDS: Final = ("retry-after-ms", "x-ms-retry-after-ms")
_NUMBER: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_LONGEST_DATE: Final = 64


@frozen(kw_only=True)
class RetryPolicy:
    """How often a call is retried, and the shortest and longest pause before a retry, in seconds."""

    max_retries: int = 3
    retry_delay: float = 4.0
    max_retry_delay: float = 60.0

    def pause(self, n: int, chance: float) -> float:
        """Return the seconds before the n-th retry, counted from 1.

        They double each time, and vary by ±20 % for a random number from 0 to 1.
        """
        return min(Backoff(first=self.retry_delay, longest=inf).pause(n, chance), self.max_retry_delay)


NO_RETRY: Final = RetryPolicy(max_retries=0)


def is_uncertain(status: int) -> bool:
    """Return whether it is unknown, after a response, if the call was executed."""
    return status == 408 or (status >= 500 and status not in NOT_DONE)


def retry_after(headers: Mapping[str, str], now: Instant) -> float | None:
    """Return the pause that Azure requested, in seconds: the first plausible value of its three headers.

    `Retry-After` holds seconds or an HTTP date (RFC 9110 section 10.2.3), the others milliseconds.
    """
    hints = [_number(headers.get(name, ""), 0.001) for name in _MILLISECONDS]
    text = headers.get("retry-after", "")
    hints += [_number(text, 1.0), _until(text, now)]
    return next((min(hint, LONGEST_HINT) for hint in hints if hint is not None), None)


def _number(text: str, unit: float) -> float | None:
    return float(text) * unit if _NUMBER.fullmatch(text) else None


def _until(date: str, now: Instant) -> float | None:
    """Return the seconds until an HTTP date, or 0 if it is past."""
    if not date or len(date) > _LONGEST_DATE:
        return None
    try:
        moment = parsedate_to_datetime(date)
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
