"""Every metric, as one table: what a scrape answers, the page about it and the tests are made from its rows.

The values of a label are few, or are bounded by what operators made: codes, statuses, mounts, roles that exist.
Nothing that a client makes up becomes one. Where there are more than `numbers.MOST_SERIES` all the same, the rest is
counted together.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Final

from attrs import frozen


class Kind(Enum):
    """How a metric behaves, in the words of Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Source(Enum):
    """Where the numbers come from."""

    EVENTS = "events"
    """Counted from the stream of events."""
    NODE = "node"
    """What the node knows when it is asked: its health and its caches."""
    STORE = "store"
    """Read from the store when it is asked for: every node of a store tells the same."""
    SERVER = "server"
    """What the reference servers measure themselves; another host may leave it out."""


class Merge(Enum):
    """What the workers of one machine tell together."""

    SUM = "sum"
    MOST = "most"
    LEAST = "least"


@frozen(kw_only=True)
class Metric:
    """A row. A histogram has the upper bounds of its buckets; the last bucket, without a bound, is not among them."""

    name: str
    kind: Kind
    source: Source
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    merge: Merge = Merge.SUM


EVENTS, NODE, STORE, SERVER = Source
SUM, MOST, LEAST = Merge


def _metric(
    kind: Kind, written: str, source: Source, about: str, buckets: tuple[float, ...] = (), merge: Merge = Merge.SUM
) -> Metric:
    """A row; its name and labels are written as a query has them: `name{label,label}`."""
    name, _, labels = written.removesuffix("}").partition("{")
    each = tuple(labels.split(",")) if labels else ()
    return Metric(name=name, kind=kind, source=source, help=about, labels=each, buckets=buckets, merge=merge)


_counter: Final = partial(_metric, Kind.COUNTER)
_gauge: Final = partial(_metric, Kind.GAUGE, merge=MOST)
_histogram: Final = partial(_metric, Kind.HISTOGRAM)
REQUEST_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
PROVIDER_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STORE_BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
BATCH_BUCKETS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)

