"""The tally: what of the stream of events is counted, and that nothing a client makes up becomes a label."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.effects import Entry
from cloudid_core.errors import RecordFailed, StoreFailed
from cloudid_core.events import (
    Event,
    IntentChanged,
    JobFailed,
    KeysChanged,
    LeaseChanged,
    MachineClaimIgnored,
    Problem,
    RequestAnswered,
    RootSecretAtRisk,
    RotationChanged,
)
from cloudid_core.metrics import Numbers, Tally, tally
from tests.installation import Installation
from tests.logins import configure_logins, login_form

LOGIN = {"operation": "update", "path": "auth/cloud/login", "mount": "auth/cloud"}


def answered(**facts: Any) -> RequestAnswered:
    return RequestAnswered(**{"request_id": "1", "time": 100.0, "status": 200, **facts})


def counted(*events: Event) -> Numbers:
    told = Tally()
    for event in events:
        told(event, 100.3)
    return told.numbers


def test_a_login_is_counted_by_mount_role_and_code() -> None:
    known = {**LOGIN, "principal_id": "p"}
    told = counted(
        answered(**known, role="Web"),
        answered(**known, role="web"),
        answered(**known, role="web", status=403, codes=("jwt_expired",)),
        answered(**known, role="made up", status=400, codes=("role_not_found",)),
        answered(**LOGIN, role="made up", status=403, codes=("login_refused",)),
    )
    assert told["cloudid_logins_total"] == {
        ("auth/cloud", "web", "admitted"): [2],
        ("auth/cloud", "web", "jwt_expired"): [1],
        ("auth/cloud", "", "role_not_found"): [1],
        ("auth/cloud", "", "login_refused"): [1],
    }
    assert told["cloudid_requests_total"] == {
        ("auth/cloud", "login", "200"): [2],
        ("auth/cloud", "login", "403"): [2],
        ("auth/cloud", "login", "400"): [1],
    }
    assert set(told["cloudid_refusals_total"]) == {("jwt_expired",), ("role_not_found",), ("login_refused",)}


def test_a_request_is_measured() -> None:
    told = counted(answered(operation="read", path="sys/health", mount="sys"))
    [(labels, row)] = told["cloudid_request_seconds"].items()
    assert labels == ("read",)
    assert row[-1] == pytest.approx(0.3)
    assert row[:-1].index(1) == 8, "the bucket up to half a second"


def test_a_clock_that_was_set_back_takes_no_time_away() -> None:
    told = Tally()
    told(answered(), 90.0)
    [row] = told.numbers["cloudid_request_seconds"].values()
    assert (row[0], row[-1]) == (1, 0)


def test_a_path_of_another_mount_that_ends_alike_is_no_login() -> None:
    assert "cloudid_logins_total" not in counted(answered(operation="update", path="kv/login", mount="kv"))


@pytest.mark.parametrize(
    "event, name, labels",
    [
        (LeaseChanged(lease_id="l", mount_id="m", state="issued"), "cloudid_lease_changes_total", ("issued", "false")),
        (
            LeaseChanged(lease_id="l", mount_id="m", state="revoking", reason="no"),
            "cloudid_lease_changes_total",
            ("revoking", "true"),
        ),
        (
            IntentChanged(intent_id="i", mount_id="m", state="opened"),
            "cloudid_intent_changes_total",
            ("opened", "false"),
        ),
        (
            RotationChanged(mount_id="m", phase="proving", reason="no"),
            "cloudid_rotation_changes_total",
            ("proving", "true"),
        ),
        (RootSecretAtRisk(mount_id="m", reason="ends"), "cloudid_root_secret_warnings_total", ()),
        (JobFailed(job="lease", problem=Problem("X")), "cloudid_background_failures_total", ("lease",)),
        (
            MachineClaimIgnored(request_id="r", mount_accessor="a", role="dev", claim="c"),
            "cloudid_machine_claims_ignored_total",
            (),
        ),
    ],
)
def test_what_else_is_counted(event: Event, name: str, labels: tuple[str, ...]) -> None:
    assert counted(event, event) == {name: {labels: [2]}}


def test_what_has_no_row_is_not_counted() -> None:
    assert counted(KeysChanged(kind="data")) == {}


def test_kinds_of_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roles are forgotten first, then mounts; nothing is lost from the sum."""
    monkeypatch.setattr(tally, "MOST_KINDS", 3)
    told = Tally()
    for number in range(100):
        for mount in ("auth/a", f"auth/{number}"):
            told(answered(**{**LOGIN, "mount": mount}, role=f"r{number}", principal_id="p"), 100.0)
    numbers = told.numbers
    assert sum(row[0] for row in numbers["cloudid_requests_total"].values()) == 200
    assert len(numbers["cloudid_requests_total"]) <= 8
    assert len(numbers["cloudid_logins_total"]) <= 8


