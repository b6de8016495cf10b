"""Retries."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.provider.retry import LONGEST_HINT, NOT_DONE, RETRIED, RetryPolicy, is_uncertain, retry_after

NOW = 1_700_000_000.0
JITTER = st.floats(0, 1, exclude_max=True)


@given(st.integers(1, 20), JITTER, st.floats(0, 100), st.floats(0, 1000))
def test_the_pause_doubles_within_a_fifth_and_is_capped(n: int, jitter: float, delay: float, longest: float) -> None:
    pause = RetryPolicy(retry_delay=delay, max_retry_delay=longest).pause(n, jitter)
    exact = delay * 2 ** (n - 1)
    assert min(0.8 * exact, longest) <= pause * (1 + 1e-9)
    assert pause <= min(1.2 * exact, longest) * (1 + 1e-9)


@given(st.integers(0, 20), JITTER)
def test_the_total_of_all_pauses_is_bounded(retries: int, jitter: float) -> None:
    policy = RetryPolicy(max_retries=retries)
    assert sum(policy.pause(n, jitter) for n in range(1, retries + 1)) <= retries * policy.max_retry_delay


def test_defaults() -> None:
    assert [RetryPolicy().pause(n, 0.5) for n in range(1, 6)] == [4, 8, 16, 32, 60]


def test_only_a_definite_refusal_is_certain_not_to_have_been_carried_out() -> None:
    assert NOT_DONE < RETRIED
    assert {status for status in RETRIED if not is_uncertain(status)} == NOT_DONE
    assert [status for status in (200, 400, 401, 403, 404, 409, 429, 503) if is_uncertain(status)] == []
    assert [status for status in (408, 500, 501, 502, 504, 520, 599) if not is_uncertain(status)] == []


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({}, None),
        ({"retry-after": "17"}, 17),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "17"}, 0.25),
        ({"x-ms-retry-after-ms": "1500", "retry-after": "17"}, 1.5),
        ({"retry-after-ms": "1", "x-ms-retry-after-ms": "2"}, 0.001),
        ({"retry-after-ms": "soon", "retry-after": "17"}, 17),
        ({"retry-after": format_datetime(datetime.fromtimestamp(NOW + 90, UTC), usegmt=True)}, 90),
        ({"retry-after": format_datetime(datetime.fromtimestamp(NOW - 90, UTC), usegmt=True)}, 0),
        ({"retry-after": "86401"}, LONGEST_HINT),
        ({"retry-after-ms": "999999999999", "retry-after": "17"}, LONGEST_HINT),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST_HINT),
    ],
)
def test_the_first_believable_hint_counts(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        "-1",
        "nan",
        "inf",
        "1e3",
        "9" * 5000,
        "٣",
        "1 000",
        "5\n6",
        format_datetime(datetime.fromtimestamp(NOW + 90, UTC), usegmt=True) + " " * 64,
        "Fri, 99",
    ],
)
def test_hostile_hints_are_ignored(hostile: str) -> None:
    assert retry_after({"retry-after": hostile}, NOW) is None
    assert retry_after({"retry-after-ms": hostile}, NOW) is None


@given(st.text(max_size=80))
def test_any_hint_is_answered_with_sensible_seconds_or_nothing(text: str) -> None:
    seconds = retry_after({"retry-after": text}, NOW)
    assert seconds is None or 0 <= seconds <= LONGEST_HINT
