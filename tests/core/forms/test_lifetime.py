"""How long a token or lease may live."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.errors import Code, Refused
from cloudid_core.forms.lifetime import Grant, Terms, grant
from tests.sampling import examples


def granted(now: float = 0.0, increment: int = 0, **terms: Any) -> Grant:
    """What is granted at `now` to what was made at 0; the mount gives 50 by default and 100 at the most."""
    return grant(Terms(**{"default": 50, "max": 100, **terms}), start=0.0, now=now, increment=increment)


@pytest.mark.parametrize(
    "terms, ttl",
    [
        ({}, 50),
        ({"ttl": 30}, 30),
        ({"ttl": 100}, 100),
        ({"ttl": 30, "increment": 40}, 40),
        ({"period": 30}, 30),
        ({"period": 30, "ttl": 60, "increment": 40}, 30),
        ({"explicit_max_ttl": 50}, 50),
        ({"period": 30, "explicit_max_ttl": 20}, 20),
        ({"period": 30, "max_ttl": 20}, 20),
        ({"max": 1000, "ttl": 1000}, 1000),
    ],
)
def test_what_is_granted_at_issue(terms: dict[str, Any], ttl: int) -> None:
    assert granted(**terms).ttl == ttl


@pytest.mark.parametrize(
    "terms, ttl",
    [
        ({"ttl": 101}, 100),
        ({"increment": 101}, 100),
        ({"ttl": 60, "max_ttl": 40}, 40),
        ({"ttl": 60, "explicit_max_ttl": 40}, 40),
        ({"period": 101}, 100),
        ({"period": 60, "max_ttl": 40}, 40),
    ],
)
def test_what_is_capped_causes_a_warning(terms: dict[str, Any], ttl: int) -> None:
    assert granted(**terms).ttl == ttl
    assert len(granted(**terms).warnings) == 1


def test_a_default_that_is_capped_causes_no_warning() -> None:
    """A role that only sets a maximum asks for no TTL, so nothing that was asked for is refused."""
    assert granted(max_ttl=40) == Grant(40)
    assert granted(explicit_max_ttl=40) == Grant(40)


@pytest.mark.parametrize(
    "now, terms, ttl",
    [
        (60.0, {}, 40),
        (60.0, {"increment": 10}, 10),
        (60.0, {"ttl": 30}, 30),
        (80.0, {"ttl": 30}, 20),
        (60.5, {}, 39),
        (1000.0, {"period": 30}, 30),
        (1000.0, {"period": 30, "max_ttl": 40}, 30),
        (1000.0, {"period": 30, "explicit_max_ttl": 1010, "max": 2000}, 10),
    ],
)
def test_a_renewal_counts_from_now_and_stays_below_the_maximum_from_the_start(
    now: float, terms: dict[str, Any], ttl: int
) -> None:
    assert granted(now, **terms).ttl == ttl


@pytest.mark.parametrize(
    "now, terms",
    [
        (100.0, {}),
        (99.5, {}),
        (200.0, {"increment": 1}),
        (30.0, {"max_ttl": 30}),
        (30.0, {"period": 9, "explicit_max_ttl": 30}),
    ],
)
def test_past_the_maximum_nothing_is_granted(now: float, terms: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refusal:
        granted(now, **terms)
    assert refusal.value.code is Code.TOKEN_PAST_MAX_TTL


def naive(terms: Terms, age: int, increment: int) -> int:
    """The same, told second by second: the longest life that breaks no rule, up to what is wished."""
    limits = [limit for limit in (terms.max, terms.max_ttl, terms.explicit_max_ttl) if limit]
    if terms.period:
        wish = terms.period
        allowed = [life for life in range(wish + 1) if all(life <= limit for limit in limits)]
        if terms.explicit_max_ttl:
            allowed = [life for life in allowed if age + life <= terms.explicit_max_ttl]
    else:
        wish = increment or terms.ttl or terms.default
        allowed = [life for life in range(wish + 1) if all(age + life <= limit for limit in limits)]
    return max(allowed, default=0)


SECONDS = st.integers(0, 12)


@examples(12)
@given(
    st.builds(
        Terms,
        default=st.integers(1, 12),
        max=st.integers(1, 12),
        ttl=SECONDS,
        max_ttl=SECONDS,
        period=SECONDS,
        explicit_max_ttl=SECONDS,
    ),
    st.integers(0, 15),
    SECONDS,
)
def test_the_algorithm_grants_what_a_naive_one_grants(terms: Terms, age: int, increment: int) -> None:
    wanted = naive(terms, age, increment)
    try:
        given_life = grant(terms, start=1000.0, now=1000.0 + age, increment=increment).ttl
    except Refused:
        given_life = 0
    assert given_life == wanted
