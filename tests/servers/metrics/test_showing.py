"""The two forms of metrics."""

from __future__ import annotations

import json

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families

from cloudid_core.metrics import METRICS, Kind, Numbers, add, observe, put
from cloudid_core.system.metrics import JSON, PROMETHEUS
from cloudid_servers.metrics.showing import show


def some() -> Numbers:
    numbers = Numbers()
    add(numbers, "cloudid_refusals_total", ('odd "\\\n',), 3)
    put(numbers, "cloudid_nodes", 2)
    for value in (1, 3, 3, 1000):
        observe(numbers, "cloudid_store_batch_commits", value)
    return numbers


def test_prometheus_text_says_what_was_counted() -> None:
    families = {family.name: family for family in text_string_to_metric_families(show(some(), PROMETHEUS))}
    assert set(families) == {"cloudid_refusals", "cloudid_nodes", "cloudid_store_batch_commits"}
    [refusals] = families["cloudid_refusals"].samples
    assert (refusals.name, refusals.labels, refusals.value) == ("cloudid_refusals_total", {"code": 'odd "\\\n'}, 3)
    batch = {(each.name, each.labels.get("le")): each.value for each in families["cloudid_store_batch_commits"].samples}
    assert batch["cloudid_store_batch_commits_bucket", "1.0"] == 1
    assert batch["cloudid_store_batch_commits_bucket", "4.0"] == 3
    assert batch["cloudid_store_batch_commits_bucket", "256.0"] == 3
    assert batch["cloudid_store_batch_commits_bucket", "+Inf"] == batch["cloudid_store_batch_commits_count", None] == 4
    assert batch["cloudid_store_batch_commits_sum", None] == 1007


def test_json_has_the_members_of_existing_services() -> None:
    told = json.loads(show(some(), JSON))
    assert list(told) == ["Timestamp", "Gauges", "Points", "Counters", "Samples"]
    assert told["Gauges"] == [{"Name": "cloudid_nodes", "Labels": {}, "Value": 2}]
    [counter] = told["Counters"]
    assert (counter["Name"], counter["Count"], counter["Labels"]) == (
        "cloudid_refusals_total",
        3,
        {"code": 'odd "\\\n'},
    )
    [sample] = told["Samples"]
    assert (sample["Count"], sample["Sum"], sample["Mean"]) == (4, 1007, 251.75)


def test_every_metric_can_be_shown_with_its_help() -> None:
    numbers = Numbers()
    for metric in METRICS:
        labels = ("x",) * len(metric.labels)
        (observe if metric.kind is Kind.HISTOGRAM else put)(numbers, metric.name, 1, labels)
    text = show(numbers, PROMETHEUS)
    assert text.count("# HELP ") == text.count("# TYPE ") == len(METRICS)
    assert all(f"# TYPE {metric.name} {metric.kind.value}\n" in text for metric in METRICS)


def test_nothing_is_registered_for_the_whole_process() -> None:
    before = list(prometheus_client.REGISTRY.collect())
    show(some(), PROMETHEUS)
    assert [family.name for family in prometheus_client.REGISTRY.collect()] == [family.name for family in before]


def test_without_numbers_the_text_is_empty() -> None:
    assert show({}, PROMETHEUS) == ""
