"""Serving on trio: listen, answer, and go in good order."""

from __future__ import annotations

import signal
from functools import partial
from typing import TypeVar

import trio

from cloudid_core.effects import Program
from cloudid_core.run import run

from ..common import wire
from ..common.app import Front
from ..common.bootstrap import Setup
from ..common.logs import EventLog, describe_error
from ..common.platform_identity import Platform
from ..stores import Store
from .connection import Connection
from .host import open_host

T = TypeVar("T")


def perform(program: Program[T], store: Store) -> T:
    """Run one program over a store."""

    async def main() -> T:
        async with open_host(store, Platform()) as host:
            return await run(program, host)

    return trio.run(main)


def serve(setup: Setup) -> None:
    """Serve until SIGTERM or SIGINT. A second one ends the drain at once; SIGHUP reloads."""
    trio.run(_serve, setup)


async def _serve(setup: Setup) -> None:
    log = setup.open_log()
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with open_host(setup.store, setup.platform, setup.proxies) as host:
            host.sinks.append(EventLog(log))
            front = Front(await run(setup.open(), host), host, log, setup.body_limit, setup.trusted_proxies)
            tls = setup.tls()
            address, port = setup.server.address
            listeners = await trio.open_tcp_listeners(port, host=address)
            idle: set[trio.CancelScope] = set()

            async def handle(stream: trio.SocketStream) -> None:
                secure = trio.SSLStream(stream, tls, server_side=True, https_compatible=True) if tls else stream
                connection = Connection(secure, front, setup.server, idle)
                try:
                    if len(connections.child_tasks) > setup.server.connection_limit:
                        await connection.refuse(wire.TOO_MANY_CONNECTIONS)
                    else:
                        await connection.serve()
                except Exception as bug:  # noqa: BLE001  # one connection must not end the others
                    log.error("connection failed", **describe_error(bug))

            async def wait_to_stop() -> None:
                while await anext(signals) == signal.SIGHUP:
                    setup.reload.run(log)

            async def end_drain() -> None:
                await wait_to_stop()
                connections.cancel_scope.cancel()

            async with trio.open_nursery() as watching:
                async with trio.open_nursery() as connections:
                    async with trio.open_nursery() as accepting:
                        accepting.start_soon(
                            partial(trio.serve_listeners, handle, listeners, handler_nursery=connections)
                        )
                        setup.announce(*listeners[0].socket.getsockname()[:2])
                        await wait_to_stop()
                        accepting.cancel_scope.cancel()
                    log.info("draining", connections=len(connections.child_tasks))
                    front.is_draining = True
                    watching.start_soon(end_drain)
                    for scope in tuple(idle):
                        scope.cancel()
                    connections.cancel_scope.deadline = trio.current_time() + setup.server.drain
                watching.cancel_scope.cancel()
            await front.finish()
