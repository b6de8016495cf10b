"""The provider that the conformance suite calls hosts with, served over HTTP on loopback.

    with served_provider() as provider:
        await check_host(host, provider.checks)

Open the host within the block: meanwhile the environment names a proxy that does not exist, which hosts must ignore.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from pathlib import Path
from typing import Final, TypeAlias

from attrs import frozen

from cloudid_core.effects import HttpRequest
from cloudid_core.testing import Calls, Check, provider_checks, scripted_provider, served_provider_checks
from cloudid_core.testing.conformance import Scripted

from .provider_simulator import make_context

__all__ = ["ServedProvider", "served_provider"]

Provider: TypeAlias = Callable[[HttpRequest], Scripted]
LOOPBACK: Final = "127.0.0.1"
POLL_SECONDS: Final = 0.02
TRICKLE_SECONDS: Final = 0.05
PROXIES: Final = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")


@frozen
class ServedProvider:
    """Describes a provider that answers over HTTP."""

    url: str
    closed_url: str
    """Nothing listens there."""
    untrusted_url: str
    """It has a certificate that no client trusts."""
    requests: Counter[str]
    """How many requests have arrived, by method."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """Return all checks of calls to a provider, for `check_host`."""
        calls = Calls(self.url, self.requests.__getitem__)
        return (*provider_checks(self.url, self.closed_url), *served_provider_checks(calls, self.untrusted_url))


@contextmanager
def served_provider(provider: Provider = scripted_provider, *, names_proxy: bool = True) -> Iterator[ServedProvider]:
    """Serve a provider until the block ends.

    `names_proxy`: the environment names a proxy that does not exist. Clients other than hosts may use it.
    """
    requests: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        _served(provider, requests) as url,
        _served(provider, Counter(), Path(folder) / "certificate.pem") as untrusted_url,
        socket.socket() as closed,
    ):
        closed.bind((LOOPBACK, 0))  # taken, but nothing listens
        closed_url = f"http://{LOOPBACK}:{closed.getsockname()[1]}"
        with _proxy(closed_url) if names_proxy else nullcontext():
            yield ServedProvider(url, closed_url, untrusted_url, requests)


@contextmanager
def _proxy(url: str) -> Iterator[None]:
    """Let the environment name a proxy, for loopback too."""
    names = {name: os.environ.get(name) for name in (*PROXIES, "no_proxy", "NO_PROXY")}
    os.environ.update(dict.fromkeys(PROXIES, url))
    for name in ("no_proxy", "NO_PROXY"):
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name, value in names.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _Server(ThreadingHTTPServer):
    request_queue_size = 512  # with the usual 5, the kernel drops connections that come at once
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore clients that leave, or do not trust the certificate."""


@contextmanager
def _served(provider: Provider, requests: Counter[str], certificate: Path | None = None) -> Iterator[str]:
    closing = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            requests[self.command] += 1
            url = f"http://{self.headers['host']}{self.path}"
            scripted = provider(HttpRequest(self.command, url, dict(self.headers.items()), body))
            if not scripted.trickles:
                closing.wait(None if scripted.delay == inf else scripted.delay)
            self.close_connection = scripted.drop or closing.is_set()
            if self.close_connection:
                return
            self.send_response_only(scripted.response.status)
            self.send_header("date", self.date_time_string())
            for name, value in scripted.response.headers.items():
                self.send_header(name, value)
            length = 1 << 20 if scripted.trickles else len(scripted.response.body)
            self.send_header("content-length", str(length))
            self.end_headers()
            self.wfile.write(scripted.response.body)
            while scripted.trickles and not closing.wait(TRICKLE_SECONDS):
                self.wfile.write(b".")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                self.close_connection = True

    server = _Server((LOOPBACK, 0), Handler)
    if certificate is not None:
        context = make_context(LOOPBACK, certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if certificate else 'http'}://{LOOPBACK}:{server.server_port}"
    finally:
        closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
