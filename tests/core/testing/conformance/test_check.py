"""A check, and what it says when a host does not pass."""

from __future__ import annotations

import pytest

from cloudid_core.effects import Now
from cloudid_core.run import run_now
from cloudid_core.testing import (
    CHECKS,
    NotConforming,
    World,
    check_host,
    interruption_checks,
    provider_checks,
    shared_store_checks,
)
from cloudid_core.testing.conformance.check import Check, checks_of, expect, fresh_prefix
from tests.core.never_waits import NeverWaits


async def a_good_one() -> None:
    await Now()


async def a_bad_one() -> None:
    expect("the answer", 41, 42)


async def a_broken_one() -> None:
    raise ZeroDivisionError


def test_a_check_is_named_like_its_story_and_can_be_run_again() -> None:
    (check,) = checks_of(a_good_one, waits=True)
    assert (check.name, check.waits) == ("a_good_one", True)
    for _ in range(2):
        World().perform(check())


def test_an_expectation_that_does_not_hold_tells_both_sides() -> None:
    expect("the answer", 42, 42)
    with pytest.raises(NotConforming, match="the answer: 41 where 42 is right"):
        expect("the answer", 41, 42)


def test_prefixes_are_never_the_same() -> None:
    world = World()
    assert world.perform(fresh_prefix()) != world.perform(fresh_prefix())


def test_all_that_a_host_does_not_pass_is_told_at_once() -> None:
    checks = checks_of(a_good_one, a_bad_one, a_broken_one, waits=False)
    with pytest.raises(NotConforming) as failure:
        run_now(check_host(NeverWaits(), checks), NeverWaits())  # it awaits nothing but `run`
    assert str(failure.value).splitlines() == [
        "a_bad_one: NotConforming: the answer: 41 where 42 is right",
        "a_broken_one: ZeroDivisionError: ",
    ]


def test_no_two_checks_have_the_same_name() -> None:
    more = (*provider_checks("http://a", "http://b"), *shared_store_checks(World()), *interruption_checks(a_good_one))
    names = [check.name for check in (*CHECKS, *more)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("check", [check for check in CHECKS if not check.waits], ids=lambda check: check.name)
def test_a_host_that_never_waits_passes_what_needs_no_time(check: Check) -> None:
    run_now(check(), NeverWaits())
