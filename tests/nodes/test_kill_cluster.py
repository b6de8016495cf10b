"""`kill -9` of workers, of nodes and of PostgreSQL under load: every answer has its lease, and nothing else is left."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.stores.postgres.temporary import NoPostgres
from tests.servers.credentials import SETTLED_SOON, borrowing, check
from tests.servers.deployment import Deployment, service_table
from tests.servers.load import Load
from tests.servers.running import Running, wait_until
from tests.servers.story import ROOT
from tests.stores.cluster import Cluster
from tests.stores.test_served import ask, prepared, written

ENOUGH: Final = 4
"""Credentials that are answered between two kills."""


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
    wait_until(lambda: has_started(cluster))


def has_started(cluster: Cluster) -> bool:
    try:
        cluster.start()
    except NoPostgres:  # a process of the old server is still ending
        return False
    return True


def test_nothing_is_leaked_and_no_lease_is_lost(cluster: Cluster, tmp_path: Path, cycles: int) -> None:
    with cluster.database() as address, start(Simulator()) as cloud:
        settings = written(tmp_path, address)
        settings.write_text(settings.read_text() + service_table(SETTLED_SOON))
        prepared(settings)
        arguments = ("--settings", str(settings), "--provider", cloud.url, "--workers", "2")
        with (
            Running("cloudid_servers.trio_server", *arguments) as one,
            Running("cloudid_servers.aiohttp_server", *arguments) as two,
        ):
            deployment = Deployment("trio_server", tmp_path, cloud.url, ROOT)
            deployment.configure(one)
            with deployment.client(one) as first, deployment.client(two) as second:
                with Load(*borrowing(first), *borrowing(second)) as load:
                    for kill in kills(one, two, cluster, max(1, cycles // 3)):
                        load.wait_for_more(ENOUGH)
                        kill()
                    load.wait_for_more(ENOUGH)
                check(first, cloud.url, load.answers)


def kills(one: Running, two: Running, cluster: Cluster, rounds: int) -> list[Callable[[], None]]:
    """After so many rounds a whole node, which does not come back."""
    a_round = [
        partial(kill_worker, one),
        partial(kill_worker, two),
        partial(kill_postgres, cluster),
        partial(kill_worker, one),
    ]
    return [*a_round * rounds, partial(kill_node, two)]


def test_a_number_of_uses_is_exact_across_nodes_under_load(cluster: Cluster, tmp_path: Path) -> None:
    with cluster.database() as address:
        settings = written(tmp_path, address)
        prepared(settings)
        arguments = ("--settings", str(settings), "--workers", "2")
        with (
            Running("cloudid_servers.trio_server", *arguments) as one,
            Running("cloudid_servers.aiohttp_server", *arguments) as two,
        ):
            created = ask(one.url, "POST", "auth/token/create", body={"policies": ["default"], "num_uses": 40})
            token = created.json()["auth"]["client_token"]

            def use(number: int) -> int:
                return ask((one, two)[number % 2].url, "GET", "auth/token/lookup-self", token).status_code

            with ThreadPoolExecutor(8) as pool:
                statuses = Counter(pool.map(use, range(80)))
            assert statuses == {200: 40, 403: 40}
