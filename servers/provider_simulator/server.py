"""Serves a simulator over HTTP, in threads, with the standard library."""

from __future__ import annotations

import re
import socket
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Final, cast

from cloudid_core.effects import HttpRequest

from .engine.requests import Answer
from .simulator import Simulator

MAX_BODY: Final = 1 << 20
IDLE_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.05


class Server(ThreadingHTTPServer):
    """One thread for each connection; the simulator handles one request at a time."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, simulator: Simulator, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.simulator = simulator
        self.closing = threading.Event()
        self.connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__((host, port), Handler)

    def server_bind(self) -> None:
        """Bind without looking up the host's name, unlike the standard library."""
        TCPServer.server_bind(self)
        self.server_port = self.server_address[1]

    def answer(self, request: HttpRequest) -> Answer:
        with self._lock:
            return self.simulator.handle(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # head and body leave in one packet
    timeout = IDLE_SECONDS

    @property
    def _server(self) -> Server:
        return cast(Server, self.server)

    def setup(self) -> None:
        self._server.connections.add(self.request)
        super().setup()

    def finish(self) -> None:
        self._server.connections.discard(self.request)
        super().finish()

    def exchange(self) -> None:
        """Answer one request."""
        body = self._read_body()
        if body is None:
            return
        url = self._server.simulator.base_url + self.path
        answer = self._server.answer(HttpRequest(self.command, url, dict(self.headers.items()), body))
        if answer.delay:
            self._server.closing.wait(answer.delay)
        if answer.drop:
            self.close_connection = True
            return
        self.send_response_only(answer.response.status)
        for name, value in answer.response.headers.items():
            self.send_header(name, value)
        if answer.response.status != 204:
            self.send_header("content-length", str(len(answer.response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.response.body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = exchange

    def _read_body(self) -> bytes | None:
        """The body; `None` if it is refused, which ends the connection."""
        length = self.headers.get("content-length", "0")
        if "transfer-encoding" in self.headers:
            self.send_error(411)
        elif not self.path.startswith("/") or not re.fullmatch("[0-9]{1,10}", length):
            self.send_error(400)
        elif int(length) > MAX_BODY:
            self.send_error(413)
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):
                return body
        self.close_connection = True
        return None

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the standard library's
        """Requests are not logged."""


class Running:
    """A simulator that is being served. Closing it breaks all connections."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), name="provider simulator")
        self._thread.daemon = True
        self._thread.start()

    @property
    def simulator(self) -> Simulator:
        return self._server.simulator

    @property
    def url(self) -> str:
        return self._server.simulator.base_url

    def close(self) -> None:
        self._server.closing.set()
        self._server.shutdown()
        self._thread.join()
        for connection in tuple(self._server.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def start(simulator: Simulator, host: str = "127.0.0.1", port: int = 0) -> Running:
    """Serve at the address (port 0: any that is free), which becomes the simulator's `base_url`. `OSError` if taken."""
    server = Server(simulator, host, port)
    shown = f"[{host}]" if ":" in host else host
    simulator.base_url = f"http://{shown}:{server.server_port}"
    return Running(server)
