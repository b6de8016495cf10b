"""Signals and standard streams of both servers, as processes: nothing that happens to them stops the service."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from cloudid_core.audit import DeclaredDevice
from cloudid_servers.processes.reload import Reload
from cloudid_servers.settings.settings import ServerSettings, SettingsError, SettingsFile
from cloudid_servers.stores.postgres.temporary import free_port

from .certificates import common_name_of, write_certificate
from .running import PATIENCE, ROOT, Client, Gate, Running, body, status, wait_until
from .test_logs import LogOfATest

pytestmark = pytest.mark.one_server

RUNTIMES: Final = ("trio", "aiohttp")
FAKE: Final = "tests.servers.fake_server"
NAMES: Final = {"trio": "cloudid_servers.trio_server", "aiohttp": "cloudid_servers.aiohttp_server"}


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: test\r\n\r\n".encode()


def lines_of(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_second_sigterm_ends_the_drain_at_once(runtime: str, tmp_path: Path) -> None:
    """The exit code is 0: somebody asked for it."""
    gate = Gate(tmp_path)
    with Running(FAKE, runtime, "drain=1h") as running, Client(running.port) as client:
        client.send(get(f"/waits?{gate.folder}"))
        gate.wait_for(1)
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: '"draining"' in running.log())
        assert running.process.poll() is None
        code, log = running.stop()
    assert code == 0
    assert [line["event"] for line in lines_of(log)] == ["draining"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_answer_that_the_end_of_the_drain_cuts_off_is_given_back(runtime: str, tmp_path: Path) -> None:
    """The client does not read, so that the answer, which holds a lease, is under way when the server ends."""
    note = tmp_path / "note"
    environment = {"NOTE": str(note)}
    with Running(FAKE, runtime, "drain=200ms", environment=environment) as running, Client(running.port) as client:
        client.send(get("/holds-much"))
        assert client.socket.recv(1)
        code, _ = running.stop()
    assert (code, note.read_text()) == (0, "undelivered a lease")


@pytest.mark.parametrize("name", NAMES.values())
def test_the_end_of_the_certificate_is_logged_and_measured(name: str, tmp_path: Path) -> None:
    """Only `check` told it: the first to notice were the clients."""
    settings = tmp_path / "cloudid.toml"
    files = 'tls_certificate = "cert.pem"\ntls_key = "key.pem"\n'
    settings.write_text(f'[server]\nlisten = "127.0.0.1:0"\n{files}[service]\nmetrics_access = "anybody"\n')

    def days_left() -> float:
        url = f"https://127.0.0.1:{running.port}/v1/sys/metrics?format=prometheus"
        with warnings.catch_warnings(action="ignore"):
            shown = httpx.get(url, verify=False, timeout=PATIENCE).text
        [ends] = re.findall(r"^cloudid_tls_certificate_ends_timestamp_seconds (\S+)$", shown, re.MULTILINE)
        return (float(ends) - time.time()) / 86400

    write_certificate(tmp_path, "127.0.0.1", timedelta(days=3))
    with Running(name, "--dev", "--provider", "http://127.0.0.1:1", "--settings", str(settings)) as running:
        assert 2 < days_left() < 4
        write_certificate(tmp_path, "127.0.0.1", timedelta(days=30))
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: 29 < days_left() < 31)
        code, log = running.stop()
    [told] = [line for line in lines_of(log) if line["event"] == "certificate ends soon or is not valid"]
    assert code == 0
    assert "renew it and send SIGHUP" in told["reason"]


@pytest.mark.parametrize("name", NAMES.values())
def test_a_certificate_in_a_form_that_openssl_alone_reads_is_served(name: str, tmp_path: Path) -> None:
    settings, certificate = tmp_path / "cloudid.toml", tmp_path / "cert.pem"
    settings.write_text('[server]\nlisten = "127.0.0.1:0"\ntls_certificate = "cert.pem"\ntls_key = "key.pem"\n')
    write_certificate(tmp_path, "127.0.0.1")
    certificate.write_bytes(certificate.read_bytes().replace(b" CERTIFICATE", b" TRUSTED CERTIFICATE"))
    with Running(name, "--dev", "--provider", "http://127.0.0.1:1", "--settings", str(settings)) as running:
        pem = ssl.get_server_certificate(("127.0.0.1", running.port), timeout=PATIENCE)
    assert common_name_of(pem) == "127.0.0.1"


@pytest.mark.parametrize("name", NAMES.values())
def test_sighup_reloads_level_and_certificate(name: str, tmp_path: Path) -> None:
    """The new key may be of another kind. What takes a restart is named; a file that cannot be used changes nothing."""
    settings = tmp_path / "cloudid.toml"
    written = '[server]\nlisten = "127.0.0.1:0"\ntls_certificate = "cert.pem"\ntls_key = "key.pem"\nlog_level = "{}"\n'

    def common_name(port: int) -> str:
        pem = ssl.get_server_certificate(("127.0.0.1", port), timeout=PATIENCE)
        return common_name_of(pem)

    write_certificate(tmp_path, "first")
    settings.write_text(written.format("info"))
    with Running(name, "--dev", "--provider", "http://127.0.0.1:1", "--settings", str(settings)) as running:
        assert common_name(running.port) == "first"
        write_certificate(tmp_path, "second", is_rsa=True)
        settings.write_text(written.format("warning") + "connection_limit = 7\n")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: common_name(running.port) == "second")
        write_certificate(tmp_path, "third")
        (tmp_path / "key.pem").unlink()
        settings.write_text(written.format("info"))
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "settings not reloaded" in running.log())
        assert common_name(running.port) == "second"
        code, log = running.stop()
    assert code == 0
    lines = [line for line in lines_of(log) if line["event"] == "draining" or "settings" in line["event"]]
    assert [(line["event"], line.get("names")) for line in lines] == [
        ("settings that take a restart have changed", ["server.connection_limit"]),
        ("settings not reloaded", None),
    ]


def test_a_reload_names_what_takes_a_restart(tmp_path: Path) -> None:
    log = LogOfATest(tmp_path / "log")
    applied: list[ServerSettings] = []
    new = SettingsFile(server=ServerSettings(listen="127.0.0.1:1", log_level="debug"), service={"leeway": 5})
    reload = Reload(SettingsFile(), lambda: new)
    reload.add(applied.append)
    reload.run(log.log)
    assert applied == [new.server]
    assert [line.get("names") for line in log.lines] == [None, ["server.listen", "service.leeway"]]
    os.close(log.descriptor)


@pytest.mark.parametrize(
    ("new", "name"),
    [
        (SettingsFile(audit=(DeclaredDevice(name="main", type="stdout"),)), "audit.main"),
        (SettingsFile(server=ServerSettings(tls_certificate="cert.pem", tls_key="key.pem")), "server.tls_certificate"),
    ],
    ids=["audit device", "TLS"],
)
def test_a_reload_names_what_comes_and_goes_with_a_restart_only(new: SettingsFile, name: str, tmp_path: Path) -> None:
    log = LogOfATest(tmp_path / "log")
    Reload(SettingsFile(), lambda: new).run(log.log)
    Reload(new, SettingsFile).run(log.log)
    assert [line.get("names") for line in log.lines] == [None, [name]] * 2
    os.close(log.descriptor)


def test_a_reload_that_fails_is_logged_and_changes_nothing(tmp_path: Path) -> None:
    log = LogOfATest(tmp_path / "log")

    def fail() -> SettingsFile:
        raise SettingsError("the file is gone")

    Reload(SettingsFile(), fail).run(log.log)
    [line] = log.lines
    assert (line["event"], line["reason"]) == ("settings not reloaded", "the file is gone")
    os.close(log.descriptor)


@pytest.mark.parametrize("name", NAMES.values())
def test_a_failed_reload_is_a_problem_until_one_succeeds(name: str, tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    usable = '[server]\nlisten = "127.0.0.1:0"\n'

    def problems() -> list[str]:
        with Client(running.port) as client:
            shown: list[str] = json.loads(body(client.ask(get("/v1/sys/health"))))["problems"]
        return shown

    settings.write_text(usable)
    with Running(name, "--dev", "--provider", "http://127.0.0.1:1", "--settings", str(settings)) as running:
        assert "settings_not_reloaded" not in problems()
        settings.write_text(usable + "no_setting = 1\n")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "settings_not_reloaded" in problems())
        settings.write_text(usable)
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "settings_not_reloaded" not in problems())


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full", "2>&- >&- <&-", "2>/dev/full >/dev/full"])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_server_whose_streams_are_closed_or_full_serves(runtime: str, stream: str) -> None:
    """Requests are answered, background work goes on, and the exit code is 0."""
    shell = shutil.which("sh") or "sh"
    port = free_port()
    script = f'exec "$0" -m {FAKE} {runtime} listen=127.0.0.1:{port} {stream}'
    process = subprocess.Popen([shell, "-c", script, sys.executable], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: answers(port))
        with Client(port) as client:
            assert status(client.ask(get("/bug"))) == 500
            assert status(client.ask(get("/visit"))) == 200
            wait_until(lambda: json.loads(body(client.ask(get("/count?tick"))))["count"] >= 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", NAMES.values())
def test_the_place_of_a_closed_stream_is_taken_by_nothing_else(name: str) -> None:
    """Otherwise the log would be written into a file of the store, or to a client."""
    shell = shutil.which("sh") or "sh"
    port = free_port()
    script = f'exec "$0" -m {name} --dev --listen 127.0.0.1:{port} 2>&- >&- <&-'
    process = subprocess.Popen([shell, "-c", script, sys.executable], cwd=ROOT)
    try:
        wait_until(lambda: answers(port))
        assert {os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)} == {os.devnull}
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except OSError:
        return False
    return True
