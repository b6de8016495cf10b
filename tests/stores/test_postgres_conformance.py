"""The conformance suite on PostgreSQL: one host, two hosts on one database, and a database that is interrupted."""

from __future__ import annotations

from contextlib import closing

import pytest

from cloudid_core.testing import check_host, interruption_checks, shared_store_checks
from cloudid_servers.aiohttp_server import host as aiohttp_host
from cloudid_servers.host.host import Host
from cloudid_servers.machine.platform_identity import Platform
from cloudid_servers.stores.postgres import Mode, PostgresStore
from cloudid_servers.trio_server import host as trio_host
from tests.hosts.opened import on

from .cluster import Cluster, Databases, synchronous_standby
from .test_postgres import at, everywhere, nothing, on_both, with_store
from .test_postgres_failures import end_backends


@everywhere
@on_both
def test_the_host_conforms(runtime: str, mode: Mode, database: str) -> None:
    with closing(at(database, mode)) as store:
        on(runtime, check_host, store)


@everywhere
@on_both
def test_two_hosts_on_one_database_conform(runtime: str, mode: Mode, database: str) -> None:
    open_host = trio_host.open_host if runtime == "trio" else aiohttp_host.open_host

    async def scenario(host: Host, store: PostgresStore) -> None:
        with closing(at(database, None)) as second:
            async with open_host(second, Platform()) as other:
                await check_host(host, shared_store_checks(other))

    with_store(database, scenario, mode, runtime)


@everywhere
@on_both
def test_a_host_whose_connections_are_ended_conforms(
    runtime: str, mode: Mode, database: str, databases: Databases
) -> None:
    async def scenario(host: Host, store: PostgresStore) -> None:
        async def end_connections() -> None:
            for _ in range(3):
                await host.in_thread(lambda _: end_backends(databases, database), None)
                await host.sleep(0.05)

        await check_host(host, interruption_checks(end_connections))

    with_store(database, scenario, mode, runtime)


@on_both
def test_a_host_whose_database_is_restarted_conforms(runtime: str, cluster: Cluster) -> None:
    async def scenario(host: Host, store: PostgresStore) -> None:
        async def restart() -> None:
            await host.in_thread(cluster.restart, "immediate")

        await check_host(host, interruption_checks(restart))

    with cluster.database() as database:
        with_store(database, scenario, runtime=runtime)


@pytest.mark.parametrize("number", range(2), ids=["outcomes", "updates"])
def test_a_host_whose_database_fails_over_conforms(number: int, cluster: Cluster) -> None:
    """To a synchronous standby. Each check has its own, since no server can fail over twice."""
    with cluster.database() as database:
        with_store(database, nothing)
        with synchronous_standby(cluster) as standby:

            async def scenario(host: Host, store: PostgresStore) -> None:
                async def fail_over() -> None:
                    await host.in_thread(cluster.fail_over_to, standby)

                await check_host(host, interruption_checks(fail_over)[number : number + 1])

            with_store(cluster.with_standby(database, standby), scenario)
