"""What a node knows of itself: the problems that make load balancers choose another one."""

from __future__ import annotations

import pytest

from cloudid_core.effects import ClockReading
from cloudid_core.foundation.node import MOST_SKEW, Node


@pytest.mark.parametrize(
    "offset, uncertainty, problem",
    [
        (0.0, 0.0, ""),
        (MOST_SKEW, 0.0, ""),
        (MOST_SKEW + 0.1, 0.0, "5.1 s behind"),
        (-MOST_SKEW - 0.1, 0.0, "5.1 s ahead of"),
        (MOST_SKEW + 0.1, 0.2, ""),
    ],
)
def test_a_clock_that_is_certainly_seconds_away_is_a_problem(offset: float, uncertainty: float, problem: str) -> None:
    problems = Node(clock=ClockReading(offset, uncertainty)).problems
    assert bool(problems) == bool(problem)
    assert problem in "".join(problems)


@pytest.mark.parametrize(
    "clock, seconds",
    [
        (None, 0.0),
        (ClockReading(-60.0, 2.0), 58.0),
        (ClockReading(-1.0, 2.0), 0.0),
        (ClockReading(60.0, 2.0), 0.0),
    ],
)
def test_a_clock_is_ahead_as_far_as_that_is_certain(clock: ClockReading | None, seconds: float) -> None:
    assert Node(clock=clock).seconds_ahead == seconds


@pytest.mark.parametrize("node", [Node(last_look_failed=True), Node(last_read_failed=True)])
def test_a_lost_store_is_a_problem(node: Node) -> None:
    assert Node().problems == ()
    assert node.problems == ("the store cannot be read or written",)
