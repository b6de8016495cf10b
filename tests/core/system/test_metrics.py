"""`sys/metrics`: who may read it, in which form, and what the node and the store tell."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core import Request
from cloudid_core.caches import Bounded, Caches
from cloudid_core.effects import ClockReading, Effect, ListKeys, ReadEntries, ReadEntry, Ready
from cloudid_core.metrics import BY_NAME, METRICS, Numbers, Source
from cloudid_core.system import metrics
from cloudid_core.system.metrics import CACHES, JSON, PROMETHEUS
from cloudid_core.testing.faults import FaultKind
from tests.engines import SecretsEngine
from tests.installation import ROOT, Installation
from tests.logins import configure_logins, login_form

PATH = "sys/metrics"


class Counting(SecretsEngine):
    """Its host shows metrics, and keeps what it was asked to show."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        self.shown: list[tuple[Numbers, str]] = []
        self.is_store_lost = False
        super().__init__(*args, **settings)

    def show_metrics(self, numbers: Numbers, output: str) -> Ready[str | None]:
        self.shown.append((numbers, output))
        return Ready("{}" if output == JSON else "text")

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        is_read = isinstance(effect, ReadEntry | ReadEntries | ListKeys)
        return FaultKind.FAIL if self.is_store_lost and is_read else super().fault_for(effect)

    @property
    def numbers(self) -> Numbers:
        """What the service tells now."""
        self.must("GET", PATH)
        return self.shown[-1][0]

    def one(self, name: str, *labels: str) -> float:
        return self.numbers[name][labels][0]


def test_a_host_that_counts_nothing_says_so() -> None:
    assert Installation().refused("GET", PATH) == (404, "unsupported_path")


def test_it_needs_a_token_that_may_read_it() -> None:
    world = Counting()
    assert world.refused("GET", PATH, token="") == (403, "permission_denied")
    token = world.must("POST", "auth/token/create", {"policies": ["default"]}).auth["client_token"]
    assert world.refused("GET", PATH, token=token) == (403, "permission_denied")
    world.must("PUT", "sys/policies/acl/scrape", {"policy": f'path "{PATH}" {{ capabilities = ["read"] }}'})
    token = world.must("POST", "auth/token/create", {"policies": ["scrape"]}).auth["client_token"]
    world.must("GET", PATH, token=token)


def test_a_token_is_not_called_wrong_while_the_store_cannot_tell_whose_it_is() -> None:
    """A scrape got 403, as if its policy were missing, while the database was away."""
    world = Counting()
    world.must("GET", PATH)
    world.is_store_lost = True
    assert world.refused("GET", PATH) == (503, "store_unavailable")
    assert world.refused("GET", PATH, token="") == (403, "permission_denied")
    world.is_store_lost = False
    assert world.refused("GET", PATH, token="nonsense") == (403, "permission_denied")
    world.must("GET", PATH)


def test_anybody_may_read_it_where_the_settings_say_so() -> None:
    world = Counting(metrics_access="anybody")
    for token in ("", "nonsense", ROOT):
        world.must("GET", PATH, token=token)


