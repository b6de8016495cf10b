"""The page about metrics, from their table."""

from __future__ import annotations

from typing import Final

from cloudid_core.metrics import METRICS, Merge, Metric, Source
from cloudid_core.metrics.numbers import MOST_SERIES
from cloudid_core.system.metrics import PAUSE

from .tables import table

SECTIONS: Final = (
    (Source.EVENTS, "Counted from events", "From the start of the process on."),
    (Source.NODE, "The node", "What it knows when it is asked."),
    (
        Source.STORE,
        "The store",
        f"Read from the store when somebody asks, and remembered for {PAUSE:.0f} s, or a hundred times as long as that"
        " took. All nodes of a store tell the same: take the `max` over them, never the `sum`. Left out while the"
        " store cannot be read.",
    ),
    (
        Source.SERVER,
        "The server",
        "Measured by the two servers. A host of your own tells them only if it measures them itself.",
    ),
)
TOGETHER: Final = {Merge.SUM: "sum", Merge.MOST: "highest", Merge.LEAST: "lowest"}


def page() -> str:
    """The whole page, in Markdown."""
    parts = [
        "# Metrics",
        "Printed by `make docs` from the table that counts, shows and tests them."
        " How to scrape, alert and draw them: [how-to/monitor.md](../how-to/monitor.md).",
        "`GET sys/metrics` answers all metrics of this machine. `?format=prometheus`, or an `Accept` that has"
        " `text/plain` or OpenMetrics, gives Prometheus text (version 0.0.4), anything else JSON with the members"
        " `Timestamp`, `Gauges`, `Counters` and `Samples`, as existing services answer. It needs a token that may read"
        " `sys/metrics`; the setting `metrics_access` opens it to anybody, and at"
        " the address `metrics_listen` of `[server]` `GET /metrics` needs none.",
        "Workers of one machine answer as one: *together* says how. Each node is scraped by itself. Counters begin at"
        " 0 with the server; a worker that takes the place of another goes on with its counters.",
        "Labels have few values, or values that operators made: mounts, roles that exist, codes, statuses. What a"
        f" client makes up is in no label. Of more than {MOST_SERIES} combinations the rest is counted together, as"
        " `(the rest)`.",
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
