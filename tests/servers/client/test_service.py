"""The service as a client asks it: its address, its answers, its refusals, and patience."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field

from cloudid_core.values.secret import Secret
from cloudid_servers.client import Address, Service, ServiceRefused, Unreachable
from cloudid_servers.client.service import DEFAULT_ADDRESS, DEFAULT_TIMEOUT, SettingsRefused

from ..certificates import write_certificate

CANARY = "canary-of-a-token"


@define
class Fake:
    """A service that gives prepared answers, one after the other, and the last one for ever."""

    answers: list[tuple[int, Mapping[str, str], bytes]]
    requests: list[tuple[str, str, Mapping[str, str], bytes]] = field(factory=list)
    url: str = ""

    @contextmanager
    def serving(self, folder: Path | None = None) -> Iterator[Fake]:
        """Over TLS with the certificate of a folder, if one is given."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                sent = {name.lower(): value for name, value in self.headers.items()}
                fake.requests.append((self.command, self.path, sent, body))
                status, headers, content = fake.answers.pop(0) if len(fake.answers) > 1 else fake.answers[0]
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_LIST = answer

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
                pass

            def handle(self) -> None:
                with suppress(ssl.SSLError):
                    super().handle()

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            if folder:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
                server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            self.url = f"http{'s' if folder else ''}://127.0.0.1:{server.server_port}"
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


def ok(**data: Any) -> tuple[int, Mapping[str, str], bytes]:
    return 200, {}, json.dumps({"data": data}).encode()


def refusal(status: int, *codes: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
    body = {"errors": [f"text of {code}" for code in codes], "codes": list(codes)}
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(body).encode()


def service(fake: Fake, pauses: list[float] | None = None, **variables: str) -> Service:
    waited = [] if pauses is None else pauses
    return Service(Address.of({"CLOUDID_ADDR": fake.url, **variables}), Secret(CANARY), waited.append)


def test_a_request_has_path_query_body_and_token() -> None:
    with Fake([ok(answer=42)]).serving() as fake:
        client = service(fake)
        assert client.read("sys/health", activecode="200") == {"data": {"answer": 42}}
        assert client.write("auth/cloud/role/a b", {"x": 1}) == {"data": {"answer": 42}}
        assert client.ask("LIST", "auth/cloud/role") == {"data": {"answer": 42}}
    assert [(method, path, body) for method, path, _, body in fake.requests] == [
        ("GET", "/v1/sys/health?activecode=200", b""),
        ("POST", "/v1/auth/cloud/role/a%20b", b'{"x":1}'),
        ("LIST", "/v1/auth/cloud/role", b""),
    ]
    assert {headers["x-service-token"] for _, _, headers, _ in fake.requests} == {CANARY}
    assert CANARY not in repr(client)


def test_an_answer_without_body_is_empty() -> None:
    with Fake([(204, {}, b"")]).serving() as fake:
        assert service(fake).write("sys/leases/revoke", {}) == {}


def test_a_busy_service_is_asked_again_when_it_says() -> None:
    pauses: list[float] = []
    with Fake(
        [refusal(429, "rate_limit_exceeded", retry_after="7"), refusal(503, "x", retry_after="0"), ok()]
    ).serving() as fake:
        assert service(fake, pauses).read("x") == {"data": {}}
    assert pauses == [7, 1]


@pytest.mark.parametrize(
    "status, headers",
    [(429, {}), (503, {}), (503, {"retry_after": "soon"}), (429, {"retry_after": "3600"}), (500, {"retry_after": "1"})],
)
def test_other_refusals_are_told_at_once(status: int, headers: dict[str, str]) -> None:
    pauses: list[float] = []
    with Fake([refusal(status, "the_code", **headers)]).serving() as fake, pytest.raises(ServiceRefused) as refused:
        service(fake, pauses).read("x")
    assert (refused.value.status, refused.value.codes) == (status, ("the_code",))
    assert str(refused.value) == "text of the_code"
    assert (len(fake.requests), pauses) == (1, [])


def test_each_try_is_shown_to_a_person_who_waits() -> None:
    remarks: list[str] = []
    with Fake([refusal(503, "x", retry_after="1")]).serving() as fake, pytest.raises(ServiceRefused):
        evolve(service(fake), watch=lambda text: nullcontext(remarks.append)).read("x")
    assert remarks == [
        "try 1 of 3",
        "try 2 of 3 after 1 s: it answered 503",
        "try 2 of 3",
        "try 3 of 3 after 1 s: it answered 503",
        "try 3 of 3",
    ]


def test_a_service_that_stays_busy_is_asked_three_times() -> None:
    with Fake([refusal(503, "x", retry_after="1")]).serving() as fake, pytest.raises(ServiceRefused):
        service(fake).read("x")
    assert len(fake.requests) == 3


def test_the_code_of_a_404_is_in_a_header() -> None:
    answer = (404, {"X-Service-Error-Code": "no_handler"}, b'{"errors": ["no handler for route"]}')
    with Fake([answer]).serving() as fake, pytest.raises(ServiceRefused) as refused:
        service(fake).read("x")
    assert (refused.value.errors, refused.value.codes) == (("no handler for route",), ("no_handler",))


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"errors": null}'])
def test_what_stands_in_between_may_answer_anything(body: bytes) -> None:
    with Fake([(502, {}, body)]).serving() as fake, pytest.raises(ServiceRefused, match="it answered 502"):
        service(fake).read("x")


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"null", b"1"])
def test_another_service_is_not_taken_for_this_one(body: bytes) -> None:
    with Fake([(200, {}, body)]).serving() as fake, pytest.raises(Unreachable, match="a different service"):
        service(fake).read("x")


