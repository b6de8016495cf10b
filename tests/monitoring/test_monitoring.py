"""The alert rules and the dashboard: Prometheus' own tool takes them, each alert fires when it should, and each panel
shows something."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from cloudid_core.health import HealthProblem
from cloudid_core.metrics import METRICS, Kind
from tests.waiting import PATIENCE

FOLDER: Final = Path(__file__).parents[2] / "deploy/monitoring"
RULES: Final = FOLDER / "alerts.yml"
DASHBOARD: Final = json.loads((FOLDER / "dashboard.json").read_text())
ALERTS: Final = re.findall(r"- alert: (\w+)", RULES.read_text())
QUERIES: Final = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]]
HOW_TO_HAVE: Final = "promtool comes with Prometheus: apt-get install prometheus"

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason=HOW_TO_HAVE)

HOURS: Final = 4
FIRES: Final[Mapping[str, Mapping[str, str]]] = {
    "CloudidAbsent": {"cloudid_info": "_x240"},
    "CloudidNodeAbsent": {"up": "0x240"},
    "CloudidCannotServe": {"cloudid_can_serve": "0x240"},
    "CloudidProblem": {'cloudid_problems{code="settings_differ"}': "1x240"},
    "CloudidDefect": {'cloudid_requests_total{mount="sys",operation="read",status="500"}': "0+1x240"},
    "CloudidErrors": {'cloudid_requests_total{mount="sys",operation="read",status="503"}': "0+60x240"},
    "CloudidLoginsRefused": {'cloudid_logins_total{mount="auth/cloud",role="web",code="jwt_expired"}': "0+90x240"},
    "CloudidLoginsSlow": {
        'cloudid_request_seconds_bucket{operation="login",le="0.1"}': "0+1x240",
        'cloudid_request_seconds_bucket{operation="login",le="5.0"}': "0+60x240",
        'cloudid_request_seconds_bucket{operation="login",le="+Inf"}': "0+60x240",
    },
    "CloudidProviderThrottles": {'cloudid_provider_calls_total{family="directory",status="429"}': "0+12x240"},
    "CloudidProviderFails": {'cloudid_provider_calls_total{family="login",status="none"}': "0+60x240"},
    "CloudidLeaseStuck": {"cloudid_lease_stuck_oldest_seconds": "0+60x240"},
    "CloudidBackgroundLate": {'cloudid_background_late_seconds{kind="lease"}': "0+60x240"},
    "CloudidNobodyLeads": {"cloudid_leads": "0x240"},
    "CloudidSweepStopped": {"cloudid_swept_timestamp_seconds": "0x240"},
    "CloudidRootSecretEnds": {'cloudid_root_secret_ends_timestamp_seconds{mount="cloud"}': "600000x240"},
    "CloudidCertificateEnds": {"cloudid_tls_certificate_ends_timestamp_seconds": "600000x240"},
    "CloudidRotationFails": {'cloudid_rotation_failing{mount="cloud"}': "1x240"},
    "CloudidProviderTrouble": {'cloudid_provider_failing{mount="cloud",family="login"}': "1x240"},
    "CloudidAuditDeviceFails": {'cloudid_audit_device_failing{device="file"}': "1x240"},
    "CloudidStoreSlow": {
        'cloudid_store_batch_seconds_bucket{le="0.1"}': "0+1x240",
        'cloudid_store_batch_seconds_bucket{le="1.0"}': "0+60x240",
        'cloudid_store_batch_seconds_bucket{le="+Inf"}': "0+60x240",
    },
    "CloudidConnectionsUsedUp": {"cloudid_connections": "1000x240"},
    "CloudidDescriptorsUsedUp": {"process_open_fds": "990x240"},
}
"""For each alert the series that let it fire, beside those of a service that is well."""

WELL: Final[Mapping[str, str]] = {
    "up": "1x240",
    "cloudid_info": "1x240",
    "cloudid_can_serve": "1x240",
    "cloudid_leads": "1x240",
    "cloudid_swept_timestamp_seconds": "0+60x240",
    "cloudid_lease_stuck_oldest_seconds": "0x240",
    "cloudid_connections": "10x240",
    "cloudid_connection_limit": "1024x240",
    "process_open_fds": "50x240",
    "process_max_fds": "1000x240",
    'cloudid_problems{code="settings_differ"}': "0x240",
    'cloudid_background_late_seconds{kind="lease"}': "0x240",
    'cloudid_root_secret_ends_timestamp_seconds{mount="cloud"}': "31536000x240",
    "cloudid_tls_certificate_ends_timestamp_seconds": "31536000x240",
    'cloudid_rotation_failing{mount="cloud"}': "0x240",
    'cloudid_audit_device_failing{device="file"}': "0x240",
    'cloudid_requests_total{mount="sys",operation="read",status="200"}': "0+60x240",
    'cloudid_logins_total{mount="auth/cloud",role="web",code="admitted"}': "0+60x240",
    'cloudid_logins_total{mount="auth/cloud",role="web",code="jwt_expired"}': "0+1x240",
    'cloudid_provider_calls_total{family="login",status="200"}': "0+60x240",
    'cloudid_provider_calls_total{family="directory",status="429"}': "0x240",
    'cloudid_request_seconds_bucket{operation="login",le="0.1"}': "0+60x240",
    'cloudid_request_seconds_bucket{operation="login",le="5.0"}': "0+60x240",
    'cloudid_request_seconds_bucket{operation="login",le="+Inf"}': "0+60x240",
    'cloudid_store_batch_seconds_bucket{le="0.1"}': "0+60x240",
    'cloudid_store_batch_seconds_bucket{le="1.0"}': "0+60x240",
    'cloudid_store_batch_seconds_bucket{le="+Inf"}': "0+60x240",
}


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\b(?:cloudid|process)_[a-z_]+", text))


def told_names() -> set[str]:
    """The names of all series that a scrape can have."""
    names = {metric.name for metric in METRICS}
    histograms = [metric.name for metric in METRICS if metric.kind is Kind.HISTOGRAM]
    return names | {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}


def test_every_metric_that_rules_and_dashboard_name_is_in_the_table() -> None:
    in_rules, in_dashboard = names_in(RULES.read_text()), names_in(json.dumps(DASHBOARD))
    assert in_rules <= told_names()
    assert in_dashboard <= told_names()


def test_every_label_that_they_name_is_one_of_the_metric() -> None:
    labels = {f"{metric.name}{part}": metric.labels for metric in METRICS for part in ("", "_bucket", "_sum", "_count")}
    text = RULES.read_text() + "\n".join(query for _, query in QUERIES)
    for name, matchers in re.findall(r"\b((?:cloudid|process)_[a-z_]+)\{([^}]*)\}", text):
        for label in re.findall(r"(\w+)\s*(?:=|!=|=~|!~)\"", matchers):
            assert label in (*labels[name], "instance", "job", "le"), (name, label)


def test_problems_are_those_of_health() -> None:
    named = re.findall(r'cloudid_problems\{code="(\w+)"', RULES.read_text() + json.dumps(DASHBOARD))
    assert set(named) <= {problem.code for problem in HealthProblem}


def test_every_alert_is_tried_and_says_what_to_do() -> None:
    assert list(FIRES) == ALERTS
    assert RULES.read_text().count("summary:") == RULES.read_text().count("description:") == len(ALERTS)


def promtool(*arguments: str) -> str:
    ran = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def with_instance(series: str) -> str:
    """A series as Prometheus stores it."""
    name, _, labels = series.partition("{")
    inner = labels.removesuffix("}")
    return f'{name}{{job="cloudid",instance="one"{"," if inner else ""}{inner}}}'


def case(name: str, series: Mapping[str, str], tests: list[dict[str, Any]]) -> dict[str, Any]:
    """A case of promtool's unit tests."""
    given = [{"series": with_instance(key), "values": values} for key, values in series.items()]
    return {"name": name, "interval": "1m", "input_series": given, "promql_expr_test": tests}


