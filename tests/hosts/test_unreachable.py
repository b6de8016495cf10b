"""Why the provider cannot be reached: both hosts say it in the same words, with the host's name."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from cloudid_core.effects import HttpRequest
from cloudid_core.errors import ProviderUnreachable
from cloudid_servers.host.host import Host
from cloudid_servers.host.proxies import Proxies
from tests.hosts.opened import RUNTIMES, on
from tests.waiting import PATIENCE

LOGIN = "https://login.provider.test/tenant"
NO_NAME = "no-such-host.invalid"
SILENT = None


@contextmanager
def answering(answer: bytes | None) -> Iterator[int]:
    """The port of a server that gives this answer to whatever it reads; `SILENT`: it gives none."""
    is_over = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(4096)
                    if answer is SILENT:
                        is_over.wait(PATIENCE)
                    else:
                        connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            is_over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that nothing listens on, and that nothing else gets meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def why(runtime: str, url: str, proxy: str = "", seconds: float = PATIENCE) -> str:
    async def scenario(host: Host) -> str:
        with pytest.raises(ProviderUnreachable) as failure:
            await host.call_provider(HttpRequest("GET", url), seconds)
        return str(failure.value)

    return on(runtime, scenario, proxies=Proxies({"https": proxy}) if proxy else Proxies())


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_name_that_is_not_known_is_named(runtime: str) -> None:
    assert why(runtime, f"https://{NO_NAME}/") == f"{NO_NAME}: the name cannot be resolved"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_closed_port_refuses_the_connection(runtime: str) -> None:
    with closed_port() as port:
        assert why(runtime, f"https://127.0.0.1:{port}/") == "127.0.0.1: connection refused"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_server_that_does_not_answer_times_out(runtime: str) -> None:
    with answering(SILENT) as port:
        assert why(runtime, f"http://127.0.0.1:{port}/", seconds=0.5) == "127.0.0.1: timed out"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_failed_tls_handshake_has_the_reason_of_openssl(runtime: str) -> None:
    with answering(b"this is not TLS\r\n\r\n") as port:
        assert why(runtime, f"https://127.0.0.1:{port}/") == "127.0.0.1: TLS: wrong version number"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_proxy_that_gives_no_tunnel_is_named_with_its_status(runtime: str) -> None:
    with answering(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n") as port:
        shown = why(runtime, LOGIN, f"http://user:hunter2@127.0.0.1:{port}")
    assert shown == "login.provider.test: the proxy 127.0.0.1 answered 407"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_proxy_that_cannot_be_reached_is_named(runtime: str) -> None:
    with closed_port() as port:
        shown = why(runtime, LOGIN, f"http://user:hunter2@127.0.0.1:{port}")
    assert shown == "login.provider.test: proxy 127.0.0.1: connection refused"
    shown = why(runtime, LOGIN, f"http://user:hunter2@{NO_NAME}:3128")
    assert shown == f"login.provider.test: proxy {NO_NAME}: the name cannot be resolved"


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("answer", [b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"])
def test_an_answer_that_is_cut_off_or_not_http_is_named_as_that(runtime: str, answer: bytes) -> None:
    with answering(answer) as port:
        shown = why(runtime, f"http://127.0.0.1:{port}/")
    assert shown == "127.0.0.1: the connection was closed, or the response is not HTTP"
