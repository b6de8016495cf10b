"""An address of their own for metrics: no token, nothing else, few clients, each for a short time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import httpx
import pytest
from attrs import frozen

from cloudid_servers.host.metrics_listener import HEAD_LIMIT, MOST_CLIENTS
from cloudid_servers.settings.settings import SettingsError, read_settings
from cloudid_servers.stores.postgres.temporary import free_port
from tests.servers.running import SERVERS, Client, Running, body, initialise, status
from tests.waiting import PATIENT

SETTINGS: Final = """
[server]
listen = "127.0.0.1:0"
metrics_listen = "127.0.0.1:{port}"
store = "store.sqlite"
key_file = "key"
"""


@frozen
class Served:
    url: str
    port: int

    def get(self, path: str, method: str = "GET", **headers: str) -> httpx.Response:
        return httpx.request(method, f"http://127.0.0.1:{self.port}{path}", headers=headers, **PATIENT)


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder, port = tmp_path_factory.mktemp("served"), free_port()
    settings = folder / "cloudid.toml"
    settings.write_text(SETTINGS.format(port=port))
    initialise(request.param, settings)
    with Running(f"cloudid_servers.{request.param}", "--settings", str(settings)) as running:
        yield Served(running.url, port)
        assert running.stop()[0] == 0


def test_it_answers_without_a_token(server: Served) -> None:
    for path in ("/metrics", "/v1/sys/metrics", "/metrics?x=y"):
        reply = server.get(path)
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert "\ncloudid_can_serve 1.0\n" in reply.text
    assert server.get("/metrics", accept="application/json").json()["Gauges"]
    assert server.get("/metrics?format=json").json()["Gauges"]
    head = server.get("/metrics", "HEAD")
    assert (head.status_code, head.content) == (200, b"")


def test_it_answers_nothing_else(server: Served) -> None:
    for path in ("/", "/v1/sys/health", "/v1/sys/policies/acl", "/metrics/", "/v1/auth/cloud/login"):
        assert server.get(path).status_code == 404
    assert server.get("/metrics", "POST").status_code == 405
    health = httpx.get(f"{server.url}/v1/sys/metrics", **PATIENT)
    assert health.status_code == 403, "the other address needs a token"


@pytest.mark.parametrize("data", [b"nonsense\r\n\r\n", b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * HEAD_LIMIT])
def test_what_is_no_request_is_told_so(server: Served, data: bytes) -> None:
    with Client(server.port) as client:
        answer = client.ask(data[: 2 * HEAD_LIMIT])
        assert 400 <= status(answer) < 500
        assert body(answer) == b""
        assert client.is_closed()


@pytest.mark.parametrize("version", [b"0.9", b"2.0", b"9.9"])
def test_another_version_of_http_is_not_supported(server: Served, version: bytes) -> None:
    with Client(server.port) as client:
        answer = client.ask(b"GET /metrics HTTP/%b\r\nHost: a\r\n\r\n" % version)
        assert status(answer) == 505
        assert body(answer) == b""
        assert client.is_closed()


@pytest.mark.parametrize("said", [b"", b"GET /metrics HTTP/1.1\r\n"])
@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2"])
def test_clients_that_do_not_ask_make_room_for_others(server: Served, said: bytes, address: str) -> None:
    """Whether these come from the same address or not."""
    silent = [Client(server.port) for _ in range(2 * MOST_CLIENTS)]
    for client in silent:
        with suppress(ConnectionError):  # it has made room already
            client.send(said)
    with httpx.Client(transport=httpx.HTTPTransport(local_address=address), **PATIENT) as scraper:
        for _ in range(3):
            assert scraper.get(f"http://127.0.0.1:{server.port}/metrics").status_code == 200
    assert httpx.get(f"{server.url}/v1/sys/health", **PATIENT).status_code == 200
    for client in silent:
        client.socket.close()


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is not HOST:PORT"):
        read_settings({"server": {"metrics_listen": "somewhere"}})
