"""Serving on asyncio: listen, answer, and go in good order."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, Final

from aiohttp import web
from structlog.typing import FilteringBoundLogger

from cloudid_core.run import run

from ..command import Server, Setup
from ..http1 import OUT_OF_RESOURCES, affordable
from ..logs import describe_error
from ..machine import settle
from ..processes import ACCEPTED_AT_ONCE, BACKLOG
from ..runtime import Seldom
from . import protocol
from .host import open_host

AT_ONCE: Final = 0.001
"""Seconds; aiohttp takes 0 for no limit."""


def serve(setup: Setup) -> None:
    """Serve until SIGTERM or SIGINT. A second one ends the drain at once; SIGHUP reloads."""
    asyncio.run(_serve(setup))


async def _serve(setup: Setup) -> None:
    log, log_event = setup.open_log()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_ExceptionHandler(log))
    stop, end_drain = asyncio.Event(), asyncio.Event()
    async with open_host(setup.store, setup.platform, setup.proxies) as host:
        setup.connect(host, log, log_event)
        listeners = setup.listen()
        service = await run(setup.open(setup.url(*listeners[0].getsockname()[:2])), host)
        app = setup.app(service, host, log)
        limit, tls = affordable(setup.server.connection_limit, log), setup.tls(host, log)
        server = protocol.Server(app, setup.server, limit, tls)
        looking = asyncio.ensure_future(server.shared.end_late(asyncio.sleep))
        setup.serve_metrics(host, service)
        host.measures.gauges.append(server.shared.connections.put_gauges)
        runner = web.ServerRunner(server, shutdown_timeout=setup.server.drain)
        await runner.setup()
        try:
            for listener in listeners:
                # asyncio accepts as many connections in one turn as the backlog that is set
                await web.SockSite(runner, listener, backlog=ACCEPTED_AT_ONCE).start()
                listener.listen(BACKLOG)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, lambda: (end_drain if stop.is_set() else stop).set())
            loop.add_signal_handler(signal.SIGHUP, setup.reload_settings, log)
            settle()
            setup.announce(*runner.addresses[0][:2])
            await stop.wait()
            log.info("draining", connections=len(server.shared.connections))
            app.is_draining = True
            setup.overseer.stopping()
            for site in runner.sites:
                await site.stop()
            server.shared.connections.end_idle()
        finally:
            draining, ending = asyncio.ensure_future(runner.cleanup()), asyncio.ensure_future(end_drain.wait())
            await asyncio.wait((draining, ending), return_when=asyncio.FIRST_COMPLETED)
            if not draining.done():
                draining.cancel()
                await asyncio.wait((draining,))
                await server.shutdown(AT_ONCE)
            ending.cancel()
            looking.cancel()
            await app.finish()


class _ExceptionHandler:
    """Logs what fails in the event loop itself: above all, to accept a connection without a descriptor left.

    asyncio then tries again a hundred times at once, and once more when the server is closed.
    """

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._warn_of_accepting = Seldom(log.warning)
        self._report = Seldom(log.error)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        facts = describe_error(error) if isinstance(error, BaseException) else {}
        if isinstance(error, OSError) and error.errno in OUT_OF_RESOURCES:
            self._warn_of_accepting("connections cannot be accepted", **facts)
        else:
            self._report("event loop failed", **facts)


SERVER: Final = Server(serve, open_host, lambda main: asyncio.run(main()))
