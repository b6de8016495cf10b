"""Serving on trio: listen, answer, and go in good order."""

from __future__ import annotations

import signal
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from typing import Final

import trio
from structlog.typing import FilteringBoundLogger

from cloudid_core.run import run

from ..command import Server, Setup
from ..host import App, Shared
from ..http1 import OUT_OF_RESOURCES, affordable
from ..logs import describe_error
from ..machine import settle
from ..processes import ACCEPTED_AT_ONCE
from ..runtime import Seldom
from .connection import Connection
from .host import open_host
from .streams import Plain, Secure

ACCEPT_PAUSE: Final = 0.1
"""Seconds until accepting is tried again when there was no descriptor left."""


def serve(setup: Setup) -> None:
    """Serve until SIGTERM or SIGINT. A second one ends the drain at once; SIGHUP reloads."""
    trio.run(_serve, setup)


async def _serve(setup: Setup) -> None:
    log, log_event = setup.open_log()
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with open_host(setup.store, setup.platform, setup.proxies) as host:
            setup.connect(host, log, log_event)
            listeners = setup.listen()
            service = await run(setup.open(setup.url(*listeners[0].getsockname()[:2])), host)
            app = setup.app(service, host, log)
            setup.serve_metrics(host, service)
            server = _Server(setup, app, listeners, log, signals, setup.tls(host, log))
            host.measures.gauges.append(server.shared.connections.put_gauges)
            await server.run()
            await app.finish()


class _Server:
    """Accepts connections and serves them, each in a task of its own, until a signal says to stop."""

    def __init__(
        self,
        setup: Setup,
        app: App,
        listeners: Sequence[socket.socket],
        log: FilteringBoundLogger,
        signals: AsyncIterator[int],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._setup = setup
        self._app = app
        self._listeners = listeners
        self._log = log
        self._signals = signals
        self._tls = tls
        self.shared: Shared[Connection] = Shared(app, setup.server, affordable(setup.server.connection_limit, log))
        self._warn_of_accepting = Seldom(log.warning)

    async def run(self) -> None:
        async with trio.open_nursery() as watching:
            watching.start_soon(self.shared.end_late, trio.sleep)
            async with trio.open_nursery() as serving:
                async with trio.open_nursery() as accepting:
                    for listener in self._listeners:
                        accepting.start_soon(self._accept, listener, serving)
                    settle()
                    self._setup.announce(*self._listeners[0].getsockname()[:2])
                    await self._wait_to_stop()
                    accepting.cancel_scope.cancel()
                for listener in self._listeners:
                    listener.close()
                self._log.info("draining", connections=len(self.shared.connections))
                self._app.is_draining = True
                self._setup.overseer.stopping()
                watching.start_soon(self._end_drain, serving)
                self.shared.connections.end_idle()
                serving.cancel_scope.deadline = trio.current_time() + self._setup.server.drain
            watching.cancel_scope.cancel()

    async def _accept(self, listener: socket.socket, serving: trio.Nursery) -> None:
        while True:
            await trio.lowlevel.wait_readable(listener)
            try:
                for _ in range(ACCEPTED_AT_ONCE):
                    accepted, _ = listener.accept()
                    stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
                    serving.start_soon(self._serve_connection, stream)
            except BlockingIOError:  # no more are waiting
                pass
            except OSError as error:
                if error.errno not in OUT_OF_RESOURCES:
                    continue  # the client has gone again
                self._warn_of_accepting("connections cannot be accepted", **describe_error(error))
                await trio.sleep(ACCEPT_PAUSE)

    async def _serve_connection(self, stream: trio.SocketStream) -> None:
        connection = Connection(Secure(stream, self._tls) if self._tls else Plain(stream), self.shared)
        try:
            await connection.serve()
        except Exception as bug:  # noqa: BLE001  # one connection must not end the others
            self._log.error("connection failed", **describe_error(bug))

    async def _wait_to_stop(self) -> None:
        while await anext(self._signals) == signal.SIGHUP:
            self._setup.reload_settings(self._log)

    async def _end_drain(self, serving: trio.Nursery) -> None:
        """Leave what is still under way when a second signal to stop comes."""
        await self._wait_to_stop()
        serving.cancel_scope.cancel()


SERVER: Final = Server(serve, open_host, trio.run)
