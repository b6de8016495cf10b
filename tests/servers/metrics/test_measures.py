"""What a server measures: calls by interface, batches, the process."""

from __future__ import annotations

import resource

from cloudid_core.clouds import CLOUDS, DEFAULT_ENVIRONMENT
from cloudid_core.events import LeaseChanged
from cloudid_core.metrics import BY_NAME, put
from cloudid_servers.metrics.measures import Measures, process_numbers

CLOUD = CLOUDS[DEFAULT_ENVIRONMENT]


def test_calls_are_told_by_interface_and_status() -> None:
    measures = Measures(CLOUDS.values())
    for address, status in (
        (f"{CLOUD.login}/tenant/oauth2/v2.0/token", 200),
        (f"{CLOUD.resource_manager}/subscriptions/s", 429),
        (f"{CLOUD.directory}/v1.0/applications", 503),
        (f"{CLOUD.directory}/v1.0/applications", None),
        ("http://169.254.169.254/metadata", 200),
    ):
        measures.note_call(address, status, 0.2)
    told = measures.numbers
    assert told["cloudid_provider_calls_total"] == {
        ("login", "200"): [1],
        ("resource manager", "429"): [1],
        ("directory", "503"): [1],
        ("directory", "none"): [1],
        ("other", "200"): [1],
    }
    assert set(told["cloudid_provider_call_seconds"]) == {("login",), ("resource manager",), ("directory",), ("other",)}


def test_batches_events_and_gauges_are_told_together() -> None:
    measures = Measures()
    measures.note_batch(3, 0.01)
    measures.note_unreadable("malformed_request")
    measures.tally(LeaseChanged(lease_id="l", mount_id="m", state="issued"), 0.0)
    measures.gauges.append(lambda numbers: put(numbers, "cloudid_connections", 7))
    told = measures.numbers
    assert told["cloudid_store_batch_commits"][()][-1] == 3
    assert told["cloudid_unreadable_total"] == {("malformed_request",): [1]}
    assert told["cloudid_lease_changes_total"] == {("issued", "false"): [1]}
    assert (told["cloudid_connections"], told["cloudid_processes"]) == ({(): [7]}, {(): [1]})
    assert set(told) <= set(BY_NAME)


def test_the_process_is_told() -> None:
    told = process_numbers()
    assert set(told) == {name for name in BY_NAME if name.startswith("process_")}
    assert told["process_max_fds"][()] == [resource.getrlimit(resource.RLIMIT_NOFILE)[0]]
    assert told["process_resident_memory_bytes"][()][0] > 2**20
