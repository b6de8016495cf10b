"""Serves a simulator over HTTP, in threads, with the standard library."""

from __future__ import annotations

import re
import socket
import sys
import threading
import zlib
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, Final

from cloudid_core.effects import HttpRequest, HttpResponse

from .. import web
from .certificate import make_context
from .engine.requests import Answer
from .simulator import Simulator
from .world.world import fetch_nothing

MAX_BODY: Final = 1 << 20
MAX_LINE: Final = 1 << 12
GZIP: Final = 16 + zlib.MAX_WBITS
IDLE_SECONDS: Final = 120.0
FETCH_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.05


def fetch_over_http(url: str) -> HttpResponse:
    """GET a document of an issuer. `OSError` when there is no answer, or none that is a document."""
    try:
        return web.send(HttpRequest("GET", url), FETCH_SECONDS, through_proxies=False)
    except web.Unreachable as failure:
        raise OSError(str(failure)) from None


class Running(ThreadingHTTPServer):
    """A simulator that is being served: one thread for each connection, one request at a time.

    Closing it breaks all connections. `certificate` is the file that clients have to trust; none without TLS.
    """

    daemon_threads = True
    request_queue_size = 128
    server_bind = TCPServer.server_bind  # which does not look up the host's name

    def __init__(self, simulator: Simulator, host: str, port: int, certificate: Path | None) -> None:
        self.simulator = simulator
        self.certificate = certificate
        self.closing = threading.Event()
        self.connections: set[socket.socket] = set()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._tls = make_context(host, certificate) if certificate else None
        self._lock = threading.Lock()
        super().__init__((host, port), Handler)
        shown = f"[{host}]" if ":" in host else host
        self.url = simulator.base_url = f"{'https' if certificate else 'http'}://{shown}:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, args=(POLL_SECONDS,), name="provider simulator")
        self._thread.daemon = True
        self._thread.start()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection, after its TLS handshake."""
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(IDLE_SECONDS)
        with self._tls.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def answer(self, request: HttpRequest) -> Answer:
        """The answer to a request, which may come another way."""
        with self._lock:
            return self.simulator.handle(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def close(self) -> None:
        self.closing.set()
        self.shutdown()
        self._thread.join()
        for connection in tuple(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def __exit__(self, *error: object) -> None:
        self.close()


class BadBody(Exception):
    """A body that is answered with a status of an error and the end of the connection."""


def _decoded(body: bytes, encoding: str) -> bytes:
    """The body without its content encoding; the vendor's libraries compress with gzip."""
    if encoding == "identity":
        return body
    if encoding != "gzip":
        raise BadBody(415)
    try:
        plain = zlib.decompressobj(GZIP).decompress(body, MAX_BODY + 1)
    except zlib.error:
        raise BadBody(400) from None
    if len(plain) > MAX_BODY:
        raise BadBody(413)
    return plain


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # head and body leave in one packet
    timeout = IDLE_SECONDS

    server: Running

    def setup(self) -> None:
        self.server.connections.add(self.request)
        super().setup()

    def finish(self) -> None:
        self.server.connections.discard(self.request)
        super().finish()

    def exchange(self) -> None:
        body = self._read_body()
        if body is None:
            return
        url = self.server.simulator.base_url + self.path
        answer = self.server.answer(HttpRequest(self.command, url, dict(self.headers.items()), body))
        if answer.delay:
            self.server.closing.wait(answer.delay)
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
        try:
            if not self.path.startswith("/"):
                raise BadBody(400)
            if "transfer-encoding" in self.headers:
                body = self._read_chunks()
            else:
                length = self.headers.get("content-length", "0")
                if not re.fullmatch("[0-9]{1,10}", length):
                    raise BadBody(400)
                body = self._read_exactly(int(length))
            return _decoded(body, self.headers.get("content-encoding", "identity").lower())
        except BadBody as error:
            self.send_error(*error.args)
        self.close_connection = True
        return None

    def _read_chunks(self) -> bytes:
        """A chunked body (RFC 9112, section 7.1). Chunk extensions and trailers are ignored."""
        if self.headers["transfer-encoding"].lower() != "chunked" or "content-length" in self.headers:
            raise BadBody(400)
        body = b""
        while match := re.match(rb"([0-9a-fA-F]{1,8})[ \t]*(;|$)", self._read_line()):
            size = int(match[1], 16)
            if not size:
                break
            body += self._read_exactly(size, MAX_BODY - len(body))
            if self._read_line():
                raise BadBody(400)
        else:
            raise BadBody(400)
        while self._read_line():
            pass
        return body

    def _read_line(self) -> bytes:
        line = self.rfile.readline(MAX_LINE)
        if not line.endswith(b"\r\n"):
            raise BadBody(400)
        return line[:-2]

    def _read_exactly(self, count: int, most: int = MAX_BODY) -> bytes:
        if count > most:
            raise BadBody(413)
        read = self.rfile.read(count)
        if len(read) != count:
            raise BadBody(400)
        return read

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the standard library's
        """Requests are not logged."""


def start(simulator: Simulator, host: str = "127.0.0.1", port: int = 0, certificate: Path | None = None) -> Running:
    """Serve at the address (port 0: any free port), which becomes the simulator's `base_url`. `OSError` if taken.

    With the path of a `certificate`, serve over TLS with a new certificate, which is written there.
    """
    if simulator.world.fetch is fetch_nothing:
        simulator.world.fetch = fetch_over_http
    return Running(simulator, host, port, certificate)
