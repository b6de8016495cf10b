"""Several processes that serve one port: replaced when they die, stopped and reloaded together, over one database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.stores.postgres.temporary import free_port
from tests.servers.collector import collector, facts
from tests.servers.running import ROOT, SERVERS, Client, Running, wait_until
from tests.servers.service_manager import FakeManager, fake_manager
from tests.stores.test_served import ask, command, configured, prepared, written
from tests.waiting import PATIENCE, PATIENT

pytestmark = pytest.mark.one_server

ROOT_ONLY: Final = "auth/token/lookup-self"


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Path:
    path = written(tmp_path, database)
    prepared(path)
    return path


@pytest.fixture(scope="module")
def cloud() -> Iterator[str]:
    with start(Simulator()) as cloud:
        yield cloud.url


def workers(
    server: str, settings: Path, cloud: str, count: int = 2, environment: Mapping[str, str] | None = None
) -> Running:
    arguments = ("--settings", str(settings), "--provider", cloud, "--workers", str(count))
    return Running(f"cloudid_servers.{server}", *arguments, environment=environment)


def children(running: Running) -> list[int]:
    listed = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text()
    return [int(pid) for pid in listed.split()]


def lines(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("server", SERVERS)
def test_workers_share_a_port_and_the_log_names_them(server: str, settings: Path, cloud: str) -> None:
    with workers(server, settings, cloud) as running:
        form = configured(running.url, cloud)

        def log_in(_: int) -> int:
            login = ask(running.url, "POST", "auth/cloud/login", token="", body=form)
            return ask(running.url, "GET", ROOT_ONLY, login.json()["auth"]["client_token"]).status_code

        with ThreadPoolExecutor(8) as pool:

            def all_have_answered() -> bool:
                assert set(pool.map(log_in, range(64))) == {200}
                return {line["worker"] for line in lines(running.log()) if line["event"] == "request"} == {1, 2}

            wait_until(all_have_answered)
        assert running.stop()[0] == 0


@pytest.mark.parametrize("server", SERVERS)
def test_a_worker_that_is_killed_is_replaced_and_the_others_go_on(server: str, settings: Path, cloud: str) -> None:
    with workers(server, settings, cloud) as running:
        before = children(running)
        for victim in before:
            os.kill(victim, signal.SIGKILL)
            for _ in range(20):
                assert ask(running.url, "GET", ROOT_ONLY).status_code == 200
        wait_until(lambda: len(set(children(running)) - set(before)) == 2)
        code, log = running.stop()
    assert code == 0
    deaths = [line for line in lines(log) if line["event"] == "worker died"]
    assert [(death["worker"], death["code"]) for death in deaths] == [(1, -9), (2, -9)]


def test_a_worker_that_replaces_another_has_the_settings_of_the_others(settings: Path, cloud: str) -> None:
    """Also what they have reloaded; the file may be anything by then."""
    before_reload = settings.read_text()
    settings.write_text(f'{before_reload}log_level = "error"\n')
    with workers("trio_server", settings, cloud) as running:
        settings.write_text(before_reload)
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: running.log().count("settings reloaded") == 2)
        settings.write_text("[server]\nlisten = ")
        before = children(running)
        for victim in before:
            os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(set(children(running)) - set(before)) == 2)
        assert ask(running.url, "GET", ROOT_ONLY).status_code == 200
        code, log = running.stop()
    events = [line["event"] for line in lines(log)]
    assert (code, events.count("worker died"), events.count("request")) == (0, 2, 1)


@pytest.mark.parametrize("server", SERVERS)
def test_each_worker_exports_the_spans_of_its_requests(server: str, settings: Path, cloud: str) -> None:
    settings.write_text(f"{settings.read_text()}tracing = true\ntrust_trace_headers = true\n")
    with collector() as collected, workers(server, settings, cloud, environment=collected.environment) as running:

        def answered() -> dict[str, int]:
            """The worker by the id of its request."""
            assert ask(running.url, "GET", ROOT_ONLY).status_code == 200
            told = (line for line in lines(running.log()) if line["event"] == "request")
            return {line["request_id"]: line["worker"] for line in told}

        wait_until(lambda: {*answered().values()} == {1, 2})
        asked = answered()
        assert running.stop()[0] == 0
        assert asked.keys() <= {facts(span).get("cloudid.request_id") for span in collected.spans}


@pytest.mark.parametrize("server", SERVERS)
def test_signals_reach_all_workers(server: str, settings: Path, cloud: str) -> None:
    """SIGHUP reloads each, and SIGTERM drains each."""
    with workers(server, settings, cloud) as running:
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: running.log().count("settings reloaded") == 2)
        code, log = running.stop()
    assert code == 0
    events = Counter(line["event"] for line in lines(log))
    assert events["settings reloaded"] == 2
    assert events["draining"] == 2
    assert events["worker died"] == 0


@pytest.mark.parametrize("server", SERVERS)
def test_workers_end_when_their_parent_is_killed(server: str, settings: Path, cloud: str) -> None:
    with workers(server, settings, cloud) as running:
        pids = children(running)
        running.process.kill()
        running.process.wait()
        wait_until(lambda: not any(is_running(pid) for pid in pids))
        with pytest.raises(OSError):
            Client(running.port)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("server", SERVERS)
def test_workers_over_sqlite_are_refused_and_postgresql_is_named(server: str, tmp_path: Path) -> None:
    settings = written(tmp_path, f"{tmp_path}/cloudid.db")
    failed = command(server, "--settings", str(settings), "--workers", "2")
    assert (failed.returncode, "PostgreSQL" in failed.stderr) == (1, True)
    assert not (tmp_path / "cloudid.db").exists()


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_wrong_at_the_start_is_said_once(server: str, database: str, tmp_path: Path) -> None:
    settings = written(tmp_path, database)
    (tmp_path / "key").write_text("ab" * 32)
    (tmp_path / "key").chmod(0o600)
    failed: subprocess.CompletedProcess[str] = command(server, "--settings", str(settings), "--workers", "3")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.count("run init first") == 1


SECOND_FAILS_ONCE: Final = """
import os, signal, sys, threading
from pathlib import Path
import structlog
from cloudid_servers.machine import ServiceManager
from cloudid_servers.processes import Supervisor

