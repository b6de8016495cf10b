"""Showing: numbers as Prometheus text (version 0.0.4), or as JSON in the form of existing services."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from cloudid_core.metrics import HISTOGRAM_TAIL, METRICS, Kind, Metric, Numbers, Series
from cloudid_core.system.metrics import PROMETHEUS


def show(numbers: Numbers, output: str) -> str:
    """All numbers in a form: `PROMETHEUS`, or JSON."""
    return prometheus(numbers) if output == PROMETHEUS else as_json(numbers)


def prometheus(numbers: Numbers) -> str:
    """Prometheus text. A registry of its own each time: nothing is registered for the whole process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Numbers(numbers))
    return generate_latest(registry).decode()


class _Numbers(Collector):
    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Family]:
        for metric in METRICS:
            series = self._numbers.get(metric.name)
            if series:
                yield _family(metric, series)


def _family(metric: Metric, series: Series) -> Family:
    rows = sorted(series.items())
    if metric.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, row in rows:
            counts = accumulate(row[:-1])
            bounds = [*map(str, metric.buckets), "+Inf"]
            histogram.add_metric(labels, list(zip(bounds, counts, strict=True)), row[-1])
        return histogram
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for labels, row in rows:
        family.add_metric(labels, row[0])
    return family


def as_json(numbers: Numbers) -> str:
    """The members that existing services answer: `Timestamp`, `Gauges`, `Counters`, `Samples` and `Points`."""
    told: dict[str, list[dict[str, Any]]] = {"Gauges": [], "Points": [], "Counters": [], "Samples": []}
    for metric in METRICS:
        for labels, row in sorted(numbers.get(metric.name, {}).items()):
            entry: dict[str, Any] = {"Name": metric.name, "Labels": dict(zip(metric.labels, labels, strict=True))}
            if metric.kind is Kind.GAUGE:
                told["Gauges"].append({**entry, "Value": row[0]})
            elif metric.kind is Kind.COUNTER:
                told["Counters"].append({**entry, "Count": row[0], "Sum": row[0]})
            else:
                count = sum(row[: len(metric.buckets) + HISTOGRAM_TAIL - 1])
                mean = row[-1] / count if count else 0.0
                told["Samples"].append({**entry, "Count": count, "Sum": row[-1], "Mean": mean})
    timestamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
    return msgspec.json.encode({"Timestamp": timestamp, **told}).decode()
