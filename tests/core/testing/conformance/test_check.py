"""A check, and what it says when a host does not pass."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cloudid_core.effects import Now, Program
from cloudid_core.errors import TimeIsUp
from cloudid_core.run import run_now
from cloudid_core.testing import (
    CHECKS,
    NotConforming,
    World,
    check_host,
    check_host_now,
    interruption_checks,
    provider_checks,
    shared_store_checks,
)
from cloudid_core.testing.conformance.check import Check, checks_of, expect, fresh_prefix
from cloudid_core.testing.conformance.tasks import NAPS
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


def test_a_host_that_never_waits_is_held_to_what_needs_no_time() -> None:
    check_host_now(NeverWaits())
    with pytest.raises(NotConforming, match=r"a_bad_one: .*41 where 42 is right"):
        check_host_now(NeverWaits(), (*checks_of(a_bad_one, waits=False), *checks_of(a_broken_one, waits=True)))


def test_a_host_that_waits_is_none_that_never_does() -> None:
    with pytest.raises(NotConforming, match="the_clock_counts_seconds_since_1970: RuntimeError: this host waited"):
        check_host_now(Waiting())


class Waiting(NeverWaits):
    """A clock that somebody else must tell."""

    async def now(self) -> float:
        await asyncio.sleep(0)
        return await super().now()


class Endless(NeverWaits):
    """Programs one after the other, and in no time."""

    def __init__(self) -> None:
        super().__init__()
        self.slept = 0

    async def sleep(self, seconds: float) -> None:
        self.slept += 1


class OneByOne(Endless):
    """As `Endless`, but a program that sleeps within a time limit is over."""

    async def within(self, seconds: float, program: Program[Any]) -> Any:
        if seconds < 1:
            program.close()
            raise TimeIsUp("at once")
        return await super().within(seconds, program)


@pytest.mark.parametrize(
    "host, flaw", [(Endless(), "within does not end a program"), (OneByOne(), "together does not run programs side")]
)
def test_nothing_that_needs_time_is_run_where_time_does_not_work(host: Endless, flaw: str) -> None:
    """Otherwise it would take minutes, or for ever; what needs none is run all the same."""
    with pytest.raises(NotConforming) as failure:
        run_now(check_host(host), host)
    failures = str(failure.value).splitlines()
    assert [line.partition(":")[0] for line in failures] == [check.name for check in CHECKS if check.waits]
    assert all(flaw in line for line in failures)
    assert host.slept <= 2 * NAPS