def test_invented_roles_take_no_place_from_roles_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even with an accepted token."""
    monkeypatch.setattr(tally, "MOST_KINDS", 3)
    told = Tally()
    refused = {**LOGIN, "principal_id": "p", "status": 400, "codes": ("role_not_found",)}
    for number in range(100):
        told(answered(**refused, role=f"r{number}"), 100.0)
    told(answered(**LOGIN, principal_id="p", role="web"), 100.0)
    assert told.numbers["cloudid_logins_total"] == {
        ("auth/cloud", "", "role_not_found"): [100],
        ("auth/cloud", "web", "admitted"): [1],
    }


def test_the_events_of_a_service_are_counted() -> None:
    """Roles that do not exist and tokens of strangers make no label, however many there are."""
    world = Installation()
    form = login_form(world, configure_logins(world))
    world.events.clear()
    world.must("POST", "auth/cloud/login", form, token="")
    for number in range(20):
        world.ask("POST", "auth/cloud/login", {**form, "role": f"made-up-{number}"}, token="")
        world.ask("POST", "auth/cloud/login", {**form, "jwt": f"made.up.{number}"}, token="")
        world.ask("GET", f"made-up/{number}", token="")
    told = counted(*world.events)
    assert told["cloudid_logins_total"] == {
        ("auth/cloud", "dev", "admitted"): [1],
        ("auth/cloud", "", "role_not_found"): [20],
        ("auth/cloud", "", "jwt_malformed"): [20],
    }
    assert not [labels for series in told.values() for labels in series if "made" in "".join(labels)]


class LostRoles(Installation):
    """Its store cannot be read where a role that was made up would be."""

    async def read_entry(self, key: str) -> Entry | None:
        if key.endswith("/made-up"):
            raise StoreFailed("it does not answer")
        return await super().read_entry(key)


def test_no_invented_role_becomes_a_label_when_the_store_cannot_tell_whether_it_exists() -> None:
    world = LostRoles()
    form = login_form(world, configure_logins(world))
    world.events.clear()
    refusal = world.refused("POST", "auth/cloud/login", {**form, "role": "made-up"}, token="")
    assert refusal == (503, "store_unavailable")
    assert counted(*world.events)["cloudid_logins_total"] == {("auth/cloud", "", "store_unavailable"): [1]}


class FullDisk(Installation):
    """Its audit device cannot take the entry of any refusal."""

    async def record(self, event: Event) -> None:
        if isinstance(event, RequestAnswered) and event.audit is not None and event.codes:
            raise RecordFailed("disk full")
        await super().record(event)


def test_no_invented_role_becomes_a_label_when_its_refusal_cannot_be_recorded() -> None:
    """The code is another one then; a role that exists keeps its label."""
    world = FullDisk()
    machine = configure_logins(world, bound_locations="nowhere")
    world.must("PUT", "sys/audit/file", {"type": "file", "options": {"file_path": "/var/log/audit.log"}})
    form = login_form(world, machine)
    world.events.clear()
    for role in ("dev", "made-up"):
        assert world.refused("POST", "auth/cloud/login", {**form, "role": role}, token="") == (503, "audit_unavailable")
    assert counted(*world.events)["cloudid_logins_total"] == {
        ("auth/cloud", "dev", "audit_unavailable"): [1],
        ("auth/cloud", "", "audit_unavailable"): [1],
    }
