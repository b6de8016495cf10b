"""Hosts for tests: a scenario, opened on either runtime, and a provider to call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias, TypeVar

import trio

from cloudid_core.effects import HttpRequest
from cloudid_core.testing import scripted_provider
from cloudid_core.testing.conformance import Scripted
from cloudid_servers.aiohttp_server import host as aiohttp_host
from cloudid_servers.conformance import served_provider
from cloudid_servers.host.host import Host
from cloudid_servers.host.proxies import NO_PROXIES, Proxies
from cloudid_servers.machine.platform_identity import Platform
from cloudid_servers.stores import Store
from cloudid_servers.stores.memory import InMemory
from cloudid_servers.trio_server import host as trio_host

T = TypeVar("T")
Scenario: TypeAlias = Callable[[Host], Awaitable[T]]
Provider: TypeAlias = Callable[[HttpRequest], Scripted]
RUNTIMES: Final = ("trio", "asyncio")


def on(
    runtime: str,
    scenario: Scenario[T],
    store: Store | None = None,
    platform: Platform | None = None,
    proxies: Proxies = NO_PROXIES,
) -> T:
    """What the scenario answers on a host that is open for as long as it lasts. No task in the background may fail."""
    store, platform = store or InMemory(), platform or Platform()
    failures: list[object] = []

    def note(event: str, **facts: object) -> None:
        failures.append((event, facts))

    async def on_trio() -> T:
        async with trio_host.open_host(store, platform, proxies) as host:
            host.report = note
            return await scenario(host)

    async def on_asyncio() -> T:
        async with aiohttp_host.open_host(store, platform, proxies) as host:
            host.report = note
            return await scenario(host)

    answer = trio.run(on_trio) if runtime == "trio" else asyncio.run(on_asyncio())
    assert not failures
    return answer


@contextmanager
def serving(provider: Provider = scripted_provider) -> Iterator[str]:
    """The address of a provider that answers over HTTP."""
    with served_provider(provider, names_proxy=False) as served:
        yield served.url
