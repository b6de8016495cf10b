"""HTTP as both servers speak it, over real sockets, with a service that is a fake."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from .certificates import self_signed
from .fake_server import BODY_LIMIT
from .running import Client, Gate, Running, body, status, wait_until

RUNTIMES: Final = ("trio", "aiohttp")
FAKE: Final = "tests.servers.fake_server"
SHORT: Final = ("head_timeout=1s", "body_timeout=1s", "idle_timeout=2s")
REFUSAL_HEAD: Final = (
    b"content-type: application/json\r\ncache-control: no-store\r\nx-service-error-code: %b\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n"
)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Running]]:
    with Running(FAKE, "trio") as trio, Running(FAKE, "aiohttp") as aiohttp:
        yield {"trio": trio, "aiohttp": aiohttp}


@pytest.fixture(params=RUNTIMES)
def server(request: pytest.FixtureRequest, servers: dict[str, Running]) -> Running:
    return servers[request.param]


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with Client(server.port) as client:
        yield client


@pytest.fixture(scope="module", params=RUNTIMES)
def impatient(request: pytest.FixtureRequest) -> Iterator[Running]:
    """A server with timeouts that a test can wait for."""
    with Running(FAKE, request.param, *SHORT) as running:
        yield running


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


def request(line: str, *fields: str, content: bytes = b"") -> bytes:
    return "\r\n".join([f"{line} HTTP/1.1", "host: test", *fields, "", ""]).encode("latin-1") + content


def posted(content: bytes, *fields: str) -> bytes:
    return request("POST /echo", f"content-length: {len(content)}", *fields, content=content)


def without_date(answer: bytes) -> bytes:
    masked, dates = re.subn(rb"date: [A-Z][a-z]{2}, [^\r]{20} GMT\r\n", b"", answer)
    assert dates == bool(answer)
    return masked


def echo(answer: bytes) -> dict[str, Any]:
    assert status(answer) == 200
    told: dict[str, Any] = json.loads(body(answer))
    return told


def assert_refused(client: Client, expected: int, code: str) -> None:
    """The answer is a refusal with our JSON body, and nothing comes after it."""
    answer = client.receive()
    told = json.loads(body(answer))
    assert (status(answer), told["codes"]) == (expected, [code])
    assert len(told["errors"]) == 1
    assert without_date(answer).partition(b"\r\n")[2].startswith(REFUSAL_HEAD % (code.encode(), len(body(answer))))
    assert client.is_closed()


WELL_FORMED: Final = {
    "get": request("GET /echo?a=1&b=%2F"),
    "head": request("HEAD /echo"),
    "list": request("LIST /echo"),
    "an unknown verb": request("FROBNICATE /echo"),
    "a verb in lower case": request("get /echo"),
    "post": posted(b'{"a": 1}', "content-type: application/json"),
    "an empty post": posted(b""),
    "a body of bytes": posted(bytes(range(256))),
    "a coded body": posted(b"not gzip at all", "content-encoding: gzip"),
    "chunks": request(
        "PUT /echo", "transfer-encoding: chunked", content=b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nx-t: 1\r\n\r\n"
    ),
    "repeated fields": request("GET /echo", "X-One: a", "x-two: \t b ", "x-one: c"),
    "fields of bytes": request("GET /echo", "x-one: \xe9\xff"),
    "many fields": request("GET /echo", *(f"x-{number}: 1" for number in range(600))),
    "an absolute target": request("GET http://test/echo"),
    "options of the server": request("OPTIONS *"),
    "an offer to upgrade": request("GET /echo", "connection: upgrade", "upgrade: websocket"),
    "a fragment": request("GET /echo#fragment"),
    "no content": request("POST /nothing", "content-length: 0"),
    "a status without a phrase": request("GET /health"),
    "a forwarded address": request("GET /echo", "x-forwarded-for: 198.51.100.7, 203.0.113.9:1234, 127.0.0.2"),
    "a bug": request("GET /bug"),
    "the longest target": request("GET /echo?" + "a" * (8192 - len("/echo?"))),
    "a target too long": request("GET /echo?" + "a" * 8192),
    "a head too large": request("GET /echo", *(f"x-{number}: {'a' * 1000}" for number in range(17))),
    "the largest body": posted(b"a" * BODY_LIMIT),
    "a body too large": posted(b"a" * (BODY_LIMIT + 1)),
    "chunks too large": request("POST /echo", "transfer-encoding: chunked", content=b"10001\r\n" + b"a" * 65537),
    "http/1.0": b"GET /echo HTTP/1.0\r\n\r\n",
    "http/1.0 with a body": b"POST /echo HTTP/1.0\r\ncontent-length: 3\r\n\r\nabc",
    "goodbye": request("GET /echo", "connection: Close"),
}


@pytest.mark.parametrize("name", WELL_FORMED)
def test_both_servers_answer_byte_alike(servers: dict[str, Running], name: str) -> None:
    """All but the date, also where the answer is a refusal."""
    answers = []
    for running in servers.values():
        with Client(running.port) as client:
            answers.append(without_date(client.ask(WELL_FORMED[name], to_head=name == "head")))
    assert answers[0] == answers[1]
    assert answers[0].startswith(b"HTTP/1.1 ")


def test_a_connection_serves_one_request_after_the_other(client: Client) -> None:
    for number in range(3):
        assert echo(client.ask(posted(str(number).encode())))["body"] == str(number)


def test_requests_may_be_sent_before_the_answers_are_read(client: Client) -> None:
    client.send(b"".join(posted(str(number).encode()) for number in range(50)))
    assert [echo(client.receive())["body"] for _ in range(50)] == [str(number) for number in range(50)]


def test_a_request_may_come_byte_by_byte(client: Client) -> None:
    for byte in posted(b"slow"):
        client.send(bytes([byte]))
    assert echo(client.receive())["body"] == "slow"


def test_list_is_a_verb(client: Client) -> None:
    assert echo(client.ask(request("LIST /echo")))["method"] == "LIST"


def test_a_head_request_gets_no_body_but_its_length(client: Client) -> None:
    told = client.ask(request("HEAD /echo"), to_head=True)
    assert b"content-length: " in told
    assert b"content-length: 0" not in told
    assert echo(client.ask(request("GET /echo")))["method"] == "GET"


def test_204_has_no_length_and_no_body(client: Client) -> None:
    assert b"length" not in client.ask(request("DELETE /nothing"))
    assert echo(client.ask(request("GET /echo")))["method"] == "GET"


def test_content_type_is_exact_and_no_server_names_itself(client: Client) -> None:
    head = client.ask(request("GET /echo")).partition(b"\r\n\r\n")[0]
    assert b"\r\ncontent-type: application/json\r\n" in head
    assert b"server" not in head.lower()


def test_http_1_0_ends_the_connection(client: Client) -> None:
    assert b"\r\nconnection: close\r\n" in client.ask(b"GET /echo HTTP/1.0\r\n\r\n")
    assert client.is_closed()


def test_a_client_that_says_goodbye_is_let_go(client: Client) -> None:
    assert b"\r\nconnection: close\r\n" in client.ask(request("GET /echo", "connection: close"))
    assert client.is_closed()


def test_a_body_is_asked_for_when_the_client_waits_for_that(client: Client) -> None:
    asked = client.ask(request("POST /echo", "content-length: 3", "expect: 100-continue"), to_head=True)
    assert asked == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert echo(client.ask(b"abc"))["body"] == "abc"


def test_a_body_that_is_too_large_is_not_asked_for(client: Client) -> None:
    client.send(request("POST /echo", "content-length: 70000", "expect: 100-continue"))
    assert_refused(client, 413, "body_too_large")


REFUSED: Final = {
    "garbage": (b"\x16\x03\x01 garbage\r\n\r\n", 400, "malformed_request"),
    "no host": (b"GET /echo HTTP/1.1\r\n\r\n", 400, "malformed_request"),
    "another protocol": (b"GET /echo HTTP/3.0\r\nhost: test\r\n\r\n", 400, "malformed_request"),
    "a blank in a name": (request("GET /echo", "x one: 1"), 400, "malformed_request"),
    "a length that is none": (request("POST /echo", "content-length: -1"), 400, "malformed_request"),
    "a length of thousands of digits": (
        request("POST /echo", "content-length: " + "1" * 5000),
        413,
        "body_too_large",
    ),
    "two framings": (
        request("POST /echo", "content-length: 3", "transfer-encoding: chunked", content=b"0\r\n\r\n"),
        400,
        "malformed_request",
    ),
    "an unknown coding": (request("POST /echo", "transfer-encoding: gzip"), 400, "malformed_request"),
    "a broken chunk": (
        request("POST /echo", "transfer-encoding: chunked", content=b"zz\r\n"),
        400,
        "malformed_request",
    ),
    "a tunnel": (b"CONNECT test:443 HTTP/1.1\r\nhost: test:443\r\n\r\n", 400, "malformed_request"),
    "a target that is not ascii": ("GET /é HTTP/1.1\r\nhost: test\r\n\r\n".encode(), 400, "malformed_request"),
    "a target without end": (b"GET /" + b"a" * 40_000, 414, "target_too_long"),
    "a field without end": (request("GET /echo")[:-2] + b"x: " + b"a" * 40_000, 431, "head_too_large"),
    "fields without end": (request("GET /echo")[:-2] + b"x: a\r\n" * 10_000, 431, "head_too_large"),
    "a large head at once": (request("GET /echo", "x: " + "a" * 17_000), 431, "head_too_large"),
    "a body too large": (posted(b"a" * 100_000), 413, "body_too_large"),
    "a body announced too large": (request("POST /echo", "content-length: 9999999"), 413, "body_too_large"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_request_is_refused(client: Client, name: str) -> None:
    data, expected, code = REFUSED[name]
    client.send(data)
    assert_refused(client, expected, code)


@pytest.mark.parametrize("begun", [b"G", request("GET /echo")[:-2]])
def test_a_head_must_end_in_time(impatient: Running, begun: bytes) -> None:
    with Client(impatient.port) as client:
        client.send(begun)
        assert_refused(client, 408, "client_too_slow")


def test_a_body_must_end_in_time(impatient: Running) -> None:
    with Client(impatient.port) as client:
        client.send(posted(b"abc")[:-1])
        assert_refused(client, 408, "client_too_slow")


def test_an_idle_connection_is_closed_without_a_word(impatient: Running) -> None:
    with Client(impatient.port) as client:
        client.send(request("GET /echo"))
        assert echo(client.receive())
        assert client.is_closed()


def test_a_client_that_leaves_amid_a_request_harms_nobody(server: Running) -> None:
    for data in (b"GET /ec", posted(b"abc")[:-1]):
        with Client(server.port) as leaver:
            leaver.send(data)
    with Client(server.port) as client:
        assert echo(client.ask(request("GET /echo")))


def test_a_bug_is_answered_and_the_connection_lives_on(client: Client) -> None:
    answer = client.ask(request("GET /bug"))
    assert (status(answer), json.loads(body(answer))["codes"]) == (500, ["internal_error"])
    assert echo(client.ask(request("GET /echo")))


def test_forwarded_addresses_are_believed_from_trusted_proxies(client: Client) -> None:
    forwarded = request("GET /echo", "x-forwarded-for: 198.51.100.7, 203.0.113.9, 127.0.0.2")
    assert echo(client.ask(forwarded))["remote_address"] == "203.0.113.9"
    assert echo(client.ask(request("GET /echo")))["remote_address"] == "127.0.0.1"


def count(client: Client, key: str) -> int:
    number: int = json.loads(body(client.ask(request(f"GET /count?{key}"))))["count"]
    return number


def test_what_an_answer_holds_is_given_back_when_its_client_has_left(server: Running, gate: Gate) -> None:
    with Client(server.port) as client:
        before = count(client, "undelivered-a-lease")
        with Client(server.port) as leaver:
            leaver.send(request(f"GET /holds?{gate.folder}"))
            gate.wait_for(1)
        gate.open()
        wait_until(lambda: count(client, "undelivered-a-lease") == before + 1)
        assert status(client.ask(request(f"GET /holds?{gate.folder}"))) == 200
        assert count(client, "undelivered-a-lease") == before + 1


def test_background_work_runs_at_once_and_when_an_answer_asks_for_it(server: Running) -> None:
    with Client(server.port) as client:
        ticks = count(client, "tick")
        assert ticks >= 1
        client.ask(request("GET /visit"))
        wait_until(lambda: count(client, "tick") == ticks + 1)
        assert count(client, "upkeep") == 1


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_server_that_is_told_to_stop_drains(runtime: str, gate: Gate) -> None:
    """A client that waits gets its answer, idle ones are closed, new ones are refused; the log has no secret."""
    with (
        Running(FAKE, runtime, "drain=300s") as running,
        Client(running.port) as idle,
        Client(running.port) as used,
        Client(running.port) as busy,
    ):
        assert echo(used.ask(request("GET /echo?password=hunter2")))
        busy.send(request(f"GET /waits?{gate.folder}"))
        gate.wait_for(1)
        used.ask(request("GET /bug"))
        running.process.terminate()
        assert idle.is_closed()
        assert used.is_closed()
        with pytest.raises(ConnectionError):
            Client(running.port)
        gate.open()
        answer = busy.receive()
        assert status(answer) == 200
        assert b"\r\nconnection: close\r\n" in answer
        code, log = running.wait()
    assert code == 0
    assert "hunter2" not in log
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line["path"] for line in lines if line["event"] == "request"] == ["/echo", "/waits"]
    assert [line["error"] for line in lines if line["event"] == "request failed"] == ["LookupError"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_draining_has_an_end(runtime: str) -> None:
    with Running(FAKE, runtime, "drain=200ms") as running, Client(running.port) as busy:
        busy.send(request("GET /sleep?60"))
        assert echo_of_another(running.port)
        assert running.stop()[0] == 0
        assert busy.is_closed()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_connections_are_bounded(runtime: str, gate: Gate) -> None:
    """A client for which there is no room gets 503, and the answers of others are not lost."""
    with Running(FAKE, runtime, "connection_limit=2") as running:
        with Client(running.port) as first, Client(running.port) as second:
            assert echo(first.ask(request("GET /echo")))
            for each in (first, second):
                each.send(request(f"GET /waits?{gate.folder}", "x-vault-token: a"))
            gate.wait_for(2)
            assert is_refused(running.port)
            gate.open()
            assert status(first.receive()) == 200
            assert status(second.receive()) == 200
        wait_until(lambda: echo_of_another(running.port))


def is_refused(port: int) -> bool:
    with Client(port) as client:
        refused = client.ask(request("GET /echo"))
        assert (status(refused), json.loads(body(refused))["codes"]) == (503, ["too_many_connections"])
        assert b"\r\nretry-after: 1\r\n" in refused
        return client.is_closed()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with a key and its own certificate."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(b"".join(self_signed("localhost")))
    return path


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_tls_is_spoken_with_a_certificate(runtime: str, certificate: Path) -> None:
    tls = ssl.create_default_context(cafile=certificate)
    with Running(FAKE, runtime, f"tls_certificate={certificate}", "head_timeout=300ms") as running:
        assert running.url.startswith("https://")
        with Client(running.port) as client, tls.wrap_socket(client.socket, server_hostname="localhost") as secure:
            client.socket = secure
            assert echo(client.ask(posted(b"first")))["body"] == "first"
            client.send(b"garbage\r\n\r\n")
            assert_refused(client, 400, "malformed_request")
        with Client(running.port) as client:
            client.send(request("GET /echo"))
            assert b"HTTP" not in client.socket.recv(1000)
        assert running.stop()[0] == 0


def echo_of_another(port: int) -> bool:
    with Client(port) as client:
        return status(client.ask(request("GET /echo"))) == 200


def test_what_is_no_request_is_logged_with_the_address_that_it_comes_from(server: Running, client: Client) -> None:
    before = len(server.log())
    client.send(b"nonsense\r\n\r\n")
    assert status(client.receive()) == 400
    (line,) = wait_until(lambda: server.log()[before:].splitlines())
    logged = json.loads(line)
    assert (logged["event"], logged["code"], logged["remote_address"]) == ("refused", "malformed_request", "127.0.0.1")
