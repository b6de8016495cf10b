"""The table of all metrics, from which scrapes, the reference page and the tests are derived.

Labels have few values, or values that operators created: codes, statuses, mounts, existing roles. Values that clients
make up are never labels. If there are more than `numbers.MOST_SERIES` combinations anyway, the rest are counted
together.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from attrs import frozen


class Kind(Enum):
    """The type of a metric, in Prometheus' words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Source(Enum):
    """Where the numbers come from."""

    EVENTS = "events"
    """Counted from the stream of events."""
    NODE = "node"
    """The state of the node at the time of the request: its health and its caches."""
    STORE = "store"
    """Read from the store when requested: all nodes that share a store return the same."""
    SERVER = "server"
    """Measured by cloudid's own servers; other hosts may omit it."""


class Merge(Enum):
    """How the values of a machine's workers are combined."""

    SUM = "sum"
    MOST = "most"
    LEAST = "least"


@frozen(kw_only=True)
class Metric:
    """A row. A histogram has the upper bounds of its buckets, without the last, unbounded bucket."""

    name: str
    kind: Kind
    source: Source
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    merge: Merge = Merge.SUM


REQUEST_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
PROVIDER_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STORE_BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
BATCH_BUCKETS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
BUCKETS: Final[Mapping[str, tuple[float, ...]]] = {
    "cloudid_request_seconds": REQUEST_BUCKETS,
    "cloudid_provider_call_seconds": PROVIDER_BUCKETS,
    "cloudid_store_batch_seconds": STORE_BUCKETS,
    "cloudid_store_batch_commits": BATCH_BUCKETS,
}


def _metric(kind: str, source: str, written: str, merge: str = "", *, about: str) -> Metric:
    """Return a row. Name and labels are written as in a query: `name{label,label}`."""
    name, _, labels = written.removesuffix("}").partition("{")
    return Metric(
        name=name,
        kind=Kind(kind),
        source=Source(source),
        help=about,
        labels=tuple(filter(None, labels.split(","))),
        buckets=BUCKETS.get(name, ()),
        merge=Merge(merge or ("most" if kind == "gauge" else "sum")),
    )


