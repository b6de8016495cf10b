"""Spans of both servers, as a collector gets them: whose child each is, and what it has."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

from cloudid_core.effects import HttpRequest
from cloudid_servers.asgi import asgi_application
from tests.waiting import PATIENCE, PATIENT

from .audit.test_secrets import secrets_in
from .client_site import Site, client_site
from .collector import OTHERS_SPAN, Span, collector, facts, traceparent
from .foreign import served
from .running import ROOT as FOLDER
from .running import SERVERS, Running, initialise
from .story import ROOT, login_form

LOGIN, LOAN, REFUSED = (f"{number:032x}" for number in range(1, 4))
IMPORTS: Final = {"PYTHONPROFILEIMPORTTIME": "1"}
CANARY: Final = "c4n4ry-s3cret"


@pytest.fixture
def settings(tmp_path: Path) -> tuple[str, str]:
    """The arguments of a server that traces."""
    path = tmp_path / "cloudid.toml"
    path.write_text("[server]\ntracing = true\ntrust_trace_headers = true\n")
    return "--settings", str(path)


@pytest.mark.parametrize("runtime", SERVERS)
def test_a_login_and_a_loan_are_in_the_traces_of_their_callers(
    runtime: str, settings: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as collected, client_site(runtime, *settings, environment=collected.environment) as site:
        sent = note_calls(site, monkeypatch)
        form = login_form(site.cloud.url, site.machine("web"))
        assert form is not None
        login = ask(site, "POST", "auth/cloud/login", LOGIN, form)
        [request], calls, commits = by_kind(collected.trace(LOGIN))
        assert request.name == "POST /v1/auth/cloud/login"
        assert request.parent_span_id.hex() == OTHERS_SPAN
        told = facts(request)
        assert told.pop("cloudid.request_id") == login["request_id"]
        assert told == {
            "http.request.method": "POST",
            "http.route": "/v1/auth/cloud/login",
            "http.response.status_code": 200,
        }
        assert {facts(call)["cloudid.family"] for call in calls} == {"login", "resource manager"}
        assert {each.parent_span_id for each in (*calls, *commits)} == {request.span_id}
        assert [facts(each) for each in commits] == [{"db.system.name": "memory", "cloudid.entries": 1}]

        failing = {"match": {"family": "graph", "method": "POST"}, "times": 1, "action": {"status": 503}}
        site.simulate("POST", "faults", [failing])
        loan = ask(site, "GET", "cloud/creds/reader?c=d", LOAN)
        [request], calls, commits = by_kind(collected.trace(LOAN))
        assert facts(request)["http.route"] == "/v1/cloud/creds/:name"
        assert {each.parent_span_id for each in (*calls, *commits)} == {request.span_id}
        assert len(commits) >= 2, "what is intended, and the lease"
        first, second = [facts(call) for call in calls if call.name == "POST directory"][:2]
        assert (first["http.response.status_code"], first["http.request.resend_count"]) == (503, 0)
        assert (second["http.response.status_code"], second["http.request.resend_count"]) == (200, 1)
        own = sorted(each for each in sent if LOAN in each)
        assert own == sorted(f"00-{LOAN}-{call.span_id.hex()}-01" for call in calls)

        made_up = {**traceparent(REFUSED), "tracestate": f"a={CANARY}", "baggage": f"b={CANARY}"}
        httpx.request(CANARY.upper(), f"{site.url}/v1/{CANARY}?{CANARY}", headers=made_up, **PATIENT)
        [refused] = collected.trace(REFUSED)
        assert (refused.name, facts(refused)["error.type"]) == ("_OTHER", "unsupported_operation")
        httpx.get(f"{site.url}/v1/sys/health", headers={"traceparent": CANARY}, **PATIENT)
        assert site.server.stop()[0] == 0
        [health] = [span for span in collected.spans if facts(span).get("http.route") == "/v1/sys/health"]
        assert health.parent_span_id == b""
        exported = b"".join(collected.bodies).lower()
        secrets = {ROOT, CANARY, form["jwt"], *secrets_in([login, loan, site.world["applications"]])}
        assert len(secrets) > 5
        assert [secret for secret in secrets if secret.lower().encode() in exported] == []


def note_calls(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The `traceparent` of each call that the simulated cloud gets from now on."""
    simulator, sent = site.cloud.simulator, list[str]()
    handle = simulator.handle

    def note(request: HttpRequest) -> Any:
        sent.append(request.headers.get("traceparent", ""))
        return handle(request)

    monkeypatch.setattr(simulator, "handle", note)
    return sent


