"""Hosts for tests: a scenario, opened on either runtime, and a provider to call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from typing import Final, TypeAlias, TypeVar

import trio

from cloudid_core.effects import HttpRequest
from cloudid_core.testing import scripted_provider
from cloudid_core.testing.conformance import Scripted
from cloudid_servers.aiohttp_server import host as aiohttp_host
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
    closing = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            url = f"http://{self.headers['host']}{self.path}"
            scripted = provider(HttpRequest(self.command, url, dict(self.headers.items()), body))
            closing.wait(None if scripted.delay == inf else scripted.delay)
            self.close_connection = scripted.drop or closing.is_set()
            if self.close_connection:
                return
            self.send_response_only(scripted.response.status)
            for name, value in scripted.response.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(scripted.response.body)))
            self.end_headers()
            self.wfile.write(scripted.response.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                self.close_connection = True

    class Server(ThreadingHTTPServer):
        request_queue_size = 512  # with the usual 5, the kernel drops connections that come at once

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