failed = Path(sys.argv[1])

def work(worker):
    if worker.number == 2 and not failed.exists():
        failed.touch()
        return 1
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    worker.ready()
    stop.wait()
    return 0

def end():
    os.kill(os.getpid(), signal.SIGTERM)

sys.exit(Supervisor(3, [], work, end, print, structlog.get_logger(), ServiceManager({})).run())
"""


def test_a_worker_that_fails_at_its_start_is_replaced_while_another_serves(tmp_path: Path) -> None:
    """What is wrong with the settings the first would have found; a database may be away for a moment."""
    failed = tmp_path / "failed"
    run = [sys.executable, "-c", SECOND_FAILS_ONCE, str(failed)]
    ended = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, failed.exists()) == (0, True), ended.stderr
    assert "worker died" in ended.stdout


SECOND_IS_STOPPED_AT_ITS_START: Final = """
import os, signal, sys, threading, time
import structlog
from cloudid_servers.machine import ServiceManager
from cloudid_servers.processes import Supervisor

def work(worker):
    if worker.number == 2:
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(3600)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    worker.ready()
    stop.wait()
    return 0

sys.exit(Supervisor(2, [], work, print, print, structlog.get_logger(), ServiceManager({})).run())
"""


def test_a_worker_that_is_stopped_at_its_start_ended_as_asked() -> None:
    run = [sys.executable, "-c", SECOND_IS_STOPPED_AT_ITS_START]
    ended = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_port_that_is_taken_is_an_error(settings: Path, cloud: str) -> None:
    with workers("trio_server", settings, cloud) as running:
        again = command(
            "trio_server", "--settings", str(settings), "--workers", "2", "--listen", f"127.0.0.1:{running.port}"
        )
        assert (again.returncode, "in use" in again.stderr) == (1, True)


@pytest.mark.parametrize("count", ["0", "65", "two", "-1"])
def test_a_number_of_workers_that_cannot_be_is_explained(count: str) -> None:
    failed = command("trio_server", "--settings", "a", f"--workers={count}")
    assert (failed.returncode, "--workers" in failed.stderr) == (2, True)


def test_workers_have_no_development_mode() -> None:
    failed = command("trio_server", "--dev", "--workers", "2")
    assert (failed.returncode, "--workers" in failed.stderr) == (2, True)


def test_the_health_of_every_worker_is_the_same(settings: Path, cloud: str) -> None:
    with workers("aiohttp_server", settings, cloud) as running:
        for _ in range(8):
            health = httpx.get(f"{running.url}/v1/sys/health", **PATIENT)
            assert (health.status_code, health.json()["standby"]) == (200, False)


@pytest.mark.parametrize("server", SERVERS)
def test_the_parent_tells_the_service_manager_of_all_workers(server: str, settings: Path, cloud: str) -> None:
    """It is ready once every worker is, and again once every worker has reloaded. Workers say nothing themselves."""
    with fake_manager() as manager:
        environment = {**manager.environment, "WATCHDOG_USEC": "20000"}
        with workers(server, settings, cloud, environment=environment) as running:
            assert told_next(manager) == ["READY"]
            stopped = children(running)[0]
            os.kill(stopped, signal.SIGSTOP)
            running.process.send_signal(signal.SIGHUP)
            assert told_next(manager) == ["RELOADING", "MONOTONIC_USEC"]
            wait_until(lambda: "settings reloaded" in running.log())
            assert {"READY": "1"} not in [*manager.heard(), *(manager.hear() for _ in range(5))]
            os.kill(stopped, signal.SIGCONT)
            assert told_next(manager) == ["READY"]
            running.process.send_signal(signal.SIGTERM)
            assert told_next(manager) == ["STOPPING"]
            assert running.wait()[0] == 0


def told_next(manager: FakeManager) -> list[str]:
    """What is told next, but for signs of life."""
    return next(names for names in map(list, iter(manager.hear, {})) if names != ["WATCHDOG"])


def is_replaced(running: Running, victim: int) -> bool:
    return victim not in children(running) and len(children(running)) == 2


def numbers_of(port: int, name: str) -> float:
    """The sum of a metric, whichever worker answers."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", **PATIENT).text
    lines = [line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


@pytest.mark.parametrize("server", SERVERS)
def test_workers_answer_as_one_and_no_counter_goes_back(server: str, settings: Path, cloud: str) -> None:
    """Also when one is killed: who takes its place goes on with its numbers. All answer at the address for metrics."""
    port = free_port()
    with_metrics = settings.read_text().replace("[server]\n", f'[server]\nmetrics_listen = "127.0.0.1:{port}"\n')
    settings.write_text(with_metrics)
    with workers(server, settings, cloud) as running:
        form = configured(running.url, cloud)
        for _ in range(20):
            assert ask(running.url, "POST", "auth/cloud/login", token="", body=form).status_code == 200
        wait_until(lambda: [numbers_of(port, "cloudid_logins_total") for _ in range(8)] == [20] * 8)
        assert numbers_of(port, "cloudid_processes") == 2
        for victim in children(running):
            os.kill(victim, signal.SIGKILL)
            wait_until(partial(is_replaced, running, victim))
        wait_until(lambda: [numbers_of(port, "cloudid_logins_total") for _ in range(8)] == [20] * 8)
        assert ask(running.url, "POST", "auth/cloud/login", token="", body=form).status_code == 200
        wait_until(lambda: [numbers_of(port, "cloudid_logins_total") for _ in range(8)] == [21] * 8)
        wait_until(lambda: numbers_of(port, "cloudid_processes") == 2)


@pytest.mark.parametrize("server", SERVERS)
def test_the_worker_that_leads_applies_the_folder_and_the_others_say_so(
    server: str, settings: Path, cloud: str, tmp_path: Path
) -> None:
    policy = tmp_path / "folder/sys/policies/acl/web.hcl"
    policy.parent.mkdir(parents=True)
    policy.write_text("# first")
    settings.write_text(settings.read_text().replace("[server]\n", '[server]\napply_folder = "folder"\n'))
    with workers(server, settings, cloud) as running:
        allowed = 'path "sys/*" { capabilities = ["create", "read", "update", "sudo"] }'
        ask(running.url, "POST", "sys/policies/acl/apply", body={"policy": allowed})

        def text() -> str:
            return str((ask(running.url, "GET", "sys/policies/acl/web").json().get("data") or {}).get("policy"))

        def told(event: str) -> list[int]:
            return [line["worker"] for line in lines(running.log()) if line["event"] == event]

        wait_until(lambda: {*told("leadership")} == {1, 2})  # each takes over when it starts
        running.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda: text() == "# first" and told("folder applied") and told("folder left to the node that leads")
        )
        (leader,) = {*told("folder applied")}
        policy.write_text("# second")
        before = len(told("folder applied"))
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: text() == "# second" and len(told("folder applied")) > before)
        assert {*told("folder applied")} == {leader}
        assert running.stop()[0] == 0
