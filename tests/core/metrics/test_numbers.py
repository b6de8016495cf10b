"""Numbers: counting, measuring, and the numbers of several processes as those of one."""

from __future__ import annotations

import pytest

from cloudid_core.metrics import BY_NAME, Numbers, add, merged, numbers, observe, put
from cloudid_core.metrics.numbers import THE_REST, add_histogram

BATCH = "cloudid_store_batch_commits"


def test_counting_and_setting() -> None:
    told = Numbers()
    for _ in range(3):
        add(told, "cloudid_refusals_total", ("x",))
    add(told, "cloudid_refusals_total", ("y",), 5)
    for value in (7, True):
        put(told, "cloudid_nodes", value)
    assert told == {"cloudid_refusals_total": {("x",): [3], ("y",): [5]}, "cloudid_nodes": {(): [1]}}
    assert type(told["cloudid_nodes"][()][0]) is int, "JSON has a number"


def test_a_bucket_has_what_is_up_to_its_bound() -> None:
    told = Numbers()
    for value in (1, 1.5, 2, 256, 300):
        observe(told, BATCH, value)
    [row] = told[BATCH].values()
    assert row == [1, 2, 0, 0, 0, 0, 0, 0, 1, 1, 560.5]
    assert len(row) == len(BY_NAME[BATCH].buckets) + numbers.HISTOGRAM_TAIL
    add_histogram(told, BATCH, row)
    assert told[BATCH][()] == [2, 4, 0, 0, 0, 0, 0, 0, 2, 2, 1121]


def test_too_many_combinations_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "MOST_SERIES", 2)
    told = Numbers()
    for code in "abcdab":
        add(told, "cloudid_refusals_total", (code,))
    assert told == {"cloudid_refusals_total": {("a",): [2], ("b",): [2], (THE_REST,): [2]}}


def test_the_numbers_of_several_processes_are_told_as_one() -> None:
    one, other = Numbers(), Numbers()
    for told, value in ((one, 1.0), (other, 3.0)):
        add(told, "cloudid_refusals_total", ("x",), value)
        observe(told, BATCH, value)
        put(told, "cloudid_connections", value)
        put(told, "cloudid_nodes", value)
        put(told, "cloudid_can_serve", value)
    add(other, "cloudid_refusals_total", ("y",))
    whole = merged([one, other])
    assert whole["cloudid_refusals_total"] == {("x",): [4], ("y",): [1]}
    assert whole[BATCH][()][:3] == [1, 0, 1]
    assert whole[BATCH][()][-1] == 4
    assert (whole["cloudid_connections"], whole["cloudid_nodes"]) == ({(): [4]}, {(): [3]})
    assert whole["cloudid_can_serve"] == {(): [1]}


def test_what_is_merged_is_a_copy() -> None:
    told = Numbers()
    add(told, "cloudid_refusals_total", ("x",))
    add(merged([told]), "cloudid_refusals_total", ("x",))
    assert told == {"cloudid_refusals_total": {("x",): [1]}}
