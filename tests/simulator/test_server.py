"""The simulator over HTTP: in threads, as a program, and for the vendor's identity library."""

from __future__ import annotations

import gzip
import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CredentialUnavailableError, ManagedIdentityCredential

from cloudid_servers.provider_simulator import Running, Simulator, start
from cloudid_servers.provider_simulator.server import fetch_over_http
from tests.waiting import PATIENCE

from .cloud import claims_of

CHUNKED: Final = b"POST /simulator/clock HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"


@pytest.fixture
def running() -> Iterator[Running]:
    with start(Simulator()) as running:
        yield running


@pytest.fixture
def connection(running: Running) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=PATIENCE)
    yield connection
    connection.close()


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: str = "") -> tuple[int, bytes]:
    connection.request(method, path, body)
    response = connection.getresponse()
    return response.status, response.read()


def test_one_connection_serves_many_requests_and_documents_contain_the_address(
    running: Running, connection: http.client.HTTPConnection
) -> None:
    _, body = ask(connection, "GET", "/simulator/world")
    used = connection.sock
    status, document = ask(connection, "GET", f"/login/{json.loads(body)['tenant']}/.well-known/openid-configuration")
    assert status == 200
    assert json.loads(document)["jwks_uri"] == f"{running.url}/login/common/discovery/keys"
    assert ask(connection, "POST", "/simulator/reset") == (204, b"")
    assert ask(connection, "POST", "/simulator/clock", '{"advance": 1}')[0] == 200
    assert connection.sock is used


def test_a_drop_breaks_the_connection(connection: http.client.HTTPConnection) -> None:
    ask(connection, "POST", "/simulator/faults", '[{"action": {"drop": true}, "times": 1}]')
    with pytest.raises(http.client.RemoteDisconnected):
        ask(connection, "GET", "/login/common/discovery/keys")
    assert ask(connection, "GET", "/login/common/discovery/keys")[0] == 200


@pytest.mark.parametrize(
    "head, status",
    [
        (b"POST /simulator/clock HTTP/1.1\r\nhost: x\r\ncontent-length: 1048577\r\n\r\n", b"413"),
        (b"POST /simulator/clock HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n", b"400"),
        (b"POST /simulator/clock HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n", b"400"),
        (CHUNKED + b"content-length: 1\r\n\r\n0\r\n\r\n", b"400"),
        (CHUNKED + b"\r\nx\r\n", b"400"),
        (CHUNKED + b"\r\n2\r\n{}{}\r\n0\r\n\r\n", b"400"),
        (CHUNKED + b"\r\n200000\r\n", b"413"),
        (b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\n{}", b"415"),
        (b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}", b"400"),
        (b"GET [x HTTP/1.1\r\nhost: x\r\n\r\n", b"400"),
        (b"GET //[x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", b"404"),
    ],
)
def test_invalid_requests_are_refused_and_end_the_connection(running: Running, head: bytes, status: bytes) -> None:
    address = urlsplit(running.url)
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as client:
        client.sendall(head)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 " + status)


def test_bodies_may_be_chunked_or_compressed(connection: http.client.HTTPConnection) -> None:
    connection.request("POST", "/simulator/clock", iter([b'{"adv', b'ance": 1}']), encode_chunked=True)
    response = connection.getresponse()
    assert (response.status, "now" in json.loads(response.read())) == (200, True)
    connection.request("POST", "/simulator/clock", gzip.compress(b'{"advance": 1}'), {"content-encoding": "gzip"})
    assert connection.getresponse().status == 200


def test_chunks_may_have_extensions_and_trailers(running: Running) -> None:
    address = urlsplit(running.url)
    body = b'\r\ne;name=value\r\n{"advance": 1}\r\n0\r\nx-trailer: y\r\n\r\n'
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as client:
        client.sendall(CHUNKED + b"connection: close\r\n" + body)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_compressed_body_is_bounded(connection: http.client.HTTPConnection) -> None:
    bomb = gzip.compress(b" " * 2_000_000)
    connection.request("POST", "/simulator/clock", bomb, {"content-encoding": "gzip"})
    assert connection.getresponse().status == 413


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_over_tls_the_certificate_is_a_bundle_that_strict_clients_trust(tmp_path: Path, host: str) -> None:
    certificate = tmp_path / "certificate.pem"
    with start(Simulator(), host, certificate=certificate) as running:
        assert (running.certificate, running.url.startswith(f"https://{host}:")) == (certificate, True)
        context = ssl.create_default_context(cafile=certificate)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        connection = http.client.HTTPSConnection(urlsplit(running.url).netloc, timeout=PATIENCE, context=context)
        status, document = ask(connection, "GET", "/login/common/discovery/instance")
        assert (status, running.url in document.decode()) == (200, True)
        connection.close()
        stranger = http.client.HTTPSConnection(urlsplit(running.url).netloc, timeout=PATIENCE)
        with pytest.raises(ssl.SSLCertVerificationError):
            stranger.connect()
    assert b"PRIVATE" not in certificate.read_bytes()


def test_a_client_that_never_finishes_its_handshake_delays_no_other(tmp_path: Path) -> None:
    with start(Simulator(), certificate=tmp_path / "certificate.pem") as running:
        address = urlsplit(running.url)
        with socket.create_connection((address.hostname, address.port), timeout=PATIENCE):
            context = ssl.create_default_context(cafile=running.certificate)
            connection = http.client.HTTPSConnection(address.netloc, timeout=PATIENCE, context=context)
            assert ask(connection, "GET", "/simulator/world")[0] == 200
            connection.close()


def test_closing_ends_connections_and_delayed_answers() -> None:
    with start(Simulator()) as running:
        address = urlsplit(running.url)
        idle = socket.create_connection((address.hostname, address.port), timeout=PATIENCE)
        waiting = http.client.HTTPConnection(address.netloc, timeout=PATIENCE)
        ask(waiting, "POST", "/simulator/faults", '[{"action": {"delay": 3000}}]')
        waiting.request("GET", "/login/common/discovery/keys")
    assert idle.recv(1) == b""
    idle.close()
    waiting.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port), timeout=PATIENCE)


