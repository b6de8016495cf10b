"""Two and three nodes on one store: faults at every effect, changes of the leader, stalls, partitions, random lives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Final

import pytest

from cloudid_core.errors import CloudidError
from cloudid_core.testing import Crashed, Fault, FaultKind, every_fault
from tests.installation import MOST_ROUNDS, SETTLE_TIME
from tests.sampling import Sample, every

from . import test_random
from .invariants import check_always, check_in_the_end, check_recovery
from .nodes import CLOUD, PAUSE, STORE, Nodes
from .operations import OPERATIONS, Operation, furnished, prove_login_method_as
from .recorded import RecordedInstallation
from .test_exhaustive import go_through

QUICK: Final = ("issue a fresh principal", "revoke", "expire", "rotate the root secret", "delete a persisted role")
"""Operations whose faults the tests go through with two nodes; `prove` goes through all."""

REPLAY: Final = "pytest tests/simulation/test_nodes.py --seed {seed}"


@pytest.mark.parametrize("name", QUICK)
def test_one_fault_anywhere_and_a_killed_node_does_not_come_back(name: str, sample: Sample) -> None:
    go_through_faults(name, 2, sample)


def go_through_faults(name: str, count: int, sample: Sample = every) -> int:
    """How many worlds were tried."""
    start, operation = OPERATIONS[name]
    tried = 0
    for nodes in every_fault(operation, lambda: Nodes.over(start(), count=count), sample=sample):
        go_through(nodes, operation)
        tried += 1
    return tried


DYING: Final = ("die while the engine is disabled", "lose the outcome of an issue")
"""Operations amid which the host is killed, and so are nodes that start or stop meanwhile."""


@pytest.mark.parametrize("name", ["revoke", "expire", "rotate the root secret", *DYING])
def test_another_node_takes_over_at_any_effect(name: str, sample: Sample) -> None:
    go_through_changes(name, 2, sample)


def go_through_changes(name: str, count: int, sample: Sample = every) -> int:
    """A node starts, and takes over the leadership, before each effect of an operation; how many worlds were tried."""
    tried = 0
    for at, nodes, operation in at_every_effect(name, count, sample):
        nodes.newcomer_at = at
        with suppress(CloudidError):
            operation(nodes)
        nodes.settle()
        assert nodes.newcomer is not None
        assert nodes.newcomer.result().context.node.id
        check_recovery(nodes)
        tried += 1
    return tried


def at_every_effect(name: str, count: int, sample: Sample) -> Iterator[tuple[int, Nodes, Operation]]:
    """The number of each effect of an operation that is tried, nodes before the operation, and the operation."""
    start, operation = OPERATIONS[name]
    plain = Nodes.over(start(), count=count)
    begin = len(plain.trace)
    operation(plain)
    for at in sample(range(begin, len(plain.trace))):
        yield at, Nodes.over(start(), count=count), operation


@pytest.mark.parametrize("name", ["revoke", "expire", "rotate the root secret", *DYING])
def test_a_node_stops_at_any_effect(name: str, sample: Sample) -> None:
    go_through_stops(name, 2, sample)


def go_through_stops(name: str, count: int, sample: Sample = every) -> int:
    """The node at work stops before each effect of an operation; how many worlds were tried."""
    tried = 0
    for at, nodes, operation in at_every_effect(name, count, sample):
        nodes.stops_at = at
        with suppress(CloudidError):
            operation(nodes)
        nodes.settle()
        assert nodes.stopped is not None
        nodes.remove_node(nodes.stopped)
        assert_one_leads(nodes)
        check_recovery(nodes)
        tried += 1
    return tried


def assert_one_leads(nodes: Nodes) -> None:
    """Without waiting for the end of what a stopped node has claimed."""
    with suppress(CloudidError):
        nodes.tick()
    for service in nodes.services:
        nodes.perform(service.upkeep())
    assert {service.context.node.leader for service in nodes.services} <= {
        one.context.node.id for one in nodes.services
    }


@pytest.mark.parametrize("minutes", [1, 5, 60])
@pytest.mark.parametrize("name", ["issue a fresh principal", "revoke", "expire", "rotate the root secret"])
def test_a_node_that_stalls_at_any_effect_and_comes_back_does_no_harm(name: str, minutes: int, sample: Sample) -> None:
    """Another node takes over and does the work; when the first one wakes up, it cannot write any more."""
    go_through_stalls(name, 2, sample, minutes)


UNSTALLED: Final = {
    "die amid an issue": "what it sent arrives with the end of its grace, of which clocks that differ need a part",
    "revoke what is not found yet": "meanwhile the cloud is late by more than its settle time",
    "write a static role with a certificate": "the cloud takes the list of certificates as a whole: what others have "
    "added since it was read is lost",
}
"""Operations that a stall of minutes may harm, and why."""


def go_through_stalls(name: str, count: int, sample: Sample = every, minutes: int = 5) -> int:
    """The node at work stalls before each effect of an operation; how many worlds were tried."""
    tried = 0
    for at, nodes, operation in at_every_effect(name, count, sample):
        nodes.stalls_at, nodes.stall_seconds = at, 60.0 * minutes
        with suppress(CloudidError):
            operation(nodes)
        nodes.settle()
        if at == len(nodes.trace):
            continue  # the first run had one look at the clock more
        assert nodes.has_stalled
        check_recovery(nodes)
        tried += 1
    return tried


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("lost", [STORE, CLOUD, STORE + CLOUD])
@pytest.mark.parametrize("number", [0, 1])
def test_a_node_that_is_cut_off_leaves_the_others_to_work(name: str, lost: tuple[type, ...], number: int) -> None:
    start, operation = OPERATIONS[name]
    nodes = Nodes.over(start())
    nodes.hosts[number].unreachable = lost
    go_through(nodes, operation)


@pytest.mark.parametrize("name", QUICK)
def test_others_end_the_work_of_a_node_that_loses_the_store_at_any_effect(name: str, sample: Sample) -> None:
    """It does not come back."""
    for at, nodes, operation in at_every_effect(name, 2, sample):
        nodes.cut_off_at = at
        with suppress(CloudidError):
            operation(nodes)
        nodes.settle()
        assert [host.unreachable for host in nodes.hosts].count(STORE) == 1
        check_always(nodes)
        for _ in range(MOST_ROUNDS):
            with suppress(CloudidError):
                nodes.tick()
            if not nodes.open_work():
                break
            nodes.advance(PAUSE)
        check_in_the_end(nodes)


@pytest.mark.parametrize("count", [2, 3])
def test_what_one_node_answers_counts_at_all_others_at_once(count: int) -> None:
    nodes = Nodes.over(furnished(), count=count)
    for _ in range(2 * count + 1):
        token = nodes.must("POST", "auth/token/create", {"policies": ["default"]}).auth["client_token"]
        for _ in range(count):
            assert nodes.ask("GET", "auth/token/lookup-self", token=token).status == 200
        nodes.must("POST", "auth/token/revoke-self", token=token)
        for _ in range(count):
            assert nodes.ask("GET", "auth/token/lookup-self", token=token).status == 403


@pytest.mark.parametrize("count", [2, 3])
def test_a_number_of_uses_is_exact_across_nodes(count: int) -> None:
    nodes = Nodes.over(furnished(), count=count)
    created = nodes.must("POST", "auth/token/create", {"policies": ["default"], "num_uses": 5})
    token = created.auth["client_token"]
    used = [nodes.ask("GET", "auth/token/lookup-self", token=token).status for _ in range(4 * count)]
    assert used.count(200) == 5
    assert used[5:] == [403] * (4 * count - 5)


def live(seed: int) -> Nodes:
    """A whole life of two or three nodes; the same for the same seed."""
    dice = Random(seed)
    nodes = Nodes.over(furnished(), seed, dice.choice([2, 3]))
    nodes.behave(**dice.choice(test_random.CLOUDS))
    for _ in range(test_random.STEPS):
        if dice.random() < 0.5:
            nodes.trouble = Fault(len(nodes.trace) + dice.randrange(60), dice.choice(list(FaultKind)))
        if dice.random() < 0.2:
            nodes.newcomer_at = len(nodes.trace) + dice.randrange(60)
        try:
            dice.choice(LIFE)(nodes, dice)
        except Crashed:
            nodes.restart()
        except CloudidError:
            pass
        check_always(nodes)
    nodes.trouble = nodes.newcomer_at = nodes.stalls_at = None
    nodes.heal()
    prove_login_method_as(nodes, 0)
    nodes.advance(2 * SETTLE_TIME)
    nodes.converge()
    check_in_the_end(nodes)
    return nodes


def stall(installation: RecordedInstallation, dice: Random) -> None:
    """One node will stall amid its work, and another one starts before, perhaps."""
    assert isinstance(installation, Nodes)
    installation.stalls_at = len(installation.trace) + dice.randrange(120)
    installation.stall_seconds = dice.choice([5.0, 90.0, 600.0])
    if len(installation.hosts) < 3:
        installation.add_node()


def cut_off(installation: RecordedInstallation, dice: Random) -> None:
    assert isinstance(installation, Nodes)
    dice.choice(installation.hosts).unreachable = dice.choice([STORE, CLOUD, STORE + CLOUD])


def start_node(installation: RecordedInstallation, dice: Random) -> None:
    assert isinstance(installation, Nodes)
    if len(installation.hosts) < 4:
        installation.add_node()


def stop_node(installation: RecordedInstallation, dice: Random) -> None:
    """A node that is upgraded, perhaps: another one starts in its place."""
    assert isinstance(installation, Nodes)
    if len(installation.hosts) < 4:
        installation.add_node()
    installation.next_turn()
    stopping = installation.service
    with suppress(CloudidError):
        installation.perform(stopping.stop())
    if len(installation.hosts) > 1:
        installation.remove_node(stopping)


LIFE: Final[tuple[Callable[[RecordedInstallation, Random], object], ...]] = (
    *test_random.LIFE,
    stall,
    cut_off,
    start_node,
    start_node,
    stop_node,
)


def test_lives(seeds: range) -> None:
    test_random.go_through_lives(seeds, live, REPLAY)


def test_the_same_seed_tells_the_same_life() -> None:
    assert live(1).transcript() == live(1).transcript()
