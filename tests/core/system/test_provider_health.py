"""Azure in trouble: health, `cloudid status`, metrics and the alert say the same, from the first failed minute."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import ProviderUnreachable
from cloudid_core.rotation.proving import LOOK_PAUSE, PROOF_INTERVAL
from cloudid_core.system.metrics import node_numbers
from cloudid_core.testing.world import Answer
from cloudid_servers.cli.main import PROGRAM, commands
from cloudid_servers.client import Service, ServiceRefused
from cloudid_servers.terminal import Exit, run
from tests.engines import CREDS, SecretsEngine
from tests.installation import ADDRESS, Installation
from tests.tokens import new_token, write_policy

ALERTS: Final = (Path(__file__).parents[3] / "deploy/monitoring/alerts.yml").read_text()
MINUTES: Final = 3
WRITES: Final = ("POST", "PATCH", "DELETE")
UNKNOWN_TENANT: Final = "00000000-0000-4000-8000-000000000001"

Break = Callable[[Installation], object]


def refuse_at_login(code: int) -> Break:
    def answer(request: HttpRequest) -> HttpResponse:
        body = {"error": "invalid_client", "error_codes": [code]}
        return HttpResponse(401, {}, json.dumps(body).encode())

    return lambda world: replace_cloud(world, "/login/", answer)


def unreachable(reason: str) -> Break:
    def answer(request: HttpRequest) -> HttpResponse:
        raise ProviderUnreachable(f"login.test: {reason}", sent=False)

    return lambda world: replace_cloud(world, "/login/", answer)


def replace_cloud(world: Installation, part: str, answer: Callable[[HttpRequest], HttpResponse]) -> None:
    """Let `answer` answer the calls below a part of the cloud's address."""

    def provider(request: HttpRequest) -> HttpResponse | Answer:
        return answer(request) if request.url.startswith(ADDRESS + part) else world.call_cloud(request)

    world.provider = provider


WAYS: Final[Mapping[str, tuple[Break, str, str, str]]] = {
    "secret refused": (
        lambda world: world.must("POST", "cloud/config", {"client_secret": "wrong"}),
        "credential_refused",
        "login",
        "AADSTS7000215",
    ),
    "secret expired": (refuse_at_login(7000222), "credential_refused", "login", "AADSTS7000222"),
    "tenant unknown": (
        lambda world: world.must("POST", "cloud/config", {"tenant_id": UNKNOWN_TENANT, "force": True}),
        "credential_refused",
        "login",
        "AADSTS90002",
    ),
    "name not resolved": (
        unreachable("the name cannot be resolved"),
        "provider_failing",
        "login",
        "login.test: the name cannot be resolved",
    ),
    "connection refused": (unreachable("connection refused"), "provider_failing", "login", "connection refused"),
    "TLS": (
        unreachable("TLS: self-signed certificate"),
        "provider_failing",
        "login",
        "login.test: TLS: self-signed certificate",
    ),
    "proxy 407": (
        unreachable("the proxy proxy.test answered 407"),
        "provider_failing",
        "login",
        "the proxy proxy.test answered 407",
    ),
    "429 for minutes": (
        lambda world: world.fail("login", status=429, retry_after=300),
        "provider_failing",
        "login",
        "the provider answered 429",
    ),
    "403 for one family": (
        lambda world: world.fail("graph", status=403, code="Authorization_RequestDenied"),
        "provider_failing",
        "directory",
        "the provider answered 403 Authorization_RequestDenied",
    ),
    "no answer": (lambda world: world.fail("login", delay=600), "provider_failing", "login", "no answer in time"),
}
"""How Azure breaks; then the problem, the family of calls, and the reason that is reported."""


def engine() -> SecretsEngine:
    """An engine that has issued a credential, whose access tokens are cached."""
    world = SecretsEngine(request_deadline=20.0)
    world.must("POST", "cloud/config", world.config)
    world.role()
    world.issue("web")
    upkeep(world, 0)
    return world


def upkeep(world: Installation, seconds: float) -> None:
    """Let time pass with upkeep, as a server does."""
    until = world.clock + seconds
    world.perform(world.service.upkeep())
    while world.clock < until:
        world.advance(10)
        world.perform(world.service.upkeep())


def break_azure(world: Installation, way: str) -> None:
    """Let Azure break in one of the ways, until health has to report it."""
    do_break, _, family, _ = WAYS[way]
    do_break(world)
    for _ in range(MINUTES):
        assert world.ask("GET", CREDS).status >= 400 or family == "login"  # a cached access token is still valid
        upkeep(world, 60)
    upkeep(world, 0 if family != "login" else PROOF_INTERVAL + LOOK_PAUSE)


def problems(world: Installation, token: str = "root") -> dict[str, str]:
    """Health's problems with their texts."""
    health = world.must("GET", "sys/health", token=token)
    assert health.status == 200
    return {detail["code"]: detail["text"] for detail in health.body["problem_details"]}