METRICS: Final = (
    # Requests
    _counter(
        "cloudid_requests_total{mount,operation,status}",
        EVENTS,
        "Requests that were answered, by the path of the mount (empty: there is none at the path), what the "
        "request asks for, and the status of the answer.",
    ),
    _histogram(
        "cloudid_request_seconds{operation}",
        EVENTS,
        "Time from the arrival of a request at the service to its answer. A login has an operation of its own.",
        buckets=REQUEST_BUCKETS,
    ),
    _counter(
        "cloudid_logins_total{mount,role,code}",
        EVENTS,
        "Logins, by mount, role and the code of the refusal: admitted if there is none. The role is empty unless "
        "the signature of the JWT holds and the role exists.",
    ),
    _counter(
        "cloudid_refusals_total{code}",
        EVENTS,
        "Refused requests by their first code: quotas (rate_limit_exceeded, lease_count_exceeded, "
        "logins_throttled), failures of the provider and of the store among them.",
    ),
    _counter(
        "cloudid_machine_claims_ignored_total",
        EVENTS,
        "Logins whose machine claim is no id of a resource in a resource group.",
    ),
    # Leases, journal, rotations
    _counter(
        "cloudid_lease_changes_total{state,failed}",
        EVENTS,
        "What became of leases. With failed=true, an attempt to revoke one failed.",
    ),
    _counter(
        "cloudid_intent_changes_total{state,failed}",
        EVENTS,
        "What became of the journal's intents. With failed=true, an attempt to undo one failed.",
    ),
    _counter(
        "cloudid_rotation_changes_total{phase,failed}",
        EVENTS,
        "Steps of rotations of root secrets, by the phase that they led to. With failed=true, a step failed.",
    ),
    _counter(
        "cloudid_root_secret_warnings_total", EVENTS, "Warnings that a root secret soon ends or could not be rotated."
    ),
    _counter(
        "cloudid_background_failures_total{work}",
        EVENTS,
        "Background work that failed in a way that its own record cannot tell.",
    ),
    _gauge("cloudid_mounts{type}", STORE, "Mounts, by their type."),
    _gauge("cloudid_mounts_retiring", STORE, "Disabled mounts that still have objects at the provider."),
    _gauge(
        "cloudid_leases{state}",
        STORE,
        "Leases: alive; ending, whose time is over; stuck, whose revocation has failed so far.",
    ),
    _gauge(
        "cloudid_lease_stuck_oldest_seconds",
        STORE,
        "For how long the time of the oldest stuck lease has been over; 0 without one. Of the first 1000.",
    ),
    _gauge(
        "cloudid_intents",
        STORE,
        "Intents of the journal: objects at the provider that are being made, or have to be removed.",
    ),
    _gauge(
        "cloudid_background_late_seconds{kind}",
        STORE,
        "How late the earliest background work of a kind is; 0 if it is not due yet.",
    ),
    _gauge(
        "cloudid_root_secret_ends_timestamp_seconds{mount}",
        STORE,
        "When the root secret of a mount ends, where a rotation made it.",
    ),
    _gauge(
        "cloudid_root_secret_rotated_timestamp_seconds{mount}",
        STORE,
        "When the root secret of a mount was rotated last.",
    ),
    _gauge(
        "cloudid_root_secret_next_rotation_timestamp_seconds{mount}",
        STORE,
        "When the root secret of a mount is rotated next by its rule.",
    ),
    _gauge(
        "cloudid_rotation_failing{mount}",
        STORE,
        "1 if the last step of the rotation of a mount's root secret, or its plan, failed.",
    ),
    _gauge(
        "cloudid_credential_failing{mount}",
        NODE,
        "1 if this node did not get the last access token that it asked for in the name of the mount.",
    ),
    # The node
    _gauge("cloudid_info{version,node}", NODE, "1, with the version and the id of the node."),
    _gauge("cloudid_can_serve", NODE, "1 if requests may come to this node, otherwise 0.", merge=LEAST),
    _gauge("cloudid_problems{code}", NODE, "Occurrences of each problem that sys/health tells."),
    _gauge("cloudid_leads", NODE, "1 if this node does the background work."),
    _gauge("cloudid_nodes", NODE, "How many nodes serve the store, as far as this one knows."),
    _gauge("cloudid_start_timestamp_seconds", NODE, "When the service of this node was opened.", merge=LEAST),
    _gauge(
        "cloudid_swept_timestamp_seconds",
        NODE,
        "When this node last removed dead tokens from the store; 0: never, as on a node that does not lead.",
    ),
    _gauge("cloudid_store_read_seconds", NODE, "How long the node's last look at the store took."),
    _gauge(
        "cloudid_clock_skew_seconds",
        NODE,
        "How far this machine's clock is away from the store's, whichever is ahead; absent where they are one.",
    ),
    _gauge("cloudid_cache_entries{cache}", NODE, "Entries of each cache.", merge=SUM),
    _gauge("cloudid_cache_size{cache}", NODE, "How many entries each cache can have.", merge=SUM),
    _gauge("cloudid_quotas{kind}", STORE, "Quotas: rate-limit and lease-count."),
    # The provider
    _gauge(
        "cloudid_provider_reads_left",
        NODE,
        "How many reads this node may send to the resource manager at once, of the subscription with the fewest; "
        "below 0, so many wait. Absent before the first read, and where reads are not limited.",
        merge=LEAST,
    ),
    _counter(
        "cloudid_provider_calls_total{family,status}",
        SERVER,
        "Calls to the provider by interface (login, resource manager, directory; other: the platform's metadata "
        "service) and status: 429 is throttling, none: no answer.",
    ),
    _histogram(
        "cloudid_provider_call_seconds{family}",
        SERVER,
        "Time of calls to the provider, with what they waited for each other.",
        buckets=PROVIDER_BUCKETS,
    ),
    _gauge(
        "cloudid_provider_calls_open", SERVER, "Calls to the provider that are under way or wait for others.", merge=SUM
    ),
    # The store
    _histogram(
        "cloudid_store_batch_seconds",
        SERVER,
        "Time that the store took to write a batch of commits.",
        buckets=STORE_BUCKETS,
    ),
    _histogram(
        "cloudid_store_batch_commits", SERVER, "How many commits were written in one batch.", buckets=BATCH_BUCKETS
    ),
    # The server
    _gauge(
        "cloudid_audit_device_failing{device}",
        SERVER,
        "1 if an audit device could not be written the last time, 0 if it could.",
    ),
    _gauge("cloudid_connections", SERVER, "Connections of clients that are open.", merge=SUM),
    _gauge("cloudid_connection_limit", SERVER, "How many connections of clients there may be.", merge=SUM),
    _counter(
        "cloudid_unreadable_total{code}",
        SERVER,
        "What came over a connection and was no request that could be read, by the code of its refusal.",
    ),
    _gauge("cloudid_processes", SERVER, "Processes that these numbers are of.", merge=SUM),
    _counter("process_cpu_seconds_total", SERVER, "User and system CPU time."),
    _gauge("process_resident_memory_bytes", SERVER, "Resident memory.", merge=SUM),
    _gauge("process_open_fds", SERVER, "Open file descriptors.", merge=SUM),
    _gauge("process_max_fds", SERVER, "How many file descriptors may be open.", merge=SUM),
    _gauge("process_start_time_seconds", SERVER, "When the process was started.", merge=LEAST),
)

BY_NAME: Final = {metric.name: metric for metric in METRICS}
