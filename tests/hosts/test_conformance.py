"""Both hosts, on both stores, do what is asked of every host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from cloudid_core.effects import ReadEntry, Sleep, gather
from cloudid_core.errors import StoreFailed
from cloudid_core.run import run
from cloudid_core.testing import NotConforming, check_host
from cloudid_core.testing.conformance.check import checks_of
from cloudid_servers.conformance import served_provider
from cloudid_servers.host.host import Host
from cloudid_servers.stores import Store
from cloudid_servers.stores.group_commit import GroupCommit
from cloudid_servers.stores.memory import InMemory
from cloudid_servers.stores.sqlite import SqliteStore

from ..waiting import PATIENCE
from .opened import RUNTIMES, on


@pytest.mark.parametrize(
    "make", [lambda _: InMemory(), lambda path: GroupCommit(SqliteStore(path))], ids=["memory", "sqlite"]
)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_host_conforms(runtime: str, make: Callable[[Path], Store], tmp_path: Path) -> None:
    with closing(make(tmp_path / "store.sqlite")) as store:
        on(runtime, check_host, store)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_host_calls_providers_as_it_must(runtime: str) -> None:
    with served_provider() as provider:

        async def scenario(host: Host) -> None:
            await check_host(host, provider.checks)

        on(runtime, scenario)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_check_that_does_not_end_has_failed(runtime: str) -> None:
    async def stuck() -> None:
        await Sleep(PATIENCE)

    async def after_it() -> None:
        raise NotConforming("another")

    async def scenario(host: Host) -> None:
        await check_host(host, checks_of(stuck, after_it, waits=True), limit=0.1)

    with pytest.raises(NotConforming, match=r"stuck: TimeIsUp: .*\nafter_it: NotConforming: another"):
        on(runtime, scenario)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_failure_comes_through_where_tasks_start_at_once(runtime: str) -> None:
    """Applications of Python 3.12 may set such a factory for their loop, which is then ours."""

    async def fail() -> None:
        await ReadEntry("a" * 20)
        raise StoreFailed("no disk")

    async def wait() -> None:
        await Sleep(PATIENCE)

    async def scenario(host: Host) -> None:
        if runtime == "asyncio":
            asyncio.get_running_loop().set_task_factory(getattr(asyncio, "eager_task_factory", None))
        for programs in ((fail(), wait()), (wait(), fail()), (fail(),)):
            with pytest.raises(StoreFailed, match="no disk"):
                await run(gather(programs), host)

    on(runtime, scenario)
