"""Workers leave their numbers for each other: none is lost when one dies, and no counter goes back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from cloudid_core.metrics import Numbers, add, merged, put
from cloudid_servers.metrics import slots as module
from cloudid_servers.metrics.slots import FRESH_SECONDS, Slots, WorkerSlot

REFUSALS = "cloudid_refusals_total"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def slots(clock: Clock) -> Iterator[Slots]:
    with closing(Slots(3, clock)) as opened:
        yield opened


def numbers(count: int) -> Numbers:
    told = Numbers()
    add(told, REFUSALS, ("x",), count)
    put(told, "cloudid_connections", count)
    return told


def test_a_worker_knows_the_numbers_of_the_others(slots: Slots) -> None:
    one, two = WorkerSlot(slots, 1), WorkerSlot(slots, 2)
    assert merged(one.others) == {}
    two.write(numbers(5))
    assert merged(one.others) == numbers(5)
    one.write(numbers(2))
    assert merged([numbers(2), *one.others]) == merged([numbers(5), *two.others]) == numbers(7)


def test_what_a_process_writes_another_reads(slots: Slots) -> None:
    child = os.fork()
    if not child:
        WorkerSlot(slots, 2).write(numbers(3))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert merged(WorkerSlot(slots, 1).others) == numbers(3)


def test_a_worker_that_takes_a_place_goes_on_with_its_counters(slots: Slots) -> None:
    WorkerSlot(slots, 2).write(numbers(5))
    heir = WorkerSlot(slots, 2)
    assert merged([numbers(1), *heir.others])[REFUSALS] == {("x",): [6]}
    heir.write(numbers(1))
    told = merged(WorkerSlot(slots, 1).others)
    assert told[REFUSALS] == {("x",): [6]}
    assert told["cloudid_connections"] == {(): [1]}, "what is open is its own"
    heir.write(numbers(2))
    assert merged(WorkerSlot(slots, 1).others)[REFUSALS] == {("x",): [7]}


def test_of_a_worker_that_is_gone_only_the_counters_are_left(slots: Slots, clock: Clock) -> None:
    WorkerSlot(slots, 2).write(numbers(5))
    clock.now = FRESH_SECONDS
    assert merged(WorkerSlot(slots, 1).others) == {REFUSALS: {("x",): [5]}}


def test_numbers_that_do_not_fit_leave_the_slot_as_it_was(slots: Slots, monkeypatch: pytest.MonkeyPatch) -> None:
    WorkerSlot(slots, 3).write(numbers(1))
    monkeypatch.setattr(module, "SLOT_SIZE", 40)
    WorkerSlot(slots, 1).write(numbers(2))
    monkeypatch.undo()
    assert merged(WorkerSlot(slots, 2).others) == numbers(1)