def ask(site: Site, method: str, path: str, trace: str, body: Any = None) -> Any:
    headers = {"x-service-token": ROOT, **traceparent(trace)}
    return httpx.request(method, f"{site.url}/v1/{path}", headers=headers, json=body, **PATIENT).json()


def by_kind(spans: list[Span]) -> tuple[list[Span], list[Span], list[Span]]:
    """The spans of requests, of calls to the provider, and of commits."""
    requests = [span for span in spans if span.kind == Span.SPAN_KIND_SERVER]
    commits = [span for span in spans if span.name == "commit"]
    return requests, [span for span in spans if span not in requests and span not in commits], commits


@pytest.mark.one_server
@pytest.mark.parametrize("runtime", ["trio", "aiohttp"])
def test_a_request_whose_time_is_over_has_a_span_of_its_work_and_one_of_its_answer(
    runtime: str, tmp_path: Path
) -> None:
    with collector() as collected:
        arguments = (runtime, "tracing=true", "trust_trace_headers=true")
        with Running("tests.servers.fake_server", *arguments, environment=collected.environment) as server:
            headers = {"x-service-deadline": "1", **traceparent(LOGIN)}
            assert httpx.get(f"{server.url}/waits?{tmp_path}", headers=headers, **PATIENT).status_code == 504
            assert server.stop()[0] == 0
        worked, answered = [facts(span) for span in collected.spans if span.kind == Span.SPAN_KIND_SERVER]
    assert "http.response.status_code" not in worked
    assert answered["error.type"] == "deadline_passed"


@pytest.mark.one_server
@pytest.mark.parametrize("runtime", ["trio", "aiohttp"])
def test_a_client_decides_neither_of_which_trace_its_requests_are_nor_whether_they_are_sampled(runtime: str) -> None:
    """Unless the settings trust the header. Here only what a client has sampled would be exported."""
    exported = {}
    for trusts in ("false", "true"):
        with collector() as collected:
            environment = {**collected.environment, "OTEL_TRACES_SAMPLER": "parentbased_always_off"}
            settings = ("tracing=true", f"trust_trace_headers={trusts}")
            with Running("tests.servers.fake_server", runtime, *settings, environment=environment) as server:
                httpx.get(f"{server.url}/echo", headers=traceparent(LOGIN), **PATIENT)
                assert server.stop()[0] == 0
            exported[trusts] = [span.trace_id.hex() for span in collected.spans]
    assert exported == {"false": [], "true": [LOGIN]}


def test_within_another_application_its_span_is_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The spans that nobody has taken yet are exported when the service is closed."""
    path = tmp_path / "cloudid.toml"
    path.write_text("[server]\ntracing = true\n")
    initialise("trio_server", path)
    ours = asgi_application(path)
    outer = SpanContext(int(LOGIN, 16), int(OTHERS_SPAN, 16), is_remote=False, trace_flags=TraceFlags(1))

    async def application(scope: Any, receive: Any, send: Any) -> None:
        with use_span(NonRecordingSpan(outer)) if scope["type"] == "http" else nullcontext():
            await ours(scope, receive, send)

    with collector() as collected:
        for name, value in {**collected.environment, "OTEL_BSP_SCHEDULE_DELAY": "3600000"}.items():
            monkeypatch.setenv(name, value)
        with served("uvicorn", application) as url:
            httpx.get(f"{url}/v1/sys/health", headers=traceparent(REFUSED), **PATIENT)
            assert collected.bodies == []
        [span] = collected.spans
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (LOGIN, OTHERS_SPAN)


@pytest.mark.one_server
@pytest.mark.parametrize("runtime", SERVERS)
def test_nothing_of_it_is_loaded_unless_it_is_on(runtime: str, settings: tuple[str, str]) -> None:
    def imports(*arguments: str) -> str:
        given = ("--dev", "--listen", "127.0.0.1:0", *arguments)
        with Running(f"cloudid_servers.{runtime}", *given, environment=IMPORTS) as server:
            httpx.get(f"{server.url}/v1/sys/health", **PATIENT)
            return server.stop()[1]

    assert "opentelemetry" in imports(*settings)
    assert "opentelemetry" not in imports()


def test_variables_without_sense_end_the_start_with_a_line(settings: tuple[str, str]) -> None:
    command = [sys.executable, "-m", "cloudid_servers.cli", "dev", "--listen", "127.0.0.1:0", *settings]
    environment = {**os.environ, "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}
    ended = subprocess.run(
        command, cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    line = "error: the OTEL_* variables of the process environment cannot be used"
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, line)
