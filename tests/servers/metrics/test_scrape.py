"""A scrape of each server: what happened is counted, by a login on the simulated cloud, and Prometheus takes it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
import pytest
from attrs import frozen
from prometheus_client.parser import text_string_to_metric_families

from cloudid_servers.provider_simulator import Simulator, start
from tests.monitoring.test_monitoring import HOW_TO_HAVE
from tests.servers.running import SERVERS, Running
from tests.servers.story import ROOT, tell
from tests.waiting import PATIENT

Key = tuple[str, tuple[tuple[str, str], ...]]
TEXT: Final = "sys/metrics?format=prometheus"


@frozen
class Scraped:
    """A server that has told its story."""

    url: str
    steps: int
    log: Callable[[], str]

    def get(self, path: str, token: str = ROOT) -> httpx.Response:
        headers = {"x-vault-token": token} if token else {}
        return httpx.get(f"{self.url}/v1/{path}", headers=headers, **PATIENT)

    def samples(self) -> dict[Key, float]:
        families = text_string_to_metric_families(self.get(TEXT).text)
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families
            for sample in family.samples
        }

    def total(self, name: str, **labels: str) -> float:
        return sum(
            value
            for (each, its), value in self.samples().items()
            if each == name and all((key, text) in its for key, text in labels.items())
        )


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Scraped]:
    with start(Simulator()) as cloud:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", ROOT, "--provider", cloud.url)
        with Running(f"cloudid_servers.{request.param}", *arguments) as running:
            yield Scraped(running.url, len(tell(running.url, cloud.url)), running.log)


def test_what_happened_is_counted(server: Scraped) -> None:
    assert server.total("cloudid_requests_total") >= server.steps
    assert server.total("cloudid_logins_total", code="admitted") > 0
    assert server.total("cloudid_request_seconds_count", operation="login") == server.total("cloudid_logins_total")
    assert server.total("cloudid_provider_calls_total", family="login", status="200") > 0
    assert server.total("cloudid_provider_calls_total", family="other") == 0
    assert server.total("process_cpu_seconds_total") > 0
    assert server.total("cloudid_connections") >= 1
    assert server.total("cloudid_connection_limit") == 1024
    assert server.total("cloudid_can_serve") == 1


def test_counters_only_grow(server: Scraped) -> None:
    before = server.samples()
    after = server.samples()
    counters = [key for key in before if key[0].endswith(("_total", "_count", "_bucket"))]
    assert counters
    assert [key for key in counters if after.get(key, 0) < before[key]] == []


def test_what_cannot_be_read_is_counted(server: Scraped) -> None:
    before = server.total("cloudid_unreadable_total", code="malformed_request")
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(b"nonsense\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.1 400")
    assert server.total("cloudid_unreadable_total", code="malformed_request") == before + 1


def test_it_is_json_unless_text_is_asked_for(server: Scraped) -> None:
    reply = server.get("sys/metrics")
    assert reply.headers["content-type"] == "application/json"
    told: dict[str, Any] = json.loads(reply.text)
    assert {"Gauges", "Counters", "Samples"} <= set(told)
    assert server.get(TEXT).headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert server.get("sys/metrics", token="").status_code == 403


def test_nothing_of_a_client_and_no_secret_is_in_it(server: Scraped) -> None:
    server.get("sys/made-up-path", token="made-up-token")
    httpx.post(
        f"{server.url}/v1/auth/cloud/login",
        json={"role": "made-up-role", "jwt": "made-up-jwt"},
        headers={"user-agent": "made-up-agent"},
        **PATIENT,
    )
    text = server.get(TEXT).text
    assert "made-up" not in text
    assert ROOT not in text
    assert "eyJ" not in text


def test_a_refused_machine_is_found_in_the_log(server: Scraped) -> None:
    """By the principal and the resource that its JWT names, though it got no token."""
    lines = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    refused = [line for line in lines if line.get("path") == "auth/cloud/login" and line.get("codes")]
    named = [line for line in refused if "principal_id" in line]
    assert named
    assert all(line["resource_id"].startswith("/subscriptions/") for line in named)
    unproven = [line for line in refused if line["codes"][0] in ("login_refused", "jwt_malformed")]
    assert unproven
    assert not [line for line in unproven if {"principal_id", "resource_id"} & line.keys()]


@pytest.mark.tools
@pytest.mark.skipif(shutil.which("promtool") is None, reason=HOW_TO_HAVE)
def test_prometheus_takes_it(server: Scraped) -> None:
    ran = subprocess.run(
        ["promtool", "check", "metrics"], input=server.get(TEXT).text, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")