def count_of(query: str, at: str = f"{HOURS - 1}h", value: int = 1) -> dict[str, Any]:
    samples = [{"labels": "{}", "value": value}]
    return {"expr": f"count({query}) > bool 0 or vector(0)", "eval_time": at, "exp_samples": samples}


def run_cases(cases: list[dict[str, Any]], folder: Path) -> None:
    document = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases}
    (folder / "tests.yml").write_text(json.dumps(document))  # JSON is YAML
    promtool("test", "rules", str(folder / "tests.yml"))


@pytest.mark.tools
@needs_promtool
def test_prometheus_takes_the_rules() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", str(RULES))


@pytest.mark.tools
@needs_promtool
def test_each_alert_fires_when_it_should_and_not_while_all_is_well(tmp_path: Path) -> None:
    def firing(alert: str) -> str:
        return f'ALERTS{{alertname="{alert}",alertstate="firing"}}'

    well = case("all is well", WELL, [count_of(firing(alert), value=0) for alert in ALERTS])
    cases = [case(alert, {**WELL, **series}, [count_of(firing(alert))]) for alert, series in FIRES.items()]
    run_cases([well, *cases], tmp_path)


def every_series() -> dict[str, str]:
    """A series of every metric, which grows; of a histogram one for each bucket."""
    series: dict[str, str] = {}
    for metric in METRICS:
        labels = ",".join(f'{label}="x"' for label in metric.labels)
        if metric.kind is not Kind.HISTOGRAM:
            series[f"{metric.name}{{{labels}}}"] = "1+60x240"
            continue
        for bound in (*metric.buckets, "+Inf"):
            series[f'{metric.name}_bucket{{{labels}{"," if labels else ""}le="{bound}"}}'] = "1+60x240"
        series[f"{metric.name}_sum{{{labels}}}"] = series[f"{metric.name}_count{{{labels}}}"] = "1+60x240"
    login = {key.replace('operation="x"', 'operation="login"'): value for key, value in series.items()}
    return {**series, **login}


@pytest.mark.tools
@needs_promtool
def test_each_panel_shows_something(tmp_path: Path) -> None:
    queries = [query.replace("$__rate_interval", "5m").replace("$instance", ".*") for _, query in QUERIES]
    run_cases([case("panels", every_series(), [count_of(query) for query in queries])], tmp_path)


def test_the_dashboard_has_its_variables_and_ids_of_its_own() -> None:
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD["panels"]))) - {"__rate_interval"}
    assert used == variables
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    assert "id" not in DASHBOARD, "Grafana gives it one"
