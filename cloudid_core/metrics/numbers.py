"""The numbers of metrics, by the name of the metric and the values of its labels.

Counting costs little more than changing an integer in a dictionary. A library is used only for output.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from .table import BY_NAME, Kind, Merge

Labels: TypeAlias = tuple[str, ...]
Series: TypeAlias = dict[Labels, list[float]]
"""Numbers by the values of labels. A counter or gauge has one number.

A histogram has the count of each bucket, the count above the last bucket, and the sum of the measured values.
"""

Numbers: TypeAlias = dict[str, Series]

HISTOGRAM_TAIL: Final = 2
"""Number of values in a histogram after its buckets."""

MOST_SERIES: Final = 2000
"""Maximum combinations of labels of one metric."""

THE_REST: Final = "(the rest)"
"""The value of each label for combinations that are counted together because there are too many."""


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
    """Record a measured value."""
    buckets = BY_NAME[name].buckets
    series = numbers.setdefault(name, {})
    row = series.get(labels)
    if row is None:
        row = _new_row(series, labels, len(buckets) + HISTOGRAM_TAIL)
    row[bisect_left(buckets, value)] += 1
    row[-1] += value


def add_histogram(numbers: Numbers, name: str, other: Sequence[float], labels: Labels = ()) -> None:
    """Add another histogram, bucket by bucket."""
    row = _new_row(numbers.setdefault(name, {}), labels, len(other))
    row[:] = [one + more for one, more in zip(row, other, strict=True)]


def _new_row(series: Series, labels: Labels, length: int) -> list[float]:
    if len(series) >= MOST_SERIES and labels not in series:
        labels = (THE_REST,) * len(labels)
    return series.setdefault(labels, [0] * length)


def merged(parts: Iterable[Numbers]) -> Numbers:
    """Combine the numbers of several processes, each metric as its row of the table says."""
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