def failing(world: Installation) -> list[tuple[str, ...]]:
    """The labels of the series that the alert looks at, by its expression."""
    [expression] = re.findall(r"alert: CloudidProviderTrouble\n +expr: (.*)", ALERTS)
    match = re.fullmatch(r"max by \(mount, family\) \((\w+)\) == 1", expression)
    assert match is not None
    series = node_numbers(world.context, world.clock).get(match[1], {})
    return [labels for labels, values in series.items() if list(values) == [1]]


class Shell:
    """Runs `cloudid status` as an operator does, but for the connection."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        monkeypatch.setenv("CLOUDID_TOKEN", "root")

    def status(self, world: Installation) -> tuple[int, list[str]]:
        """Exit code, and the texts of the problems that it prints."""

        def ask(
            service: Service,
            method: str,
            path: str,
            body: Mapping[str, Any] | None = None,
            query: Mapping[str, Any] | None = None,
        ) -> dict[str, Any]:
            reply = world.ask(method, f"{path}?{urlencode(query)}" if query else path, body)
            if reply.status >= 400:
                raise ServiceRefused(reply.status, (), (), reply.body)
            return dict(reply.body)

        self._monkeypatch.setattr(Service, "ask", ask)
        code = run(commands, PROGRAM, ["status", "--format", "json"])
        return code, [each["text"] for each in json.loads(self._capsys.readouterr().out)["problems"]]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


@pytest.mark.parametrize("way", WAYS)
def test_health_status_metrics_and_the_alert_agree_when_azure_breaks(way: str, shell: Shell) -> None:
    _, code, family, reason = WAYS[way]
    world = engine()
    assert (problems(world), failing(world), shell.status(world)) == ({}, [], (0, []))
    break_azure(world, way)
    shown = problems(world)
    assert list(shown) == [code]
    assert reason in shown[code]
    assert " cloud " in shown[code]
    assert "new credentials, revocations, rotation" in shown[code]
    assert failing(world) == [("cloud", family)]
    assert shell.status(world) == (Exit.UNHEALTHY, [shown[code]])
    if family == "login":
        assert reason in world.must("GET", "cloud/rotation").data["last_error"]
    world.heal()
    world.provider = world.call_cloud
    world.must("POST", "cloud/config", {**world.config, "force": True})
    world.must("GET", CREDS)
    assert (problems(world), failing(world), shell.status(world)) == ({}, [], (0, []))


def test_refused_writes_are_a_problem_although_reads_succeed() -> None:
    world = engine()
    denied = {"status": 403, "code": "Authorization_RequestDenied"}
    rules = [{"match": {"family": "graph", "method": method}, "times": None, "action": denied} for method in WRITES]
    world.cloud("POST", "/simulator/faults", rules)
    for _ in range(MINUTES):
        assert world.ask("GET", CREDS).status == 502
        world.must("GET", "cloud/permissions")
        upkeep(world, 30)
    shown = problems(world)
    assert list(shown) == ["provider_failing"]
    assert shown["provider_failing"].startswith("writing to Microsoft Graph has not worked for cloud since 20")
    assert "the provider answered 403 Authorization_RequestDenied" in shown["provider_failing"]
    assert failing(world) == [("cloud", "directory")]
    world.heal()
    world.must("GET", CREDS)
    assert (problems(world), failing(world)) == ({}, [])


def test_reads_end_what_is_not_a_refusal_of_writes() -> None:
    world = engine()
    world.fail("graph", method="POST", status=500)
    for _ in range(MINUTES):
        assert world.ask("GET", CREDS).status >= 500
        world.must("GET", "cloud/permissions")
        upkeep(world, 30)
    assert problems(world) == {}


def test_a_wrong_secret_is_a_problem_as_soon_as_it_is_used() -> None:
    world = engine()
    world.must("POST", "cloud/config", {"client_secret": "wrong"})
    world.refused("GET", CREDS)
    assert problems(world)["credential_refused"].startswith("Azure has rejected the client secret of cloud since 20")


def test_the_code_is_shown_only_to_who_may_read_the_configuration() -> None:
    world = engine()
    world.must("POST", "cloud/config", {"client_secret": "wrong"})
    world.refused("GET", CREDS)
    reader = new_token(world, policies=[write_policy(world, "health", ("sys/health", ["read"]))])
    assert "AADSTS" not in problems(world, reader)["credential_refused"]
    assert "the provider answered 401" in problems(world, reader)["credential_refused"]
    assert "AADSTS7000215" in problems(world)["credential_refused"]


def test_a_mount_that_is_disabled_is_in_no_trouble() -> None:
    world = SecretsEngine()
    world.must("POST", "cloud/config", {**world.config, "client_secret": "wrong"})
    upkeep(world, 0)
    assert "credential_refused" in problems(world)
    world.must("DELETE", "sys/mounts/cloud")
    world.pass_time(60)
    upkeep(world, 61)
    assert problems(world) == {}
