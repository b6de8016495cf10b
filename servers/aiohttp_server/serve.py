"""Serving on asyncio: listen, answer, and go in good order."""

from __future__ import annotations

import asyncio
import signal
from typing import TypeVar

from aiohttp import web

from cloudid_core.effects import Program
from cloudid_core.run import run

from ..common.app import Front
from ..common.bootstrap import Setup
from ..common.logs import EventLog, adopt_libraries, open_log
from ..common.platform_identity import Platform
from ..stores import Store
from .host import open_host
from .protocol import Server

T = TypeVar("T")


def perform(program: Program[T], store: Store) -> T:
    """Run one program over a store."""

    async def main() -> T:
        async with open_host(store, Platform()) as host:
            return await run(program, host)

    return asyncio.run(main())


def serve(setup: Setup) -> None:
    """Until SIGTERM or SIGINT."""
    asyncio.run(_serve(setup))


async def _serve(setup: Setup) -> None:
    log = open_log(setup.server.log_level)
    adopt_libraries(log)
    async with open_host(setup.store, setup.platform) as host:
        host.sinks.append(EventLog(log))
        front = Front(await run(setup.open(), host), host, log, setup.body_limit, setup.trusted_proxies)
        server = Server(front, setup.server)
        runner = web.ServerRunner(server, shutdown_timeout=setup.server.drain)
        await runner.setup()
        try:
            address, port = setup.server.address
            await web.TCPSite(runner, address, port, ssl_context=setup.tls()).start()
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            setup.tell_ready(*runner.addresses[0][:2])
            await stop.wait()
            log.info("draining", connections=len(server.connections))
            front.is_draining = True
        finally:
            await runner.cleanup()
