"""The page about metrics, from their table."""

from __future__ import annotations

from typing import Final

from cloudid_core.metrics import METRICS, Merge, Metric, Source
from cloudid_core.metrics.numbers import MOST_SERIES
from cloudid_core.system.metrics import PAUSE

from .tables import table

SECTIONS: Final = (
    (Source.EVENTS, "Counted from events", "Counted since the process started."),
    (Source.NODE, "The node", "The state of the node at the time of the request."),
    (
        Source.STORE,
        "The store",
        f"Read from the store when a request needs them, and cached for {PAUSE:.0f} s, or for a hundred "
        "times as long as the read took. All nodes that share a store return the same values, so use `max` "
        "over the nodes, never `sum`. Omitted while the store cannot be read.",
    ),
    (
        Source.SERVER,
        "The server",
        "Measured by the trio and aiohttp servers. Your own host has them only if it measures them.",
    ),
)
TOGETHER: Final = {Merge.SUM: "sum", Merge.MOST: "highest", Merge.LEAST: "lowest"}


def page() -> str:
    """The whole page, in Markdown."""
    parts = [
        "# Metrics",
        "Printed by `make docs` from the table in the code. How to scrape, alert and draw them: "
        "[how-to/monitor.md](../how-to/monitor.md).",
        "`GET sys/metrics` returns all metrics of this machine. With `?format=prometheus`, or an "
        "`Accept` header with `text/plain` or OpenMetrics, it returns the Prometheus text format (version "
        "0.0.4). Otherwise it returns JSON with the members `Timestamp`, `Gauges`, `Counters` and `Samples`, "
        "like Vault. It needs a token that may read `sys/metrics`, unless the setting `metrics_access` "
        "allows anyone. `GET /metrics` at the address `metrics_listen` of `[server]` needs no token.",
        "The workers of a machine return one set of metrics; the column *together* shows how they are "
        "combined. Scrape each node separately. Counters start at 0 with the server. A worker that replaces "
        "another continues its counters.",
        "Labels have few values, or values that operators chose: mounts, roles that exist, codes, "
        f"statuses. Values that clients make up never become labels. If a metric has more than {MOST_SERIES} "
        "combinations of labels, the rest are counted together as `(the rest)`.",
    ]
    for source, title, about in SECTIONS:
        rows = [_row(metric) for metric in METRICS if metric.source is source]
        parts += [f"## {title}", about, table(("metric", "kind", "labels", "together", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"


def _row(metric: Metric) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    is_gauge = metric.kind.value == "gauge"
    together = TOGETHER[metric.merge] if is_gauge and metric.source is not Source.STORE else ""
    return f"`{metric.name}`", metric.kind.value, labels, together, metric.help
