"""A database that hangs holds no request beyond its deadline, and health says so within two seconds.

While it hangs, a request that has time is still waiting when one in a hurry, and health, are answered.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.servers.running import SERVERS, Client, Running, body, status, wait_until
from tests.servers.story import ROOT as ROOT_TOKEN
from tests.stores.cluster import Cluster, synchronous_standby
from tests.stores.test_served import ask, prepared, written

pytestmark = pytest.mark.one_server

Stall = Callable[[Cluster, str], AbstractContextManager[None]]


@contextmanager
def locked_table(cluster: Cluster, address: str) -> Iterator[None]:
    with psycopg.connect(address) as connection:
        connection.execute("LOCK TABLE cloudid.entry IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def frozen_backends(cluster: Cluster, address: str) -> Iterator[None]:
    found = cluster.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", address.rpartition("/")[2])
    with frozen([pid for (pid,) in found]):
        yield


STALLS: Final[tuple[Stall, ...]] = (locked_table, frozen_backends)
HEAD: Final = f"{{}} HTTP/1.1\r\nhost: a\r\nx-service-token: {ROOT_TOKEN}\r\ncontent-length: 0\r\n"
READ: Final = HEAD.format("GET /v1/auth/token/lookup-self")
WRITE: Final = HEAD.format("POST /v1/auth/token/create")
HEALTH: Final = HEAD.format("GET /v1/sys/health")


@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("server", SERVERS)
def test_a_database_that_hangs(server: str, stall: Stall, cluster: Cluster, tmp_path: Path) -> None:
    with cluster.database() as address:
        settings = written(tmp_path, address)
        prepared(settings)
        with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
            assert ask(running.url, "GET", "auth/token/lookup-self").status_code == 200
            for request in (READ, WRITE):
                with stall(cluster, address), Client(running.port) as patient:
                    patient.send(f"{request}\r\n".encode())
                    answers = []
                    for hurried in (f"{HEALTH}\r\n", f"{request}x-service-deadline: 1\r\n\r\n"):
                        with Client(running.port) as client:
                            answers.append(client.ask(hurried.encode()))
                    patient.socket.setblocking(False)
                    with pytest.raises(BlockingIOError):
                        patient.socket.recv(1)
                    health, answer = answers
                    assert (status(health), json.loads(body(health))["problems"]) == (503, ["store_unavailable"])
                    assert (status(answer), json.loads(body(answer))["codes"]) == (504, ["deadline_passed"])
                wait_until(lambda: ask(running.url, "GET", "sys/health").status_code == 200)
            assert ask(running.url, "POST", "auth/token/create").status_code == 200


@pytest.mark.parametrize("server", SERVERS)
def test_a_synchronous_standby_that_hangs(server: str, cluster: Cluster, tmp_path: Path) -> None:
    """What is written waits for it; what only reads is served."""
    with cluster.database() as address:
        settings = written(tmp_path, address)
        prepared(settings)
        with (
            synchronous_standby(cluster) as standby,
            Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running,
        ):
            assert ask(running.url, "POST", "auth/token/create").status_code == 200
            receivers = [pid for (pid,) in standby.execute("SELECT pid FROM pg_stat_wal_receiver")]
            with frozen(receivers), Client(running.port) as patient, Client(running.port) as hurried:
                patient.send(f"{WRITE}\r\n".encode())
                answer = hurried.ask(f"{WRITE}x-service-deadline: 1\r\n\r\n".encode())
                assert (status(answer), json.loads(body(answer))["codes"]) == (504, ["deadline_passed"])
                assert ask(running.url, "GET", "auth/token/lookup-self").status_code == 200
                patient.socket.setblocking(False)
                with pytest.raises(BlockingIOError):
                    patient.socket.recv(1)
            wait_until(lambda: ask(running.url, "POST", "auth/token/create").status_code == 200)
