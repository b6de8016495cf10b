"""The workers' budget of reads: a bucket for each subscription, in memory that processes share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import TypeAlias

import pytest

from cloudid_core.effects import HttpRequest
from cloudid_servers.host.read_budget import BUCKETS, ReadBudget

ORIGIN = "https://management.example"


Make: TypeAlias = "Callable[[float, Clock], ReadBudget]"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def made() -> Iterator[Make]:
    with ExitStack() as opened:
        yield lambda rate, clock: opened.enter_context(closing(ReadBudget(rate, [ORIGIN], clock)))


def read(subscription: str = "one", method: str = "GET", origin: str = ORIGIN) -> HttpRequest:
    return HttpRequest(method, f"{origin}/subscriptions/{subscription}/resourceGroups/a?api-version=1")


def test_a_burst_is_free_and_the_rest_waits_for_its_turn(made: Make) -> None:
    clock = Clock()
    budget = made(25, clock)
    assert [budget.take(read()) for _ in range(250)] == [0.0] * 250
    assert [budget.take(read()) for _ in range(3)] == pytest.approx([0.04, 0.08, 0.12])
    clock.now += 2.12
    assert [budget.take(read()) for _ in range(50)] == [0.0] * 50
    assert budget.take(read()) > 0
    clock.now += 3600
    assert sum(budget.take(read()) == 0.0 for _ in range(300)) == 250


def test_only_reads_from_resource_managers_count_and_each_subscription_by_itself(
    made: Make,
) -> None:
    budget = made(1, Clock())
    for _ in range(11):
        last = budget.take(read("one"))
    assert last > 0
    assert budget.take(read("ONE")) > 0
    assert budget.take(read("two")) == 0
    assert budget.take(read("one", "PUT")) == 0
    assert budget.take(read("one", origin="https://login.example")) == 0


def test_processes_share_the_budget_and_one_that_is_killed_keeps_no_lock(
    made: Make,
) -> None:
    budget = made(1, Clock())
    for _ in range(2):
        child = os.fork()
        if child == 0:
            for _ in range(5):
                budget.take(read())
            with budget._locked(0):
                os.kill(os.getpid(), signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert budget.take(read()) > 0
    for number in range(BUCKETS):
        budget.take(read(str(number)))
