"""`kill -9` of workers, of nodes and of PostgreSQL under load: every answer has its lease, and nothing else is left."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from servers.provider_simulator import Simulator, start
from servers.stores.postgres.temporary import NoPostgres
from tests.servers.running import PATIENCE, Running, wait_until
from tests.servers.story import ROOT
from tests.servers.test_kill_leases import LONG, alive, configure, leases, passwords
from tests.stores.cluster import Cluster
from tests.stores.test_served import ask, prepared, written

SERVICE: Final = """
[service]
request_deadline = "3s"
request_grace = "500ms"
settle_time = 2
"""
ENOUGH: Final = 4
"""Credentials that are answered between two kills."""


class Clients:
    """They borrow credentials at all nodes, again and again, whatever happens to these."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.answered: list[dict[str, Any]] = []
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._borrow, args=(url, role)) for url in urls for role in ("fresh", "existing")
        ]
        for thread in self._threads:
            thread.start()

    def wait_for_more(self) -> None:
        """Until some more credentials were answered."""
        wanted, until = len(self.answered) + ENOUGH, time.monotonic() + 2 * PATIENCE
        while len(self.answered) < wanted:
            assert time.monotonic() < until, "no more credentials are answered"
            time.sleep(0.01)

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _borrow(self, url: str, role: str) -> None:
        while not self._stopped.is_set():
            try:
                answer = httpx.get(
                    f"{url}/v1/cloud/creds/{role}",
                    headers={"X-Service-Token": ROOT},
                    trust_env=False,
                    timeout=PATIENCE,
                )
            except httpx.TransportError:
                time.sleep(0.1)
                continue
            if answer.status_code == 200:
                self.answered.append(answer.json())
            else:
                time.sleep(0.05)


def workers_of(running: Running) -> list[int]:
    pid = running.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill_worker(running: Running) -> None:
    """The next one, if all have just died: a new one cannot start while PostgreSQL is away."""
    first, *_ = wait_until(lambda: workers_of(running))
    os.kill(first, signal.SIGKILL)


def kill_node(running: Running) -> None:
    """All its processes, the parent first: it must not replace the others."""
    workers = workers_of(running)
    running.process.kill()
    for pid in workers:
        os.kill(pid, signal.SIGKILL)


def kill_postgres(cluster: Cluster) -> None:
    """And start it again: it recovers what was committed."""
    pid = int((cluster.data / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while True:
        try:
            cluster.start()
            return
        except NoPostgres:  # a process of the old server is still ending
            assert time.monotonic() < until
            time.sleep(0.2)


@pytest.mark.timeout(300)
def test_nothing_is_leaked_and_no_lease_is_lost(cluster: Cluster, tmp_path: Path, cycles: int) -> None:
    with cluster.database() as address, start(Simulator()) as cloud:
        settings = written(tmp_path, address)
        settings.write_text(settings.read_text() + SERVICE)
        prepared(settings)
        arguments = ("--settings", str(settings), "--provider", cloud.url, "--workers", "2")
        with Running("servers.trio_server", *arguments) as one, Running("servers.aiohttp_server", *arguments) as two:
            configure(one.url, cloud.url, ROOT)
            clients = Clients([one.url, two.url])
            try:
                for _ in range(max(1, cycles // 3)):
                    for kill in kills(one, two, cluster):
                        clients.wait_for_more()
                        kill()
                clients.wait_for_more()
                kill_node(two)
                clients.wait_for_more()
            finally:
                clients.stop()
            headers = {"X-Service-Token": ROOT}
            with httpx.Client(base_url=one.url, trust_env=False, headers=headers, timeout=90) as client:
                wait_until(lambda: passwords(cloud.url) == len(leases(client)), LONG)
                assert {answer["lease_id"] for answer in clients.answered} <= leases(client)
                client.put("/v1/sys/leases/revoke-prefix/cloud/creds").raise_for_status()
                wait_until(lambda: not alive(cloud.url), LONG)
                assert leases(client) == set()


def kills(one: Running, two: Running, cluster: Cluster) -> list[Callable[[], None]]:
    return [
        lambda: kill_worker(one),
        lambda: kill_worker(two),
        lambda: kill_postgres(cluster),
        lambda: kill_worker(one),
    ]


def test_a_number_of_uses_is_exact_across_nodes_under_load(cluster: Cluster, tmp_path: Path) -> None:
    with cluster.database() as address:
        settings = written(tmp_path, address)
        prepared(settings)
        arguments = ("--settings", str(settings), "--workers", "2")
        with Running("servers.trio_server", *arguments) as one, Running("servers.aiohttp_server", *arguments) as two:
            created = ask(one.url, "POST", "auth/token/create", body={"policies": ["default"], "num_uses": 40})
            token = created.json()["auth"]["client_token"]

            def use(number: int) -> int:
                return ask((one, two)[number % 2].url, "GET", "auth/token/lookup-self", token).status_code

            with ThreadPoolExecutor(8) as pool:
                statuses = Counter(pool.map(use, range(80)))
            assert statuses == {200: 40, 403: 40}
