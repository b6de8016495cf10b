"""Every metric, as one table: what a scrape answers, the page about it and the tests are made from its rows.

The values of a label are few, or are bounded by what operators made: codes, statuses, mounts, roles that exist.
Nothing that a client makes up becomes one. Where there are more than `numbers.MOST_SERIES` all the same, the rest is
counted together.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
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
    """A row. Its name and labels are written as a query has them: `name{label,label}`."""
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
        "counter events cloudid_requests_total{mount,operation,status}": "Requests that were answered, by the path of "
        "the mount (empty: there is none at the path), what the request asks for, and the status of the answer.",
        "histogram events cloudid_request_seconds{operation}": "Time from the arrival of a request at the service to "
        "its answer. A login has an operation of its own.",
        "counter events cloudid_logins_total{mount,role,code}": "Logins, by mount, role and the code of the refusal: "
        "admitted if there is none. The role is empty unless the mount accepted the JWT and the role exists.",
        "counter events cloudid_refusals_total{code}": "Refused requests by their first code: quotas "
        "(rate_limit_exceeded, lease_count_exceeded, logins_throttled), failures of the provider and of the store "
        "among them.",
        "counter events cloudid_machine_claims_ignored_total": "Logins whose machine claim is no id of a resource in "
        "a resource group.",
        # Leases, journal, rotations
        "counter events cloudid_lease_changes_total{state,failed}": "What became of leases. With failed=true, an "
        "attempt to revoke one failed.",
        "counter events cloudid_intent_changes_total{state,failed}": "What became of the journal's intents. With "
        "failed=true, an attempt to undo one failed.",
        "counter events cloudid_rotation_changes_total{phase,failed}": "Steps of rotations of root secrets, by the "
        "phase that they led to. With failed=true, a step failed.",
        "counter events cloudid_root_secret_warnings_total": "Warnings that a root secret soon ends or could not be "
        "rotated.",
        "counter events cloudid_background_failures_total{work}": "Background work that failed in a way that its own "
        "record cannot tell.",
        "gauge store cloudid_mounts{type}": "Mounts, by their type.",
        "gauge store cloudid_mounts_retiring": "Disabled mounts that still have objects at the provider.",
        "gauge store cloudid_leases{state}": "Leases: alive; ending, whose time is over; stuck, whose revocation has "
        "failed so far.",
        "gauge store cloudid_lease_stuck_oldest_seconds": "For how long the time of the oldest stuck lease has been "
        "over; 0 without one. Of the first 1000.",
        "gauge store cloudid_intents": "Intents of the journal: objects at the provider that are being made, or have "
        "to be removed.",
        "gauge store cloudid_background_late_seconds{kind}": "How late the earliest background work of a kind is; 0 "
        "if it is not due yet.",
        "gauge store cloudid_root_secret_ends_timestamp_seconds{mount}": "When the root secret of a mount ends, where "
        "a rotation made it.",
        "gauge store cloudid_root_secret_rotated_timestamp_seconds{mount}": "When the root secret of a mount was "
        "rotated last.",
        "gauge store cloudid_root_secret_next_rotation_timestamp_seconds{mount}": "When the root secret of a mount is "
        "rotated next by its rule.",
        "gauge store cloudid_rotation_failing{mount}": "1 if the last step of the rotation of a mount's root secret, "
        "or its plan, failed.",
        "gauge node cloudid_credential_failing{mount}": "1 if this node did not get the last access token that it "
        "asked for in the name of the mount.",
        "gauge node cloudid_provider_failing{mount,family}": "1 while Azure rejects the credential of a mount, or a "
        "family of calls (login, resource manager, directory) has failed for it for a minute; family keys without a "
        "mount: a tenant's signing keys. Absent otherwise.",
        # The node
        "gauge node cloudid_info{version,node}": "1, with the version and the id of the node.",
        "gauge node cloudid_can_serve least": "1 if requests may come to this node, otherwise 0.",
        "gauge node cloudid_problems{code}": "Occurrences of each problem that sys/health tells.",
        "gauge node cloudid_leads": "1 if this node does the background work.",
        "gauge node cloudid_not_given_back": "Leases, tokens and wrapped answers that no caller received and that the "
        "store did not take back yet.",
        "gauge node cloudid_nodes": "How many nodes serve the store, as far as this one knows.",
        "gauge node cloudid_start_timestamp_seconds least": "When the service of this node was opened.",
        "gauge node cloudid_swept_timestamp_seconds": "When this node last removed dead tokens from the store; 0: "
        "never, as on a node that does not lead.",
        "gauge node cloudid_store_read_seconds": "How long the node's last look at the store took.",
        "gauge node cloudid_clock_skew_seconds": "How far this machine's clock is away from the store's, whichever is "
        "ahead; absent where they are one.",
        "gauge node cloudid_cache_entries{cache} sum": "Entries of each cache.",
        "gauge node cloudid_cache_size{cache} sum": "How many entries each cache can have.",
        "gauge store cloudid_quotas{kind}": "Quotas: rate-limit and lease-count.",
        # The provider
        "gauge node cloudid_provider_reads_left least": "How many reads this node may send to the resource manager at "
        "once, of the subscription with the fewest; below 0, so many wait. Absent before the first read, and where "
        "reads are not limited.",
        "counter server cloudid_provider_calls_total{family,status}": "Calls to the provider by interface (login, "
        "resource manager, directory; other: the platform's metadata service) and status: 429 is throttling, none: no "
        "answer.",
        "histogram server cloudid_provider_call_seconds{family}": "Time of calls to the provider, with what they "
        "waited for each other.",
        "gauge server cloudid_provider_calls_open sum": "Calls to the provider that are under way or wait for others.",
        # The store
        "histogram server cloudid_store_batch_seconds": "Time that the store took to write a batch of commits.",
        "histogram server cloudid_store_batch_commits": "How many commits were written in one batch.",
        # The server
        "gauge server cloudid_audit_device_failing{device}": "1 if an audit device could not be written the last "
        "time, 0 if it could.",
        "gauge server cloudid_tls_certificate_ends_timestamp_seconds least": "When the certificate ends that new "
        "connections get; absent without TLS.",
        "gauge server cloudid_connections sum": "Connections of clients that are open.",
        "gauge server cloudid_connection_limit sum": "How many connections of clients there may be.",
        "counter server cloudid_unreadable_total{code}": "What came over a connection and was no request that could "
        "be read, by the code of its refusal.",
        "gauge server cloudid_processes sum": "Processes that these numbers are of.",
        "counter server process_cpu_seconds_total": "User and system CPU time.",
        "gauge server process_resident_memory_bytes sum": "Resident memory.",
        "gauge server process_open_fds sum": "Open file descriptors.",
        "gauge server process_max_fds sum": "How many file descriptors may be open.",
        "gauge server process_start_time_seconds least": "When the process was started.",
    }.items()
)

"""Kind, source, name with labels and, where it is not the usual one, how workers merge it; and what it tells."""

BY_NAME: Final = {metric.name: metric for metric in METRICS}
