"""Proxies: which calls to the provider go through one, by setting and environment, and that both hosts obey."""

from __future__ import annotations

import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import ProviderUnreachable
from cloudid_core.testing.conformance import Scripted
from cloudid_core.values.secret import Secret
from cloudid_servers.host.host import Host
from cloudid_servers.host.proxies import Proxies
from cloudid_servers.machine.platform_identity import METADATA_ADDRESS, Platform
from cloudid_servers.settings.settings import ServerSettings, SettingsError
from tests.hosts.opened import RUNTIMES, on, serving
from tests.servers.certificates import write_certificate
from tests.waiting import PATIENCE

PROXY = "http://proxy.test:3128"
OTHER = "http://user:hunter2@other.test:8080/"
PROVIDER = "https://login.provider.test/tenant"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def proxies(setting: str = "", platform: Platform | None = None) -> Proxies:
    return Proxies.of(ServerSettings(provider_proxy=Secret(setting)), (platform or Platform()).addresses)


def test_without_setting_and_environment_calls_are_direct() -> None:
    assert proxies().proxy_of(PROVIDER) is None


def test_the_environment_names_a_proxy_for_each_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", PROXY)
    assert proxies().proxy_of(PROVIDER) == PROXY
    assert proxies().proxy_of("http://provider.test/") is None
    monkeypatch.setenv("ALL_PROXY", OTHER)
    assert proxies().proxy_of("http://provider.test/") == OTHER
    assert proxies().proxy_of(PROVIDER) == PROXY


def test_a_setting_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    assert proxies(OTHER).proxy_of(PROVIDER) == OTHER
    assert proxies("direct").proxy_of(PROVIDER) is None


@pytest.mark.parametrize("setting", ["", PROXY])
@pytest.mark.parametrize("no_proxy", ["provider.test", ".provider.test", "a.test, login.provider.test", "*"])
def test_hosts_of_no_proxy_are_called_directly(monkeypatch: pytest.MonkeyPatch, setting: str, no_proxy: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert proxies(setting).proxy_of(PROVIDER) is None
    assert (proxies(setting).proxy_of("https://elsewhere.test/") is None) == (no_proxy == "*")


@pytest.mark.parametrize(
    "address",
    [METADATA_ADDRESS, "http://identity.test:4141", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1"],
)
def test_metadata_and_loopback_addresses_are_called_directly(address: str) -> None:
    platform = Platform(identity_endpoint="http://identity.test:4141/token")
    assert proxies(PROXY, platform).proxy_of(f"{address}/token") is None


@pytest.mark.parametrize(
    "proxy", ["proxy.test", "socks5://proxy.test:1080", "http://proxy.test", "http://a b:1", "http://proxy.test:99999"]
)
def test_a_proxy_that_cannot_be_used_is_an_error_that_does_not_show_it(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    with pytest.raises(SettingsError, match="provider_proxy") as refused:
        proxies(proxy)
    assert proxy not in str(refused.value)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(SettingsError, match="HTTPS_PROXY"):
        proxies()


def test_credentials_of_a_proxy_are_never_printed() -> None:
    assert "hunter2" not in repr((proxies(OTHER), ServerSettings(provider_proxy=Secret(OTHER))))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_hosts_call_the_provider_through_the_proxy_and_the_platform_without(runtime: str) -> None:
    """The proxy sees the whole address of a provider whose name only it could resolve."""
    asked: list[str] = []
    shown: list[str | None] = []

    def proxy(request: HttpRequest) -> Scripted:
        asked.append(request.url)
        shown.append(request.headers.get("Proxy-Authorization"))
        return Scripted(HttpResponse(200, {}, b'{"access_token": "t", "expires_on": "1700000000"}'))

    async def scenario(host: Host) -> None:
        answer = await host.call_provider(HttpRequest("GET", "http://provider.test/path"), 10.0)
        assert answer.status == 200
        await host.read_platform_token("r", "")

    with serving(proxy) as url:
        platform = Platform(url)
        through = Proxies({"http": url.replace("//", "//user:hunter%402@")}, direct_hosts=frozenset({"127.0.0.1"}))
        on(runtime, scenario, platform=platform, proxies=through)
    assert asked[0].endswith("http://provider.test/path")
    assert asked[1].startswith(f"{url}/metadata/")
    assert shown == ["Basic " + b64encode(b"user:hunter@2").decode(), None]


@contextmanager
def tunnel(answer: bytes, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[bytes]]]:
    """The address of a proxy, and what it reads. It answers CONNECT so, and with `tls` it then plays the provider."""
    read: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            read.append(connection.recv(4096))
            connection.sendall(answer)
            if tls is None:
                read.append(connection.recv(4096))
                return
            with tls.wrap_socket(connection, server_side=True) as secure:
                request = b""
                while not request.endswith(b"{}") and (data := secure.recv(4096)):
                    request += data
                read.append(request)
                secure.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", read
        thread.join()


@pytest.mark.parametrize(
    "answer, timeout",
    [(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", PATIENCE), (b"", 1.0)],
    ids=["refuses", "hangs"],
)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_request_that_gets_no_tunnel_was_not_sent(runtime: str, answer: bytes, timeout: float) -> None:
    """It changed nothing, so it may be made again."""

    async def scenario(host: Host) -> None:
        with pytest.raises(ProviderUnreachable) as failure:
            await host.call_provider(HttpRequest("POST", PROVIDER, body=b"{}"), timeout)
        assert not failure.value.sent

    with tunnel(answer) as (proxy, read):
        on(runtime, scenario, proxies=Proxies({"https": proxy}))
    assert read[0].startswith(b"CONNECT login.provider.test:443 HTTP/1.1\r\n")
    assert read[1:] == [b""]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_in_a_tunnel_the_proxy_sees_only_the_name_of_the_provider(
    runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_certificate(tmp_path, "login.provider.test")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", ssl.create_default_context())  # made at import

    async def scenario(host: Host) -> None:
        request = HttpRequest("POST", PROVIDER, {"authorization": "Bearer t"}, b"{}")
        assert (await host.call_provider(request, PATIENCE)).status == 204

    with tunnel(b"HTTP/1.1 200 OK\r\n\r\n", tls) as (proxy, read):
        on(runtime, scenario, proxies=Proxies({"https": proxy.replace("//", "//user:hunter%402@")}))
    asked, inside = read
    assert b64encode(b"user:hunter@2") in asked
    assert b"tenant" not in asked
    assert b"Bearer" not in asked
    assert inside.startswith(b"POST /tenant HTTP/1.1\r\n")
    assert b"hunter" not in inside
    assert b"proxy-authorization" not in inside.lower()
