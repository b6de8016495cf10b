"""Serving on trio: listen, answer, and go in good order."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from cloudid_core.run import run

from ..common.app import App
from ..common.bootstrap import Setup
from ..common.host import Host
from ..common.logs import describe_error
from ..common.memory import settle
from ..common.platform_identity import Platform
from ..common.seldom import Seldom
from ..http1.connections import OUT_OF_RESOURCES, affordable
from ..stores import Store
from .connection import Connection, Shared
from .host import open_host
from .streams import Plain, Secure

T = TypeVar("T")
ACCEPT_PAUSE: Final = 0.1
"""Seconds until accepting is tried again when there was no descriptor left."""


def perform(work: Callable[[Host], Awaitable[T]], store: Store) -> T:
    """Do some work on a host over a store."""

    async def main() -> T:
        async with open_host(store, Platform()) as host:
            return await work(host)

    return trio.run(main)


def serve(setup: Setup) -> None:
    """Serve until SIGTERM or SIGINT. A second one ends the drain at once; SIGHUP reloads."""
    trio.run(_serve, setup)


async def _serve(setup: Setup) -> None:
    log, log_event = setup.open_log()
    warn_of_accepting = Seldom(log.warning)
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with open_host(setup.store, setup.platform, setup.proxies) as host:
            host.report = log.error
            host.sinks.append(log_event)
            setup.connect_audit(host.audit, log)
            host.read_budget = setup.read_budget
            listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(bound)) for bound in setup.listen()]
            service = await run(setup.open(setup.url(*listeners[0].socket.getsockname()[:2])), host)
            app = App(service, host, log, setup.body_limit, setup.trusted_proxies)
            tls = setup.tls()
            shared = Shared(app, setup.server, affordable(setup.server.connection_limit, log))

            async def accept(listener: trio.SocketListener) -> None:
                while True:
                    try:
                        stream = await listener.accept()
                    except OSError as error:
                        if error.errno not in OUT_OF_RESOURCES:
                            raise
                        warn_of_accepting("connections cannot be accepted", **describe_error(error))
                        await trio.sleep(ACCEPT_PAUSE)
                    else:
                        serving.start_soon(handle, stream)

            async def handle(stream: trio.SocketStream) -> None:
                connection = Connection(Secure(stream, tls) if tls else Plain(stream), shared)
                try:
                    if shared.connections.admit(connection):
                        await connection.serve()
                    else:
                        await connection.turn_away()
                except Exception as bug:  # noqa: BLE001  # one connection must not end the others
                    log.error("connection failed", **describe_error(bug))

            async def wait_to_stop() -> None:
                while await anext(signals) == signal.SIGHUP:
                    setup.reload.run(log)

            async def end_drain() -> None:
                await wait_to_stop()
                serving.cancel_scope.cancel()

            async with trio.open_nursery() as watching:
                watching.start_soon(shared.end_late)
                async with trio.open_nursery() as serving:
                    async with trio.open_nursery() as accepting:
                        for listener in listeners:
                            accepting.start_soon(accept, listener)
                        settle()
                        setup.announce(*listeners[0].socket.getsockname()[:2])
                        await wait_to_stop()
                        accepting.cancel_scope.cancel()
                    for listener in listeners:
                        await listener.aclose()
                    log.info("draining", connections=len(shared.connections))
                    app.is_draining = True
                    watching.start_soon(end_drain)
                    shared.connections.end_idle()
                    serving.cancel_scope.deadline = trio.current_time() + setup.server.drain
                watching.cancel_scope.cancel()
            await app.finish()
