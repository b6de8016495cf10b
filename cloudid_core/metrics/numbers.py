"""The numbers of metrics: by the name of the metric and the values of its labels.

To count costs little more than the change of an integer in a dictionary; a library is used by whoever shows them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from .table import BY_NAME, Kind, Merge

Labels: TypeAlias = tuple[str, ...]
Series: TypeAlias = dict[Labels, list[float]]
"""By the values of the labels: of a counter or gauge the one number; of a histogram the count of each bucket, each
alone, then that of all that are beyond the last bound, then the sum of what was measured."""

Numbers: TypeAlias = dict[str, Series]

HISTOGRAM_TAIL: Final = 2
"""How many numbers of a histogram stand behind those of its buckets."""

MOST_SERIES: Final = 2000
"""Most combinations of labels of one metric."""

THE_REST: Final = "(the rest)"
"""Stands in each label of what is counted together, since there are too many."""


def add(numbers: Numbers, name: str, labels: Labels = (), amount: float = 1) -> None:
    series = numbers.setdefault(name, {})
    row = series.get(labels)
    if row is None:
        row = _new_row(series, labels, 1)
    row[0] += amount


def put(numbers: Numbers, name: str, value: float, labels: Labels = ()) -> None:
    """Set a gauge. `True` is 1."""
    _new_row(numbers.setdefault(name, {}), labels, 1)[0] = value + 0


def observe(numbers: Numbers, name: str, value: float, labels: Labels = ()) -> None:
    """Note what was measured."""
    buckets = BY_NAME[name].buckets
    series = numbers.setdefault(name, {})
    row = series.get(labels)
    if row is None:
        row = _new_row(series, labels, len(buckets) + HISTOGRAM_TAIL)
    row[bisect_left(buckets, value)] += 1
    row[-1] += value


def add_histogram(numbers: Numbers, name: str, other: Sequence[float], labels: Labels = ()) -> None:
    """Add what another histogram has, bucket by bucket."""
    row = _new_row(numbers.setdefault(name, {}), labels, len(other))
    row[:] = [one + more for one, more in zip(row, other, strict=True)]


def _new_row(series: Series, labels: Labels, length: int) -> list[float]:
    if len(series) >= MOST_SERIES and labels not in series:
        labels = (THE_REST,) * len(labels)
    return series.setdefault(labels, [0] * length)


def merged(parts: Iterable[Numbers]) -> Numbers:
    """The numbers of several processes as those of one, each metric by its row of the table."""
    whole: Numbers = {}
    for part in parts:
        for name, series in part.items():
            metric = BY_NAME[name]
            rows = whole.setdefault(name, {})
            for labels, row in series.items():
                known = rows.get(labels)
                if known is None:
                    rows[labels] = list(row)
                elif metric.kind is not Kind.GAUGE or metric.merge is Merge.SUM:
                    known[:] = [one + other for one, other in zip(known, row, strict=True)]
                else:
                    known[0] = (max if metric.merge is Merge.MOST else min)(known[0], row[0])
    return whole
