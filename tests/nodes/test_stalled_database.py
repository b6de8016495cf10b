"""A database that hangs holds no request beyond its deadline, and health says so within two seconds.

While it hangs, a request that has time is still waiting when one in a hurry, and health, are answered.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import httpx
import psycopg
import pytest

from cloudid_servers.provider_simulator import Simulator, start
from tests.servers.running import SERVERS, Client, Running, body, status, wait_until
from tests.servers.story import ROOT as ROOT_TOKEN
from tests.servers.test_cancelled import engine_of
from tests.stores.cluster import Cluster, synchronous_standby
from tests.stores.test_served import ask, prepared, written
from tests.waiting import PATIENT

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


CLOUD: Final = """
[clouds.CloudPublicCloud]
login = "{0}/login"
resource_manager = "{0}/arm"
directory = "{0}/graph"
"""
LEASES: Final = "sys/leases/lookup/cloud/creds/existing?list=true"
IN_A_HURRY: Final = {"x-service-token": ROOT_TOKEN, "x-service-deadline": "3"}


@contextmanager
def locked_commits(address: str) -> Iterator[None]:
    """Commits wait until the end of the block, and are made then."""
    with psycopg.connect(address) as connection:
        connection.execute("LOCK TABLE cloudid.writer IN EXCLUSIVE MODE")
        yield


def listed(url: str, path: str) -> list[str]:
    answer = ask(url, "GET", path)
    return list(answer.json()["data"]["keys"]) if answer.status_code == 200 else []


def codes(answer: httpx.Response) -> list[str]:
    return list(answer.json()["codes"])


@pytest.mark.parametrize("server", SERVERS)
def test_a_token_whose_commit_lands_after_the_answer_does_not_live(
    server: str, cluster: Cluster, tmp_path: Path
) -> None:
    accessors = "auth/token/accessors?list=true"
    with cluster.database() as address:
        settings = written(tmp_path, address)
        prepared(settings)
        with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
            before = listed(running.url, accessors)
            url = f"{running.url}/v1/auth/token/create"
            with locked_commits(address):
                assert codes(httpx.post(url, headers=IN_A_HURRY, **PATIENT)) == ["deadline_passed"]
            kept = ask(running.url, "POST", "auth/token/create").json()["auth"]["accessor"]
            wait_until(lambda: set(listed(running.url, accessors)) == {*before, kept})


@pytest.mark.parametrize("server", SERVERS)
def test_a_lease_whose_commit_lands_after_the_answer_does_not_live(
    server: str, cluster: Cluster, tmp_path: Path
) -> None:
    """The secret exists already when the commits begin to wait."""
    with cluster.database() as address, start(Simulator()) as simulator:
        settings = written(tmp_path, address)
        settings.write_text(settings.read_text() + CLOUD.format(simulator.url))
        prepared(settings)
        scene = httpx.get(f"{simulator.url}/simulator/world", **PATIENT).json()
        with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
            for path, fields in engine_of(scene):
                assert ask(running.url, "POST", path, body=fields).status_code < 300
            creds = f"{running.url}/v1/cloud/creds/existing"
            received = httpx.get(creds, headers=IN_A_HURRY, **PATIENT).json()["lease_id"].rpartition("/")[2]
            slow = [{"match": {"family": "login"}, "times": 1, "action": {"delay": 1.0}}]
            assert httpx.post(f"{simulator.url}/simulator/faults", json=slow, **PATIENT).status_code < 300
            with ThreadPoolExecutor(1) as threads:
                late = threads.submit(httpx.get, creds, headers=IN_A_HURRY, **PATIENT)
                wait_until(lambda: has_intent(cluster, address))
                with locked_commits(address):
                    assert codes(late.result()) == ["deadline_passed"]
            wait_until(lambda: ask(running.url, "POST", "auth/token/create").status_code == 200)
            wait_until(lambda: not has_intent(cluster, address) and listed(running.url, LEASES) == [received])


def has_intent(cluster: Cluster, address: str) -> bool:
    statement = "SELECT count(*) FROM cloudid.entry WHERE position('/intent/' IN key) > 0"
    ((count,),) = cluster.execute(statement, database=address)
    return bool(count)


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
