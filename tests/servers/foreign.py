"""Servers of others, in threads: each serves an application on a free port of loopback until the block ends."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

import httpx
import trio
import uvicorn
from aiohttp import web
from hypercorn.asyncio import serve as serve_on_asyncio
from hypercorn.config import Config
from hypercorn.trio import serve as serve_on_trio

from tests.waiting import PATIENCE, PATIENT

CLUSTER_ROUND_INTERVAL: Final = 0.02

Serve: TypeAlias = Callable[[Any, socket.socket, threading.Event, Callable[[], None]], None]
"""Serves an application on a socket until the event is set, and calls back when it is ready."""


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, end: threading.Event, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._end = end
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        return self._end.is_set() or await super().on_tick(counter)


def _by_uvicorn(application: Any, listener: socket.socket, end: threading.Event, on_ready: Callable[[], None]) -> None:
    # its other parser does not know the method LIST
    config = uvicorn.Config(application, http="h11", lifespan="on", log_config=None, access_log=False)
    _Uvicorn(config, end, on_ready).run([listener])


def _by_hypercorn(run: Callable[..., None], sleep: Callable[[float], Awaitable[None]]) -> Serve:
    def serve(application: Any, listener: socket.socket, end: threading.Event, on_ready: Callable[[], None]) -> None:
        config = Config()
        config.bind = [f"fd://{listener.dup().detach()}"]  # it closes what it is given
        config.errorlog = None

        async def ended() -> None:
            on_ready()
            await _ended(end, sleep)

        run(application, config, ended)

    return serve


def _on_trio(application: Any, config: Config, ended: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await serve_on_trio(application, config, shutdown_trigger=ended)

    trio.run(main)


def _on_asyncio(application: Any, config: Config, ended: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(serve_on_asyncio(application, config, shutdown_trigger=ended))


def _by_aiohttp(
    application: Any,
    listener: socket.socket,
    end: threading.Event,
    on_ready: Callable[[], None],
    *,
    cancels_handlers: bool = False,
) -> None:
    async def main() -> None:
        runner = web.AppRunner(application, access_log=None, handler_cancellation=cancels_handlers)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            on_ready()
            await _ended(end, asyncio.sleep)
        finally:
            await runner.cleanup()

    asyncio.run(main())


async def _ended(end: threading.Event, sleep: Callable[[float], Awaitable[None]]) -> None:
    while not end.is_set():
        await sleep(CLUSTER_ROUND_INTERVAL)


SERVERS: Final[Mapping[str, Serve]] = {
    "uvicorn": _by_uvicorn,
    "hypercorn on asyncio": _by_hypercorn(_on_asyncio, asyncio.sleep),
    "hypercorn on trio": _by_hypercorn(_on_trio, trio.sleep),
    "aiohttp": _by_aiohttp,
}
CANCELS_HANDLERS: Final = "aiohttp, which cancels the handlers of clients that leave"


@contextmanager
def served(by: str, application: Any) -> Iterator[str]:
    """The address of the application. Raises what ends its server too early."""
    serve_by = partial(_by_aiohttp, cancels_handlers=True) if by == CANCELS_HANDLERS else SERVERS[by]
    end, ready, failures = threading.Event(), threading.Event(), list[BaseException]()

    def serve() -> None:
        try:
            serve_by(application, listener, end, ready.set)
        except BaseException as failure:  # noqa: BLE001  # raised below, in the test's thread
            failures.append(failure)
        finally:
            ready.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            assert ready.wait(PATIENCE), "it hangs"
            if not (failures or not thread.is_alive()):
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            end.set()
            thread.join(PATIENCE)
    for failure in failures:
        raise failure


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def counted(url: str, what: str) -> int:
    """How often the service of tests at this address was asked for something."""
    count: int = httpx.get(f"{url}/count?{what}", **PATIENT).json()["count"]
    return count
