"""A login is dispatched by the table of mounts as it was read last; an outdated table decides nothing.

There are two nodes over one store. The one that logs in remembers; changes are made at the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from cloudid_core.catalog import CATALOG
from cloudid_core.effects import Commit, Effect, ReadEntry
from cloudid_core.errors import RecordFailed
from cloudid_core.events import Event, RequestReceived
from cloudid_core.mounts import AUTH
from cloudid_core.quotas.rate_limit import READ_AGAIN
from cloudid_core.run import run
from cloudid_core.service import Service
from cloudid_core.store import keys
from tests.installation import Installation, Reply
from tests.logins import LOGIN, configure_logins, login_form

DEVICE: Final = {"type": "file", "options": {"file_path": "/var/log/audit.log"}}
ENABLE: Final = ("PUT", "sys/audit/file", DEVICE)
DISABLE: Final = ("DELETE", "sys/audit/file")
TUNE: Final = "sys/auth/cloud/tune"


class TwoNodes(Installation):
    """A machine has logged in at one of them."""

    def __init__(self, *changes: tuple[Any, ...], **role: Any) -> None:
        super().__init__()
        self.when_received: Callable[[], Any] | None = None
        """What is done once, when the next audited request of this node is recorded; it runs on this host."""
        self.broken: set[str] = set()
        """Audit devices that take nothing."""
        self.machine = configure_logins(self, **role)
        self.there: Service = self.open_node()
        for change in changes:
            self.change(*change)
        self.advance(READ_AGAIN)
        self.body = login_form(self, self.machine)
        self.log_in()
        self.events.clear()

    def change(self, method: str, path: str, body: object = None) -> None:
        """Something is changed at the other node."""
        with self.requests_to(self.there):
            self.must(method, path, body)

    def log_in(self, path: str = LOGIN, **headers: str) -> Reply:
        return self.ask("POST", path, self.body, token="", **headers)

    async def record(self, event: Event) -> None:
        if isinstance(event, RequestReceived) and self.when_received is not None:
            program, self.when_received = self.when_received, None
            await run(program(), self)
        if event.audit is not None and self.broken.intersection(device.name for device in event.audit.devices):
            raise RecordFailed("disk full")
        await super().record(event)

    def entries(self, path: str = LOGIN) -> list[Any]:
        """The audit entries about a path."""
        texts = [text for event in self.events if event.audit is not None for text in event.audit.texts]
        return [entry for entry in map(msgspec.json.decode, texts) if entry["request"].get("path") == path]

    def types(self) -> list[str]:
        return [entry["type"] for entry in self.entries()]

    def effects_of(self, ask: Callable[[], object]) -> list[Effect[Any]]:
        before = len(self.trace)
        ask()
        return [effect for _, effect in self.trace[before:]]


def reads_mounts(effects: list[Effect[Any]]) -> bool:
    return any(isinstance(effect, ReadEntry) and effect.key == keys.MOUNTS for effect in effects)


# What rests on a remembered table


def test_only_logins_rest_on_a_remembered_table() -> None:
    rows = [(component.kind, row) for component in CATALOG for row in component.routes.routes]
    assert [(kind, row.path) for kind, row in rows if row.rests_on_view] == [(AUTH, "login")]


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "sys/health"),
        ("GET", "auth/token/lookup-self"),
        ("GET", "auth/cloud/config"),
        ("GET", "nowhere"),
        ("GET", LOGIN),
        ("POST", f"{LOGIN}/"),
        ("POST", f"{LOGIN}?help=1"),
        ("HELP", LOGIN),
    ],
)
def test_all_else_reads_the_table(method: str, path: str) -> None:
    nodes = TwoNodes()
    for _ in range(2):
        assert reads_mounts(nodes.effects_of(lambda: nodes.ask(method, path)))


@pytest.mark.parametrize("token_type", ["service", "batch"])
def test_a_login_commits_only_with_the_table_that_it_was_dispatched_by(token_type: str) -> None:
    """The commit of a batch token writes nothing, and still expects."""
    nodes = TwoNodes(token_type=token_type)
    effects = nodes.effects_of(nodes.log_in)
    assert not reads_mounts(effects)
    (commit,) = [effect for effect in effects if isinstance(effect, Commit)]
    assert keys.MOUNTS in commit.expects
    assert bool(commit.puts) == (token_type == "service")


# A change at another node counts at once


def test_a_mount_that_was_disabled_admits_no_login() -> None:
    for token_type in ("service", "batch"):
        nodes = TwoNodes(token_type=token_type)
        nodes.change("DELETE", "sys/auth/cloud")
        assert nodes.log_in().code == "permission_denied"


def test_a_mount_that_was_moved_admits_logins_at_its_new_path_only() -> None:
    nodes = TwoNodes()
    nodes.change("POST", "sys/remount", {"from": "auth/cloud", "to": "auth/other"})
    assert nodes.log_in().code == "permission_denied"
    assert nodes.log_in("auth/other/login").status == 200
    nodes.change("POST", "sys/remount", {"from": "auth/other", "to": "auth/cloud"})
    assert nodes.log_in().status == 200


def test_a_mount_that_took_the_path_of_another_gets_its_logins() -> None:
    nodes = TwoNodes()
    nodes.change("DELETE", "sys/auth/cloud")
    nodes.change("POST", "sys/auth/cloud", {"type": "cloud"})
    assert nodes.log_in().code == "config_missing"


def test_the_type_of_tokens_that_a_mount_was_tuned_to_counts_at_once() -> None:
    nodes = TwoNodes()
    for token_type in ("batch", "service"):
        nodes.change("POST", TUNE, {"token_type": token_type})
        assert nodes.log_in().auth["token_type"] == token_type


def test_the_lifetimes_that_a_mount_was_tuned_to_count_at_once() -> None:
    nodes = TwoNodes()
    for seconds in (600, 1200):
        nodes.change("POST", TUNE, {"default_lease_ttl": seconds})
        assert nodes.log_in().auth["lease_duration"] == seconds


# Audit


@pytest.mark.parametrize("token_type", ["service", "batch"])
def test_a_device_that_was_enabled_gets_both_entries_of_the_next_login(token_type: str) -> None:
    nodes = TwoNodes(token_type=token_type)
    nodes.change(*ENABLE)
    assert nodes.log_in().status == 200
    assert nodes.types() == ["request", "response"]


def test_a_device_that_was_disabled_gets_no_response() -> None:
    nodes = TwoNodes(ENABLE)
    nodes.log_in()
    assert nodes.types() == ["request", "response"]
    nodes.change(*DISABLE)
    nodes.events.clear()
    assert nodes.log_in().status == 200
    assert nodes.types() == ["request"]  # of the attempt that came to nothing


def test_a_device_that_was_disabled_because_it_fails_stops_no_login() -> None:
    nodes = TwoNodes(ENABLE)
    nodes.change(*DISABLE)
    nodes.broken.add("file")
    assert nodes.log_in().status == 200


def test_a_device_that_fails_refuses_logins() -> None:
    nodes = TwoNodes(ENABLE)
    nodes.broken.add("file")
    assert nodes.log_in().code == "audit_unavailable"


def test_headers_that_go_on_record_count_at_once() -> None:
    nodes = TwoNodes(ENABLE)
    nodes.log_in(x_tracing="a")
    nodes.change("POST", "sys/config/auditing/request-headers/x-tracing", {"hmac": False})
    nodes.log_in(x_tracing="b")
    request, response = nodes.entries()[-2:]
    assert request["request"]["headers"] == response["request"]["headers"] == {"x-tracing": ["b"]}
    assert "headers" not in nodes.entries()[0]["request"]


REFUSALS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "a field is missing": ({"jwt": ""}, "field_required"),
    "a field is of another type": ({"role": {}}, "field_invalid"),
    "a name breaks its grammar": ({"vm_name": "/"}, "field_invalid"),
    "no such role": ({"role": "none"}, "role_not_found"),
    "not a token": ({"jwt": "x"}, "jwt_malformed"),
    "another machine": ({"vm_name": "other"}, "vm_name_mismatch"),
}


@pytest.mark.parametrize("fields, code", REFUSALS.values(), ids=REFUSALS)
def test_a_device_that_was_enabled_gets_the_refusal_of_the_next_login(fields: dict[str, Any], code: str) -> None:
    nodes = TwoNodes()
    nodes.body |= fields
    nodes.change(*ENABLE)
    assert nodes.log_in().status >= 400
    assert nodes.entries()[-1]["error_codes"] == [code]


def test_a_device_that_was_enabled_gets_a_refusal_by_a_header() -> None:
    nodes = TwoNodes()
    nodes.change(*ENABLE)
    assert nodes.log_in(x_service_deadline="never").status == 400
    assert nodes.types() == ["response"]


def test_a_device_that_was_enabled_gets_a_refusal_by_a_quota() -> None:
    nodes = TwoNodes(("POST", "sys/quotas/rate-limit/login", {"path": "auth/cloud", "rate": 1, "interval": "1m"}))
    nodes.change(*ENABLE)
    assert nodes.log_in().code == "rate_limit_exceeded"
    assert nodes.types() == ["response"]


def test_a_table_that_changes_while_a_login_is_under_way_has_it_start_again() -> None:
    """The other request leaves a snapshot of the new table: a login that took it would be at one device only."""
    nodes = TwoNodes(ENABLE)
    body = nodes.body

    async def enable_and_log_in() -> None:
        await nodes.there.handle(nodes.request("PUT", "sys/audit/other", DEVICE))
        await nodes.service.handle(nodes.request("POST", LOGIN, body, ""))
        nodes.events.clear()

    nodes.when_received = enable_and_log_in
    assert nodes.log_in().status == 200
    devices = [len(event.audit.devices) for event in nodes.events if event.audit is not None]
    assert devices == [1, 2, 2]


def test_a_table_that_changes_without_end_refuses_logins_in_the_end() -> None:
    nodes = TwoNodes(ENABLE)

    async def change_again() -> None:
        nodes.clock += 1.0
        await nodes.there.handle(nodes.request("POST", TUNE, {"default_lease_ttl": int(nodes.clock) % 3600 + 60}))
        nodes.when_received = change_again

    nodes.when_received = change_again
    assert nodes.log_in().code == "store_contended"


# What counts requests counts each of them once


def test_a_login_that_starts_again_takes_one_of_its_quota() -> None:
    nodes = TwoNodes(("POST", "sys/quotas/rate-limit/login", {"path": "auth/cloud", "rate": 3, "interval": "1m"}))
    nodes.change(*ENABLE)
    assert [nodes.log_in().status for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize("change", [ENABLE, ("POST", "auth/cloud/role/dev", {"token_policies": "ops"})])
def test_a_failed_login_that_starts_again_counts_once(change: tuple[str, str, Any]) -> None:
    nodes = TwoNodes()
    nodes.body["jwt"] = "x"
    nodes.change(*change)
    assert [nodes.log_in().code for _ in range(21)] == ["jwt_malformed"] * 20 + ["logins_throttled"]


# Provider


def test_the_provider_is_not_asked_for_a_mount_that_is_gone() -> None:
    nodes = TwoNodes(bound_locations="westus2")
    nodes.advance(120)  # what the provider said is out of date
    nodes.change("DELETE", "sys/auth/cloud")
    before = len(nodes.trace)
    assert nodes.log_in().code == "permission_denied"
    assert nodes.calls(before) == []
