"""The conformance suite on etcd: one member and three, two hosts on one cluster, and members that are killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import cycle

import pytest

from cloudid_core.testing import check_host, interruption_checks, shared_store_checks
from cloudid_servers.aiohttp_server import host as aiohttp_host
from cloudid_servers.host.host import Host
from cloudid_servers.machine.platform_identity import Platform
from cloudid_servers.stores.etcd.temporary import Member
from cloudid_servers.trio_server import host as trio_host
from tests.hosts.opened import RUNTIMES, on

from .etcd_cluster import EtcdCluster, etcd_at, freeze, running_apart, running_etcd, thaw

pytestmark = pytest.mark.tools
on_both = pytest.mark.parametrize("runtime", RUNTIMES)


@pytest.fixture(scope="module")
def single() -> Iterator[EtcdCluster]:
    with running_etcd(1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def three() -> Iterator[EtcdCluster]:
    with running_etcd(3) as cluster:
        yield cluster


@on_both
@pytest.mark.parametrize("size", ["single", "three"])
def test_the_host_conforms(runtime: str, size: str, request: pytest.FixtureRequest) -> None:
    cluster: EtcdCluster = request.getfixturevalue(size)
    with closing(etcd_at(cluster.new_prefix())) as store:
        on(runtime, check_host, store)


@on_both
def test_two_hosts_on_one_cluster_conform(runtime: str, three: EtcdCluster) -> None:
    open_host = trio_host.open_host if runtime == "trio" else aiohttp_host.open_host
    address = three.new_prefix()

    async def scenario(host: Host) -> None:
        with closing(etcd_at(address, is_new=False)) as second:
            async with open_host(second, Platform()) as other:
                await check_host(host, shared_store_checks(other))

    with closing(etcd_at(address)) as store:
        on(runtime, scenario, store)


@on_both
def test_a_host_whose_members_are_killed_conforms(runtime: str, three: EtcdCluster) -> None:
    """One after the other, three during each check: each is back before the next one dies."""
    members = cycle(three.members)

    async def scenario(host: Host) -> None:
        async def kill() -> None:
            for _ in range(3):
                member = next(members)
                await host.in_thread(Member.kill, member)
                await host.sleep(0.5)
                await host.in_thread(three.start, member)

        await check_host(host, interruption_checks(kill))

    with closing(etcd_at(three.new_prefix())) as store:
        on(runtime, scenario, store)


@on_both
def test_a_host_whose_cluster_loses_and_finds_its_quorum_conforms(runtime: str, three: EtcdCluster) -> None:
    """Two members stand still, longer than an answer is waited for, and go on with what they had been sent."""

    async def scenario(host: Host) -> None:
        async def stand_still() -> None:
            for member in three.members[:2]:
                freeze(member)
            await host.sleep(7)
            for member in three.members[:2]:
                thaw(member)

        await check_host(host, interruption_checks(stand_still))

    with closing(etcd_at(three.new_prefix())) as store:
        on(runtime, scenario, store)


def test_a_host_whose_leader_is_cut_off_from_the_others_conforms() -> None:
    """It goes on serving those who reach it, who must not be told anything that the majority does not know."""
    with running_apart(3) as (cluster, network), closing(etcd_at(cluster.new_prefix())) as store:

        async def scenario(host: Host) -> None:
            async def cut_off() -> None:
                leader = cluster.leader()
                assert leader is not None
                number = cluster.members.index(leader)
                network.cut(number)
                await host.sleep(3)
                network.join(number)

            await check_host(host, interruption_checks(cut_off))

        on("trio", scenario, store)
