"""A simulated cloud whose families of services each have an address of their own, and can each be in trouble."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, cast
from urllib.parse import quote, urlsplit

from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.provider_simulator.server import Running as RunningSimulator
from tests.waiting import PATIENCE

HANGS: Final = "hangs"
THROTTLES: Final = "throttles"
ANSWERS_HALVES: Final = "answers halves"
TROUBLES: Final = (HANGS, THROTTLES, ANSWERS_HALVES)

RETRY_AFTER: Final = 120
"""Seconds that a throttled caller is asked to wait."""
LONGEST: Final = 2 * PATIENCE
"""Seconds for which a request hangs at the most."""
UNCOPIED: Final = ("connection", "content-length", "transfer-encoding")


class FreshObject(ThreadingHTTPServer):
    """Passes requests on to the simulator, unless it is in trouble."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, simulator: str) -> None:
        self.simulator = urlsplit(simulator)
        self.aliases: tuple[str, ...] = ()
        """Addresses that requests may name instead of the one that the simulator knows as its own, the last one."""
        self._trouble = ""
        self.is_over = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def trouble(self) -> str:
        return self._trouble

    def in_its_words(self, body: bytes) -> bytes:
        """The body of a request with the address that the simulator knows as its own."""
        for alias in self.aliases:
            for shown in (str, quote):
                body = body.replace(shown(alias).encode(), shown(self.aliases[-1]).encode())
        return body

    @contextmanager
    def in_trouble(self, trouble: str) -> Iterator[None]:
        """In trouble for as long as the block lasts; then what hangs is cut off."""
        self.is_over.clear()
        self._trouble = trouble
        try:
            yield
        finally:
            self._trouble = ""
            self.is_over.set()

    def close(self) -> None:
        self.is_over.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def setup(self) -> None:
        super().setup()
        self._family = cast(FreshObject, self.server)
        self._simulator = HTTPConnection(self._family.simulator.hostname or "", self._family.simulator.port)

    def finish(self) -> None:
        self._simulator.close()
        super().finish()

    def exchange(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        match self._family.trouble:
            case "hangs":
                self._family.is_over.wait(LONGEST)
                self.close_connection = True
            case "throttles":
                self._answer(429, {"retry-after": str(RETRY_AFTER)}, b"{}")
            case trouble:
                headers = {name: value for name, value in self.headers.items() if name.lower() not in UNCOPIED}
                self._simulator.request(self.command, self.path, self._family.in_its_words(body), headers)
                answer = self._simulator.getresponse()
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in UNCOPIED}
                self._answer(answer.status, kept, answer.read(), half=trouble == ANSWERS_HALVES)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = exchange

    def _answer(self, status: int, headers: dict[str, str], body: bytes, *, half: bool = False) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if half:
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
        """Requests are not logged."""


class TroubledCloud:
    """The three families, and the simulator behind them."""

    def __init__(self, running: RunningSimulator) -> None:
        self.simulator = running.url
        self.families = {name: FreshObject(self.simulator) for name in ("graph", "arm", "login")}
        for family in self.families.values():
            family.aliases = tuple(f"127.0.0.1:{one.server_address[1]}" for one in self.families.values())
        running.simulator.base_url = self.families["login"].url  # which its documents name

    @property
    def settings(self) -> str:
        """The table of a settings file that has a server use them."""
        url = {name: family.url for name, family in self.families.items()}
        return (
            f'[clouds.CloudPublicCloud]\nlogin = "{url["login"]}/login"\n'
            f'resource_manager = "{url["arm"]}/arm"\ndirectory = "{url["graph"]}/graph"\n'
        )


@contextmanager
def troubled_cloud() -> Iterator[TroubledCloud]:
    with ExitStack() as stack:
        cloud = TroubledCloud(stack.enter_context(start(Simulator())))
        for family in cloud.families.values():
            stack.callback(family.close)
        yield cloud