def test_no_redirect_is_followed() -> None:
    with Fake([ok()]).serving() as other, Fake([(307, {"location": "x"}, b"")]).serving() as fake:
        fake.answers = [(307, {"location": f"{other.url}/v1/x"}, b"")]
        with pytest.raises(ServiceRefused, match="307"):
            service(fake).read("x")
    assert other.requests == []


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with Fake([ok()]).serving() as proxy, Fake([ok()]).serving() as fake:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        service(fake).read("x")
        assert (len(proxy.requests), len(fake.requests)) == (0, 1)
        Service(Address("http://cloudid.test:8200")).read("x")
        assert [path for _, path, _, _ in proxy.requests] == ["http://cloudid.test:8200/v1/x"]


def test_certificates_are_verified(tmp_path: Path) -> None:
    write_certificate(tmp_path, "127.0.0.1")
    with Fake([ok()]).serving(tmp_path) as fake:
        with pytest.raises(Unreachable, match="the certificate is not trusted"):
            service(fake).read("x")
        assert service(fake, VAULT_CACERT=str(tmp_path / "cert.pem")).read("x") == {"data": {}}
        careless = service(fake, VAULT_SKIP_VERIFY="true")
        assert careless.read("x") == {"data": {}}
        assert "not verified" in careless.address.warnings[0]


def test_a_service_without_tls_is_told_as_such() -> None:
    with Fake([ok()]).serving() as fake, pytest.raises(Unreachable, match="the URL must begin with http://"):
        Service(Address(fake.url.replace("http://", "https://"))).read("x")


def test_nobody_answers() -> None:
    with Fake([ok()]).serving() as fake:
        pass
    with pytest.raises(Unreachable, match="Connection refused"):
        service(fake).read("x")


def test_where_the_service_is() -> None:
    def url(**variables: str) -> str:
        return Address.of(variables).url

    assert url() == DEFAULT_ADDRESS
    assert url(VAULT_ADDR="https://vault.test/") == "https://vault.test"
    assert url(VAULT_ADDR="https://vault.test", CLOUDID_ADDR="https://ours.test") == "https://ours.test"
    assert Address.of({"CLOUDID_ADDR": "https://ours.test"}, "https://given.test").url == "https://given.test"
    assert Address.of({}).timeout == DEFAULT_TIMEOUT
    assert Address.of({"VAULT_CLIENT_TIMEOUT": "5"}).timeout == 5
    assert Address.of({"VAULT_CLIENT_TIMEOUT": "2m"}).timeout == 120
    assert Address.of({"VAULT_ADDR": "http://localhost:8200", "VAULT_NAMESPACE": "root"}).warnings == ()
    assert Address.of({"VAULT_ADDR": "https://vault.test"}).warnings == ()
    assert "the URL is not https" in Address.of({"VAULT_ADDR": "http://vault.test"}).warnings[0]


@pytest.mark.parametrize(
    "variables, words",
    [
        ({"VAULT_ADDR": "vault.test:8200"}, "VAULT_ADDR must be a URL, like https://"),
        ({"VAULT_ADDR": "unix:///run/agent.sock"}, "VAULT_ADDR must be a URL, like https://"),
        ({"VAULT_ADDR": "http://127.0.0.1:port"}, "VAULT_ADDR must be a URL, like https://"),
        ({"VAULT_ADDR": "file:///etc/passwd"}, "VAULT_ADDR must be a URL, like https://"),
        ({"VAULT_ADDR": f"https://user:{CANARY}@vault.test"}, "VAULT_ADDR must be a URL, like https://"),
        ({"CLOUDID_ADDR": "vault.test"}, "CLOUDID_ADDR must be"),
        ({"VAULT_NAMESPACE": "team"}, "no namespaces: unset VAULT_NAMESPACE"),
        ({"VAULT_CACERT": "/nowhere"}, "VAULT_CACERT must name a readable file of certificates"),
        ({"CLOUDID_CACERT": "/nowhere", "VAULT_CACERT": ""}, "CLOUDID_CACERT must name"),
        ({"VAULT_SKIP_VERIFY": "perhaps"}, "VAULT_SKIP_VERIFY must be true or false"),
        ({"VAULT_CLIENT_TIMEOUT": "soon"}, "VAULT_CLIENT_TIMEOUT must be a duration, like 30s or 2m"),
    ],
)
def test_what_cannot_be_used_is_refused(variables: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsRefused) as refused:
        Address.of(variables)
    assert words in str(refused.value)
    assert CANARY not in str(refused.value)