def test_the_vendors_library_gets_tokens_from_a_machine(
    running: Running, connection: http.client.HTTPConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = json.loads(ask(connection, "GET", "/simulator/world")[1])
    principals = {machine["name"]: machine["principals"] for machine in world["machines"]}
    many = next(identity for identity in world["identities"] if identity["name"] == "many-b")
    for name in ("IDENTITY_ENDPOINT", "IDENTITY_HEADER", "MSI_ENDPOINT", "MSI_SECRET"):
        monkeypatch.delenv(name, raising=False)

    def token(machine: str, client_id: str | None = None, choice: dict[str, str] | None = None) -> str:
        monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"{running.url}/machines/{machine}")
        with ManagedIdentityCredential(client_id=client_id, identity_config=choice) as credential:
            return str(credential.get_token("https://management.azure.com/.default").token)

    assert claims_of(token("web"))["oid"] == principals["web"][0]
    assert claims_of(token("vm-many", client_id=many["client_id"]))["oid"] == many["principal_id"]
    by_id = {"resource_id": many["resource_id"]}
    assert claims_of(token("vm-many", choice=by_id))["oid"] == many["principal_id"]
    with pytest.raises((ClientAuthenticationError, CredentialUnavailableError), match="Identity not found"):
        token("vm-bare")

    shop = next(machine for machine in world["machines"] if machine["name"] == "shop")
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{running.url}/machines/shop/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", shop["platform_secret"])
    assert claims_of(token("as an App Service"))["oid"] == principals["shop"][0]


def program(*options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cloudid_servers.provider_simulator", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_program_prints_its_address_and_ends_without_output() -> None:
    with program("--listen", "127.0.0.1:0", "--seed", "3") as process:
        try:
            assert process.stdout
            ready = process.stdout.readline()
            assert ready.startswith("listening on http://127.0.0.1:")
            connection = http.client.HTTPConnection(urlsplit(ready.split()[-1]).netloc, timeout=PATIENCE)
            assert json.loads(ask(connection, "GET", "/simulator/world")[1])["seed"] == 3
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=PATIENCE) == ("", "")
            assert process.returncode == 0
            connection.close()
        finally:
            process.kill()


def test_the_program_prints_the_path_of_its_certificate() -> None:
    with program("--listen", "127.0.0.1:0", "--tls") as process:
        try:
            assert process.stdout
            certificate = Path(process.stdout.readline().removeprefix("certificate: ").strip())
            url = process.stdout.readline().split()[-1]
            context = ssl.create_default_context(cafile=certificate)
            connection = http.client.HTTPSConnection(urlsplit(url).netloc, timeout=PATIENCE, context=context)
            assert ask(connection, "GET", "/simulator/world")[0] == 200
            connection.close()
            process.send_signal(signal.SIGTERM)
            assert (process.wait(timeout=PATIENCE), certificate.exists()) == (0, False)
        finally:
            process.kill()


def test_the_program_refuses_addresses_that_other_machines_can_reach() -> None:
    with program("--listen", "0.0.0.0:0") as process:
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert (output, "--allow-remote" in errors) == ("", True)


def test_documents_of_issuers_are_fetched_over_http(running: Running) -> None:
    tenant = running.simulator.world.tenant_id
    found = fetch_over_http(f"{running.url}/login/{tenant}/v2.0/.well-known/openid-configuration")
    assert found.status == 200
    assert json.loads(found.body)["issuer"].startswith(running.url)
    assert fetch_over_http(f"{running.url}/nothing").status == 404


@pytest.mark.parametrize("url", ["file:///etc/hostname", "http://127.0.0.1:1/", "http://[", "https:///"])
def test_what_is_no_document_of_an_issuer_is_unreachable(url: str) -> None:
    with pytest.raises(OSError):
        fetch_over_http(url)
