"""What clients of a server see while its database is down, read-only or fails over, as the runbook says it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import psycopg
import pytest

from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.stores.postgres.connector import PATIENCE as LOSS_SECONDS
from tests.servers.running import SERVERS, Running, wait_until
from tests.servers.story import ROOT as ROOT_TOKEN
from tests.stores.cluster import PASSWORD, Cluster, synchronous_standby
from tests.stores.test_postgres_failures import end_backends
from tests.stores.test_served import ask, configured, prepared, written

pytestmark = pytest.mark.one_server

ALLOWANCE: Final = 2.0
"""Seconds that requests may take that do not wait for the database."""

ATTEMPTS: Final = 5
"""A machine may be busy for once; a request that waits for the database does so every time."""

READ: Final = ("GET", "auth/token/lookup-self")
WRITE: Final = ("PUT", "sys/policies/acl/x", ROOT_TOKEN, {"policy": ""})


def health(running: Running) -> httpx.Response:
    return ask(running.url, "GET", "sys/health", token="")


@contextmanager
def stopped(cluster: Cluster) -> Iterator[None]:
    cluster.stop("immediate")
    try:
        yield
    finally:
        cluster.start()


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_has_lost_its_database_says_so_soon_and_comes_back(
    server: str, cluster: Cluster, tmp_path: Path
) -> None:
    with cluster.database() as address:
        settings = written(tmp_path, address)
        prepared(settings)
        with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
            assert ask(running.url, *READ).status_code == 200
            assert any(is_told_soon(cluster, running) for _ in range(ATTEMPTS))
            assert [ask(running.url, *request).status_code for request in (READ, WRITE)] == [200, 204]
            code, log = running.stop()
        assert (code, PASSWORD in log) == (0, False)


def is_told_soon(cluster: Cluster, running: Running) -> bool:
    """Whether only the first request after the loss waits for a new connection, and the others are refused at once."""
    instants = [time.monotonic()]
    with stopped(cluster):
        assert health(running).json()["problems"] == ["store_unavailable"]
        for request in (READ, WRITE):
            answer = ask(running.url, *request)
            assert (answer.status_code, answer.json()["codes"]) == (503, ["store_unavailable"])
            instants.append(time.monotonic())
        assert health(running).status_code == 503
        instants.append(time.monotonic())
    wait_until(lambda: health(running).status_code == 200)
    lost, refused, _, last = instants
    return refused - lost < LOSS_SECONDS + ALLOWANCE and last - refused < ALLOWANCE


@pytest.mark.parametrize("server", SERVERS)
def test_what_only_reads_works_while_the_database_is_read_only(server: str, cluster: Cluster, tmp_path: Path) -> None:
    """The rest is refused with 503; a login stores a token, so it is refused."""
    with cluster.database() as address, start(Simulator()) as cloud:
        settings = written(tmp_path, address)
        prepared(settings)
        name = address.rpartition("/")[2]
        with Running(f"cloudid_servers.{server}", "--settings", str(settings), "--provider", cloud.url) as running:
            form = configured(running.url, cloud.url)
            login = ("POST", "auth/cloud/login", "", form)
            assert ask(running.url, *login).status_code == 200
            cluster.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            end_backends(cluster, address)
            wait_until(lambda: ask(running.url, *READ).status_code == 200)
            for request in (WRITE, login):
                answer = ask(running.url, *request)
                assert (answer.status_code, answer.json()["codes"]) == (503, ["store_unavailable"])
            assert ask(running.url, *READ).status_code == 200
            with psycopg.connect(cluster.admin, autocommit=True) as connection:
                connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
            wait_until(lambda: ask(running.url, *WRITE).status_code == 204)
            assert ask(running.url, *login).status_code == 200


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_goes_on_with_the_standby_without_a_restart(server: str, cluster: Cluster, tmp_path: Path) -> None:
    """Every token that was answered is there."""
    with cluster.database() as address:
        settings = written(tmp_path, address)
        prepared(settings)
        with synchronous_standby(cluster) as standby:
            written(tmp_path, cluster.with_standby(address, standby))
            with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
                create = ("POST", "auth/token/create", ROOT_TOKEN, {"policies": ["default"]})
                tokens = [ask(running.url, *create).json()["auth"]["client_token"] for _ in range(5)]
                cluster.fail_over_to(standby)
                wait_until(lambda: ask(running.url, *create).status_code == 200)
                assert {ask(running.url, *READ, token).status_code for token in tokens} == {200}
                wait_until(lambda: health(running).status_code == 200)
