"""What both servers tell a service manager, over a datagram socket as systemd's."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

import pytest

from cloudid_servers.machine.service_manager import ServiceManager

from .running import Client, Gate, Running, wait_until
from .service_manager import fake_manager
from .test_signals import FAKE, RUNTIMES, get

LIMIT: Final = {"WATCHDOG_USEC": "20000"}
OWN: Final = "own"
"""The id of the process that runs the test. It is not known when tests are collected: mutants are tried in forks."""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_server_tells_when_it_is_ready_reloads_and_stops(runtime: str, tmp_path: Path) -> None:
    """It is told that it stops while a request is still under way."""
    gate = Gate(tmp_path)
    with fake_manager() as manager, Running(FAKE, runtime, environment=manager.environment) as running:
        assert manager.hear() == {"READY": "1"}
        before = time.monotonic_ns() // 1000
        running.process.send_signal(signal.SIGHUP)
        told = manager.hear()
        assert before <= int(told.pop("MONOTONIC_USEC")) <= time.monotonic_ns() // 1000
        assert told == {"RELOADING": "1"}
        assert manager.hear() == {"READY": "1"}
        with Client(running.port) as client:
            client.send(get(f"/waits?{gate.folder}"))
            gate.wait_for(1)
            running.process.send_signal(signal.SIGTERM)
            assert manager.hear() == {"STOPPING": "1"}
            assert running.process.poll() is None
            gate.open()
            assert running.wait()[0] == 0


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_server_gives_signs_of_life(runtime: str, tmp_path: Path) -> None:
    with fake_manager(tmp_path) as manager:
        environment = {**manager.environment, **LIMIT}
        with Running(FAKE, runtime, environment=environment) as running:
            told = [manager.hear() for _ in range(8)]
            assert told.count({"WATCHDOG": "1"}) >= 6
            running.process.send_signal(signal.SIGTERM)
            while manager.hear() != {"STOPPING": "1"}:
                pass


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_manager_that_is_not_there_is_no_trouble(runtime: str, tmp_path: Path) -> None:
    environment = {"NOTIFY_SOCKET": str(tmp_path / "nobody"), **LIMIT}
    with Running(FAKE, runtime, environment=environment) as running:
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "settings reloaded" in running.log())
        assert running.stop()[0] == 0


@pytest.mark.parametrize(
    "variables, pause",
    [
        ({}, None),
        ({"WATCHDOG_USEC": "3000000"}, 1.5),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": OWN}, 1.5),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_a_sign_of_life_comes_twice_in_the_time_that_the_manager_sets(
    variables: dict[str, str], pause: float | None
) -> None:
    variables = {name: value.replace(OWN, str(os.getpid())) for name, value in variables.items()}
    assert ServiceManager({"NOTIFY_SOCKET": "/run/notify", **variables}).watchdog_pause == pause
    assert ServiceManager(variables).watchdog_pause is None