METRICS: Final = tuple(
    _metric(*written.split(), about=about)
    for written, about in {
        # Requests
        "counter events cloudid_requests_total{mount,operation,status}": "Answered requests, by path of "
        "the mount (empty: no mount), operation and status of the response.",
        "histogram events cloudid_request_seconds{operation}": "Time from the arrival of a request to "
        "its response. Logins have an operation of their own.",
        "counter events cloudid_logins_total{mount,role,code}": "Logins, by mount, role and code of the "
        "refusal, which is `admitted` if there is none. The role is empty unless the mount accepted "
        "the JWT and the role exists.",
        "counter events cloudid_refusals_total{code}": "Refused requests, by their first code. Includes "
        "quotas (rate_limit_exceeded, lease_count_exceeded, logins_throttled), and failures of Azure "
        "and of the store.",
        "counter events cloudid_machine_claims_ignored_total": "Logins whose machine claim is not the id "
        "of a resource in a resource group.",
        # Leases, journal, rotations
        "counter events cloudid_lease_changes_total{state,failed}": "Changes of leases, by new state. "
        "failed=true: an attempt to revoke the lease failed.",
        "counter events cloudid_intent_changes_total{state,failed}": "Changes of the journal's intents, "
        "by new state. failed=true: an attempt to undo the intent failed.",
        "counter events cloudid_rotation_changes_total{phase,failed}": "Steps in the rotation of client "
        "secrets, by the phase that they led to. failed=true: a step failed.",
        "counter events cloudid_root_secret_warnings_total": "Warnings that a client secret expires soon "
        "or could not be rotated.",
        "counter events cloudid_background_failures_total{work}": "Background work that failed without a "
        "record of its own to store the reason.",
        "gauge store cloudid_mounts{type}": "Mounts, by their type.",
        "gauge store cloudid_mounts_retiring": "Disabled mounts that still have objects in Azure.",
        "gauge store cloudid_leases{state}": "Leases by state: alive; ending, which have expired; stuck, "
        "whose revocation has failed so far.",
        "gauge store cloudid_lease_stuck_oldest_seconds": "Seconds since the oldest stuck lease expired, "
        "among the first 1000. 0: there is none.",
        "gauge store cloudid_intents": "Intents in the journal: objects that are being created in Azure, "
        "or must be deleted there.",
        "gauge store cloudid_background_late_seconds{kind}": "How late the earliest background work of "
        "each kind is. 0: none is late.",
        "gauge store cloudid_root_secret_ends_timestamp_seconds{mount}": "When the client secret of a "
        "mount expires, if a rotation created it.",
        "gauge store cloudid_root_secret_rotated_timestamp_seconds{mount}": "When the client secret of a "
        "mount was last rotated.",
        "gauge store cloudid_root_secret_next_rotation_timestamp_seconds{mount}": "When the client "
        "secret of a mount is next rotated on schedule.",
        "gauge store cloudid_rotation_failing{mount}": "1 if the last step of the rotation of a mount's "
        "client secret failed, or if the rotation could not be scheduled.",
        "gauge node cloudid_credential_failing{mount}": "1 if the last request of this node for an "
        "access token of the mount failed.",
        "gauge node cloudid_provider_failing{mount,family}": "1 while Azure rejects the credential of a "
        "mount, or while a family of calls (login, resource manager, directory) has failed for more "
        "than a minute. The family `keys`, without a mount, is the signing keys of a tenant. Absent "
        "otherwise.",
        # The node
        "gauge node cloudid_info{version,node}": "1, with the version and the id of the node.",
        "gauge node cloudid_can_serve least": "1 if this node can serve requests, otherwise 0.",
        "gauge node cloudid_problems{code}": "Occurrences of each problem that sys/health reports.",
        "gauge node cloudid_leads": "1 if this node does the background work.",
        "gauge node cloudid_not_given_back": "Leases, tokens and wrapped responses that no caller "
        "received and that are not revoked yet.",
        "gauge node cloudid_nodes": "Number of nodes that share the store, as far as this node knows.",
        "gauge node cloudid_start_timestamp_seconds least": "When the service on this node started.",
        "gauge node cloudid_swept_timestamp_seconds": "When this node last removed expired tokens from "
        "the store. 0: never, for example because it does not do the background work.",
        "gauge node cloudid_store_read_seconds": "How long this node's last read of the store took.",
        "gauge node cloudid_clock_skew_seconds": "Difference between this machine's clock and the "
        "store's. Absent if they are the same clock.",
        "gauge node cloudid_cache_entries{cache} sum": "Entries in each cache.",
        "gauge node cloudid_cache_size{cache} sum": "Maximum entries in each cache.",
        "gauge store cloudid_quotas{kind}": "Quotas by kind: rate-limit and lease-count.",
        # The provider
        ("gauge node cloudid_provider_reads_left least"): "How many reads this node may send to Azure "
        "Resource Manager immediately, for the subscription with the fewest. Negative: so many reads "
        "are waiting. Absent before the first read, and if reads are not limited.",
        "counter server cloudid_provider_calls_total{family,status}": "Calls to Azure, by family (login, "
        "resource manager, directory; other: the platform's metadata service) and status. 429 is "
        "throttling, none is no response.",
        "histogram server cloudid_provider_call_seconds{family}": "Duration of calls to Azure, including "
        "the time that they waited for each other.",
        "gauge server cloudid_provider_calls_open sum": "Calls to Azure that are in progress or waiting.",
        # The store
        "histogram server cloudid_store_batch_seconds": "Time to write a batch of commits to the store.",
        "histogram server cloudid_store_batch_commits": "Number of commits in a batch.",
        # The server
        "gauge server cloudid_audit_device_failing{device}": "1 if the last write to an audit device "
        "failed, otherwise 0.",
        ("gauge server cloudid_tls_certificate_ends_timestamp_seconds least"): "When the TLS certificate "
        "for new connections expires. Absent without TLS.",
        "gauge server cloudid_connections sum": "Open connections of clients.",
        "gauge server cloudid_connection_limit sum": "Maximum open connections of clients.",
        "counter server cloudid_unreadable_total{code}": "Invalid HTTP requests, by the code of their refusal.",
        "gauge server cloudid_processes sum": "Number of processes that these numbers include.",
        "counter server process_cpu_seconds_total": "User and system CPU time.",
        "gauge server process_resident_memory_bytes sum": "Resident memory.",
        "gauge server process_open_fds sum": "Open file descriptors.",
        "gauge server process_max_fds sum": "Maximum open file descriptors.",
        "gauge server process_start_time_seconds least": "When the process started.",
    }.items()
)

"""Type, source, name with labels and, if it is not the usual one, how workers combine it; and its meaning."""

BY_NAME: Final = {metric.name: metric for metric in METRICS}
