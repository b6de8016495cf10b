"""What a node knows of itself: the problems that make load balancers choose another one."""

from __future__ import annotations

import pytest

from cloudid_core.effects import ClockReading
from cloudid_core.health.node import MOST_SKEW, SEVERAL, Node
from cloudid_core.health.problems import HealthProblem


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
    node = Node(clock=ClockReading(offset, uncertainty))
    texts = [HealthProblem.CLOCK_APART.text(each) for each in node.problems.get(HealthProblem.CLOCK_APART, ())]
    assert bool(texts) == bool(problem)
    assert problem in "".join(texts)
    assert node.can_serve is not bool(problem)


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


def test_a_node_that_can_record_nothing_cannot_serve() -> None:
    node = Node(last_record_failed=True)
    assert (list(node.problems), node.can_serve) == ([HealthProblem.AUDIT_UNAVAILABLE], False)


@pytest.mark.parametrize("node", [Node(last_look_failed=True), Node(last_read_failed=True)])
def test_a_lost_store_is_a_problem(node: Node) -> None:
    assert (dict(Node().problems), Node().can_serve) == ({}, True)
    assert (list(node.problems), node.can_serve) == ([HealthProblem.STORE_UNAVAILABLE], False)


def test_a_problem_that_was_noted_lasts_until_it_is_noted_as_over() -> None:
    node, occurrence = Node(differences=("leeway",)), {"mount": "cloud", "field": "client_id"}
    node.note(HealthProblem.CONFIG_INVALID, [occurrence])
    assert dict(node.problems) == {
        HealthProblem.SETTINGS_DIFFER: [{"names": "leeway"}],
        HealthProblem.CONFIG_INVALID: (occurrence,),
    }
    assert node.can_serve
    node.note(HealthProblem.CONFIG_INVALID, [])
    assert list(node.problems) == [HealthProblem.SETTINGS_DIFFER]


def test_background_work_that_fails_several_times_in_a_row_is_a_problem_until_it_works_again() -> None:
    node = Node()
    for _ in range(SEVERAL - 1):
        node.note_outcome("tick", KeyError("secret"))
        assert not node.problems
    node.note_outcome("tick")
    for _ in range(SEVERAL - 1):
        node.note_outcome("tick", KeyError("secret"))
    assert not node.problems
    for work in ("tick", "upkeep"):
        for _ in range(SEVERAL):
            node.note_outcome(work, TypeError("secret"))
    assert node.can_serve
    reasons = {noted["work"]: noted["reason"] for noted in node.problems[HealthProblem.BACKGROUND_FAILING]}
    assert reasons == {"tick": "TypeError", "upkeep": "TypeError"}
    node.note_outcome("upkeep")
    assert [noted["work"] for noted in node.problems[HealthProblem.BACKGROUND_FAILING]] == ["tick"]
    node.note_outcome("tick")
    assert not node.problems
