"""The table of metrics: names, labels and kinds that Prometheus takes."""

from __future__ import annotations

import re

import pytest

from cloudid_core.metrics import BY_NAME, METRICS, Kind, Merge, Metric

UNITS = ("_total", "_seconds", "_bytes", "_commits")


def test_each_name_stands_once() -> None:
    assert len(BY_NAME) == len(METRICS)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_row_is_whole(metric: Metric) -> None:
    assert re.fullmatch(r"(cloudid|process)_[a-z_]+", metric.name)
    assert all(re.fullmatch(r"[a-z]+", label) for label in metric.labels)
    assert metric.help.endswith(".")
    assert metric.name.endswith("_total") is (metric.kind is Kind.COUNTER)
    assert bool(metric.buckets) is (metric.kind is Kind.HISTOGRAM)
    assert list(metric.buckets) == sorted(metric.buckets)
    if metric.kind is Kind.HISTOGRAM:
        assert metric.name.endswith(UNITS)
    if metric.kind is not Kind.GAUGE:
        assert metric.merge is Merge.SUM


def test_no_label_says_who_asked() -> None:
    """Who has ids without end: addresses, tokens, principals, leases. Prometheus adds `job` and `instance` itself."""
    labels = {label for metric in METRICS for label in metric.labels}
    assert labels == {
        "cache", "code", "device", "failed", "family", "kind", "mount", "node", "operation", "phase", "role",
        "state", "status", "type", "version", "work",
    }  # fmt: skip