@pytest.mark.parametrize(
    "query, accept, output",
    [
        ("", "", JSON),
        ("", "application/json", JSON),
        ("?format=json", "", JSON),
        ("?format=prometheus", "", PROMETHEUS),
        ("", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", PROMETHEUS),
        ("", "text/plain", PROMETHEUS),
        ("", "prometheus/telemetry", PROMETHEUS),
    ],
)
def test_query_and_header_choose_the_form(query: str, accept: str, output: str) -> None:
    world = Counting()
    headers = {"x-service-token": ROOT, **({"accept": accept} if accept else {})}
    response = world.perform(world.service.handle(Request("GET", f"/v1/{PATH}{query}", headers)))
    assert (response.status, world.shown[-1][1]) == (200, output)
    assert response.headers["content-type"] == metrics.CONTENT_TYPES[output]
    assert response.body == (b"{}" if output == JSON else b"text")


def test_every_number_is_one_of_the_table_and_none_is_missing() -> None:
    world = Counting()
    told = world.numbers
    for name, series in told.items():
        assert all(len(labels) == len(BY_NAME[name].labels) for labels in series)
    wanted = {metric.name for metric in METRICS if metric.source in (Source.NODE, Source.STORE)}
    of_mounts = {name for name in wanted if BY_NAME[name].labels == ("mount",)}
    only_sometimes = {"cloudid_clock_skew_seconds", "cloudid_provider_reads_left", "cloudid_provider_failing"}
    assert set(told) == wanted - of_mounts - only_sometimes
    assert of_mounts, "there is no mount with a configuration"


def test_every_cache_that_grows_is_told() -> None:
    caches = Caches(Installation().settings)
    grown = {name for name, value in vars(caches).items() if isinstance(value, Bounded)}
    assert grown - set(CACHES) == {
        "jws_headers",
        "groups",
        "collections",
        "provider_troubles",
        "token_requests",
        "removed_certificates",
        "operators",
        "direct_routes",
        "quotas",
        "role_definitions",
        "read_budgets",
    }


def counting_engine() -> Counting:
    world = Counting()
    world.must("POST", "cloud/config", world.config)
    return world


def test_leases_are_told_by_their_state() -> None:
    world = counting_engine()
    world.role()
    for _ in range(3):
        world.issue("web")
    assert world.one("cloudid_leases", "alive") == 3
    lease = world.leases()[0]
    world.fail("graph", status=403, code="Authorization_RequestDenied")
    world.ask("PUT", "sys/leases/revoke", {"lease_id": lease})
    world.pass_time(metrics.PAUSE)
    told = world.numbers["cloudid_leases"]
    assert {state: row[0] for (state,), row in told.items()} == {"alive": 2, "ending": 0, "stuck": 1}


def test_leases_that_have_run_out_are_told_apart_from_other_work_that_is_due() -> None:
    world = counting_engine()
    world.must("POST", "cloud/config", {"rotation_period": 60})
    world.role(ttl=60)
    for _ in range(3):
        world.issue("web")
    world.advance(61 + metrics.PAUSE)
    told = world.numbers["cloudid_leases"]
    assert {state: row[0] for (state,), row in told.items()} == {"alive": 0, "ending": 3, "stuck": 0}


def test_background_work_of_a_node_whose_clock_is_ahead_is_not_called_late() -> None:
    """It goes by the store's clock."""
    world = counting_engine()
    world.role(ttl=60)
    world.issue("web")
    world.advance(60 + 300)
    assert world.one("cloudid_background_late_seconds", "lease") == 300
    world.context.node.clock = ClockReading(-601.0, 1.0)
    world.advance(metrics.PAUSE)
    assert world.one("cloudid_background_late_seconds", "lease") == 0
    assert world.one("cloudid_leases", "ending") == 0


def test_what_the_store_holds_is_counted_seldom() -> None:
    world = Counting()
    assert world.one("cloudid_quotas", "rate-limit") == 0
    world.must("POST", "sys/quotas/rate-limit/q", {"rate": 1000})
    assert world.one("cloudid_quotas", "rate-limit") == 0, "as it was counted"
    world.advance(metrics.PAUSE)
    assert world.one("cloudid_quotas", "rate-limit") == 1


def test_a_clock_that_was_set_back_holds_up_neither_counts_nor_looks() -> None:
    world = Counting()
    world.clock += 86_400
    world.perform(world.service.upkeep())
    assert world.one("cloudid_quotas", "rate-limit") == 0
    world.clock -= 86_400
    world.must("POST", "sys/quotas/rate-limit/q", {"rate": 1000})
    world.perform(world.service.upkeep())
    assert world.one("cloudid_quotas", "rate-limit") == 1
    assert world.service._look_at < world.clock + 3600


def test_counting_stops_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_COUNTED", 5)
    monkeypatch.setattr(metrics, "PAGE", 2)
    world = Installation()
    for number in range(9):
        world.must("PUT", f"sys/policies/acl/p{number}", {"policy": 'path "x" { capabilities = ["read"] }'})
    assert world.perform(metrics._count_keys("policy/")) == 5
    monkeypatch.setattr(metrics, "MOST_COUNTED", 100)
    assert world.perform(metrics._count_keys("policy/", until="policy/p3")) >= 3


def test_a_rotation_and_a_failing_credential_are_told() -> None:
    world = counting_engine()
    world.must("POST", "cloud/rotate-root")
    told = world.numbers
    assert told["cloudid_root_secret_rotated_timestamp_seconds"][("cloud",)][0] == pytest.approx(world.clock, abs=60)
    assert told["cloudid_rotation_failing"][("cloud",)] == [0]
    assert told["cloudid_credential_failing"][("cloud",)] == [0]
    world.must("POST", "cloud/config", {"client_secret": "wrong"})
    world.must("GET", "cloud/permissions")
    world.advance(metrics.PAUSE)
    assert world.numbers["cloudid_credential_failing"][("cloud",)] == [1]


def test_a_plan_that_cannot_rotate_is_told() -> None:
    world = counting_engine()
    world.must("POST", "cloud/config", {"rotation_period": 60})
    world.fail("graph", status=403, code="Authorization_RequestDenied")
    world.advance(61)
    world.tick()
    assert world.numbers["cloudid_rotation_failing"][("cloud",)] == [1]


def test_what_is_left_of_the_reads_is_told() -> None:
    world = Counting(provider_read_rate=10)
    world.must("POST", "auth/cloud/login", login_form(world, configure_logins(world)), token="")
    before = world.one("cloudid_provider_reads_left")
    assert 0 < before < 100
    world.advance(60)
    assert world.one("cloudid_provider_reads_left") > before


def test_what_cannot_be_read_is_left_out() -> None:
    """The node's own numbers are told while the store is lost: they say so."""
    world = Counting(metrics_access="anybody")
    world.is_store_lost = True
    told = world.numbers
    assert "cloudid_leases" not in told
    assert told["cloudid_problems"][("store_unavailable",)] == [1]
    assert told["cloudid_can_serve"] == {(): [0]}
    world.is_store_lost = False
    assert "cloudid_leases" in world.numbers


def test_a_node_tells_others_what_it_knows_of_itself() -> None:
    world = Counting()
    assert world.service.numbers(world.clock) == metrics.node_numbers(world.service.context, world.clock)
