"""`kill -9` of workers, nodes and their store under load: every answer has its lease, and nothing else is left."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import sleep
from typing import Final

import pytest

from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.stores.etcd.temporary import Member
from cloudid_servers.stores.postgres.temporary import NoPostgres
from tests.servers.credentials import SETTLED_SOON, borrowing, check
from tests.servers.deployment import Deployment, service_table
from tests.servers.load import Load
from tests.servers.running import Running, wait_until
from tests.servers.story import ROOT
from tests.stores.cluster import Cluster
from tests.stores.etcd_cluster import EtcdCluster, Network, running_apart, running_etcd
from tests.stores.test_served import ask, prepared, written

ENOUGH: Final = 4
"""Credentials that are answered between two kills."""

AWAY_SECONDS: Final = 2.0
"""Longer than the other members take to elect a leader."""


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


def kill_member(cluster: EtcdCluster, member: Member) -> None:
    member.kill()
    sleep(AWAY_SECONDS)
    cluster.start(member)


def cut_off_leader(cluster: EtcdCluster, network: Network) -> None:
    """Whoever is asked by the old leader meanwhile is told nothing that the majority does not know."""
    number = cluster.members.index(wait_until(cluster.leader))
    network.cut(number)
    sleep(AWAY_SECONDS)
    network.join(number)


def has_started(cluster: Cluster) -> bool:
    try:
        cluster.start()
    except NoPostgres:  # a process of the old server is still ending
        return False
    return True


def test_nothing_is_leaked_and_no_lease_is_lost(cluster: Cluster, tmp_path: Path, cycles: int) -> None:
    with cluster.database() as address:
        survive(address, [partial(kill_postgres, cluster)], tmp_path, max(1, cycles // 3))


def test_nothing_is_leaked_and_no_lease_is_lost_over_etcd(tmp_path: Path, cycles: int) -> None:
    with running_etcd(3) as cluster:
        troubles = [partial(kill_member, cluster, member) for member in cluster.members]
        survive(cluster.new_prefix(), troubles, tmp_path, max(1, cycles // 5))


@pytest.mark.long
def test_nothing_is_leaked_and_no_lease_is_lost_while_members_of_etcd_are_cut_off(tmp_path: Path, cycles: int) -> None:
    with running_apart(3) as (cluster, network):
        survive(cluster.new_prefix(), [partial(cut_off_leader, cluster, network)], tmp_path, max(1, cycles // 3))


def survive(address: str, troubles: Sequence[Callable[[], None]], folder: Path, rounds: int) -> None:
    """Two nodes of two workers each lend credentials, while in each round workers die and the store is in trouble."""
    settings = written(folder, address)
    with start(Simulator()) as cloud:
        settings.write_text(settings.read_text() + service_table(SETTLED_SOON))
        prepared(settings)
        arguments = ("--settings", str(settings), "--provider", cloud.url, "--workers", "2")
        with (
            Running("cloudid_servers.trio_server", *arguments) as one,
            Running("cloudid_servers.aiohttp_server", *arguments) as two,
        ):
            deployment = Deployment("trio_server", folder, cloud.url, ROOT)
            deployment.configure(one)
            with deployment.client(one) as first, deployment.client(two) as second:
                with Load(*borrowing(first), *borrowing(second)) as load:
                    workers: list[Callable[[], None]] = [partial(kill_worker, one), partial(kill_worker, two)]
                    all_of_them = [*workers, *troubles] * rounds + [partial(kill_node, two)]
                    for kill in all_of_them:  # the node does not come back
                        load.wait_for_more(ENOUGH)
                        kill()
                    load.wait_for_more(ENOUGH)
                check(first, cloud.url, load.answers)


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
