"""Adapters over a host of the embedder's own, and of WSGI: what their servers leave out is done as by our servers."""

from __future__ import annotations

import asyncio
import io
import json
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import httpx
import pytest

from cloudid_servers.adapters import WsgiApplication, asgi_adapter, wsgi_adapter
from cloudid_servers.adapters.wsgi import head_of, path_of
from cloudid_servers.aiohttp_server import host as on_asyncio
from cloudid_servers.machine import Platform
from cloudid_servers.stores.memory import InMemory
from cloudid_servers.trio_server import host as on_trio
from cloudid_servers.wsgi import application_of, wsgi_application
from tests.waiting import PATIENCE, PATIENT, wait_until

from .fake_server import BODY_LIMIT, FakeService, setup_of
from .foreign import counted, port_of, served
from .running import ROOT as REPOSITORY
from .running import Client, Gate, status
from .story import ROOT

PREFIX: Final = "/cloudid"
ON_ASGI: Final = ("uvicorn", "hypercorn on asyncio", "hypercorn on trio")
ON_WSGI: Final = ("wsgiref", "wsgiref, any host")

every_adapter: Final = pytest.mark.parametrize("by", [*ON_ASGI, *ON_WSGI])


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Threads(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients may leave."""


@contextmanager
def served_by_wsgiref(application: Any) -> Iterator[str]:
    with make_server("127.0.0.1", 0, application, Threads, Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def opener(service: FakeService) -> Callable[[], Any]:
    async def opened() -> Any:
        return service

    return opened


@contextmanager
def adapted(by: str, service: FakeService | None = None) -> Iterator[str]:
    """The address of a service of tests behind an adapter, below no prefix."""
    service = service or FakeService()
    if by in ON_ASGI:
        runtime = on_trio if by.endswith("trio") else on_asyncio
        application = asgi_adapter(lambda: runtime.open_host(InMemory(), Platform()), opener(service))
        with served(by, application) as url:
            yield url
        return
    wsgi = wsgi_adapter(lambda: on_asyncio.open_host(InMemory(), Platform()), opener(service))
    if by == "wsgiref":
        wsgi = application_of(lambda: nullcontext(setup_of()))
    with wsgi, served_by_wsgiref(wsgi) as url:
        yield url


def post(path: str, *headers: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (f"POST {path} HTTP/1.0", "host: a", *headers)).encode() + b"\r\n"


@every_adapter
def test_a_request_arrives_and_its_answer_leaves_as_they_are(by: str) -> None:
    with adapted(by) as url, httpx.Client(base_url=url, **PATIENT) as client:
        echoed = client.post("/echo?a=b%2Fc&d=%20", headers={"X-One": "1"}, content=b"\xff\n").json()
        assert (echoed["method"], echoed["target"]) == ("POST", "/echo?a=b%2Fc&d=%20")
        assert (echoed["headers"]["x-one"], echoed["body"]) == ("1", "\xff\n")
        assert echoed["remote_address"] == "127.0.0.1"
        nothing, whole, head = client.get("/nothing"), client.get("/v1/sys/health"), client.head("/v1/sys/health")
        assert (nothing.status_code, nothing.content) == (204, b"")
        assert whole.headers["content-type"] == head.headers["content-type"] == "application/json"
        assert (whole.json(), head.content) == ({"health": True}, b"")
        assert (client.get("/health").status_code, client.get("/nowhere").status_code) == (473, 500)
        assert "hunter2" not in client.get("/nowhere").text


@every_adapter
def test_a_body_is_read_as_far_as_the_service_allows(by: str) -> None:
    with adapted(by) as url:
        assert len(httpx.post(f"{url}/echo", content=b"a" * BODY_LIMIT, **PATIENT).json()["body"]) == BODY_LIMIT
        with Client(port_of(url)) as announced:
            assert status(announced.ask(post("/echo", f"content-length: {BODY_LIMIT + 1}"))) == 413


@every_adapter
def test_a_request_whose_body_never_came_is_not_executed(by: str) -> None:
    """Five root tokens were created this way by the sample server of a page."""
    with adapted(by) as url:
        for _ in range(5):
            with Client(port_of(url)) as client:
                client.send(post("/write?executed", "content-length: 60") + b"{")
        assert httpx.post(f"{url}/write?other", **PATIENT).status_code == 200
        assert counted(url, "executed") == 0


@every_adapter
def test_background_work_runs_and_is_woken(by: str) -> None:
    with adapted(by) as url:
        wait_until(lambda: counted(url, "tick") == counted(url, "upkeep") == 1)
        httpx.get(f"{url}/visit", **PATIENT)
        wait_until(lambda: counted(url, "tick") == 2)


@every_adapter
def test_an_answer_whose_client_leaves_amid_it_is_given_back(by: str) -> None:
    with adapted(by) as url:
        with Client(port_of(url)) as client:
            client.send(post("/holds-much", "content-length: 0"))
            assert client.socket.recv(1)
        wait_until(lambda: counted(url, "undelivered-a-lease") == 1)


@every_adapter
def test_an_answer_that_is_read_is_not_given_back(by: str, tmp_path: Path) -> None:
    Gate(tmp_path).open()
    with adapted(by) as url, httpx.Client(**PATIENT) as client:
        for _ in range(3):
            assert client.post(f"{url}/holds?{tmp_path}").status_code == 200
        assert counted(url, "undelivered-a-lease") == 0


@pytest.mark.parametrize("by", ON_ASGI)
def test_a_body_may_not_take_too_long(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudid_servers.adapters.own_host.BODY_TIMEOUT", 0.1)
    with adapted(by) as url, Client(port_of(url)) as client:
        answer = client.ask(post("/echo", "content-length: 2") + b"a")
    assert status(answer) == 408


class Unlimited(FakeService):
    async def body_limit(self, head: object) -> int:
        raise LookupError("a bug, with a secret in its text: hunter2")


@pytest.mark.parametrize("by", ["uvicorn", "wsgiref, any host"])
def test_a_bug_in_the_limit_of_a_body_is_no_crash_of_the_server(by: str, caplog: pytest.LogCaptureFixture) -> None:
    with adapted(by, Unlimited()) as url:
        refused = httpx.post(f"{url}/echo", content=b"a" * BODY_LIMIT, **PATIENT)
        assert (refused.status_code, refused.json()["codes"]) == (413, ["body_too_large"])
    assert ("request failed: LookupError" in caplog.text, "hunter2" in caplog.text) == (True, False)


class Stopping(FakeService):
    """Notes the order in which it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    async def tick(self) -> float:
        self.notes.append("tick")
        if len(self.notes) == 1:
            raise LookupError("hunter2")
        return await super().tick()

    async def undelivered(self, response: object) -> None:
        self.notes.append("given back")

    async def stop(self) -> None:
        self.notes.append("stop")


@pytest.mark.parametrize("by", [*ON_ASGI, "wsgiref, any host"])
def test_the_end_gives_back_what_was_not_delivered_and_hands_the_background_work_over(
    by: str, caplog: pytest.LogCaptureFixture
) -> None:
    service = Stopping()
    with adapted(by, service) as url:
        wait_until(lambda: service.notes == ["tick", "tick"])  # a round that fails is followed by another one
        with Client(port_of(url)) as client:
            client.send(post("/holds-much", "content-length: 0"))
            assert client.socket.recv(1)
    assert service.notes[-1] == "stop"
    assert "given back" in service.notes
    assert "tick failed: LookupError" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_service_that_cannot_be_opened_says_why_and_can_be_opened_later(tmp_path: Path) -> None:
    application = wsgi_application({"server": {"store": str(tmp_path / "none"), "key_file": str(tmp_path / "key")}})
    for _ in range(2):
        with pytest.raises(Exception, match=r"the key file .* is missing"):
            application.start()
    application.close()


def test_a_program_that_exits_ends_the_start() -> None:
    async def exits() -> Any:
        raise SystemExit("the key is missing")

    application = wsgi_adapter(lambda: on_asyncio.open_host(InMemory(), Platform()), exits)
    with pytest.raises(SystemExit, match="the key is missing"):
        application.start()


def environ(path: str, **more: Any) -> dict[str, Any]:
    return {"REQUEST_METHOD": "GET", "PATH_INFO": path, "wsgi.input": io.BytesIO(), **more}


def ask(application: Any, path: str, **more: Any) -> tuple[str, bytes]:
    said: list[str] = []
    answer = application(environ(path, QUERY_STRING="", **more), lambda line, headers: said.append(line))
    return said[0], b"".join(answer)


@pytest.mark.parametrize(
    "given, path",
    [
        ({"PATH_INFO": "/v1/a b"}, "/v1/a%20b"),
        ({"PATH_INFO": "/v1/a/b", "RAW_URI": "/v1/a%2Fb?c=d"}, "/v1/a%2Fb"),
        ({"PATH_INFO": "/v1/a/b", "REQUEST_URI": "http://host/v1/a%2Fb?c=d"}, "/v1/a%2Fb"),
        ({"PATH_INFO": "/v1/a", "SCRIPT_NAME": "/d e", "REQUEST_URI": "/d%20e/v1/a"}, "/v1/a"),
        ({"PATH_INFO": "//v1", "RAW_URI": "//v1"}, "//v1"),
        ({"PATH_INFO": ""}, "/"),
        ({"PATH_INFO": "/v1", "REQUEST_URI": "http://host?c=d"}, "/"),
        ({"PATH_INFO": "/v1", "REQUEST_URI": "http://[/v1"}, "/v1"),
    ],
)
def test_the_path_of_wsgi_is_what_the_client_sent(given: dict[str, str], path: str) -> None:
    assert path_of(given) == path


def test_the_head_of_wsgi_has_everything_that_the_service_needs() -> None:
    head = head_of(
        environ("/c/v1/a", HTTP_X_ONE="1", CONTENT_LENGTH="2", CONTENT_TYPE="a/b", REMOTE_ADDR="::1", REMOTE_PORT="7"),
        "/c",
    )
    assert (head.method, head.target, head.remote_address, head.remote_port) == ("GET", "/v1/a", "::1", 7)
    assert head.headers == {"x-one": "1", "content-length": "2", "content-type": "a/b"}


CHUNKED: Final = {"HTTP_TRANSFER_ENCODING": "chunked"}
TERMINATED: Final = {"wsgi.input_terminated": True}
WITHOUT_LENGTH: Final[list[tuple[dict[str, Any], str]]] = [
    (CHUNKED, "400 Bad Request"),
    (CHUNKED | TERMINATED, "200 OK"),
    (TERMINATED, "200 OK"),
    ({"SERVER_PROTOCOL": "HTTP/2"}, "200 OK"),
    ({"SERVER_PROTOCOL": "HTTP/1.1", "CONTENT_LENGTH": "+1"}, "400 Bad Request"),
    ({"SERVER_PROTOCOL": "HTTP/2", "CONTENT_LENGTH": "1, 1"}, "400 Bad Request"),
]


@pytest.mark.parametrize(("given", "status_line"), WITHOUT_LENGTH)
def test_a_body_without_a_valid_length_is_read_to_its_end_or_refused(given: dict[str, Any], status_line: str) -> None:
    """The request would be executed without its body otherwise."""
    head = {"REQUEST_METHOD": "POST", "wsgi.input": io.BytesIO(b"a"), **given}
    with wsgi_adapter(lambda: on_asyncio.open_host(InMemory(), Platform()), opener(FakeService())) as application:
        line, answer = ask(application, "/echo", **head)
    assert line == status_line, answer
    assert "200" not in line or json.loads(answer)["body"] == "a"


def test_a_body_that_middleware_repeats_does_not_stop_the_event_loop() -> None:
    """Middleware that logs bodies returns them each time, and never waits."""
    application = asgi_adapter(lambda: on_asyncio.open_host(InMemory(), Platform()), opener(FakeService()))
    sent: list[Any] = []

    async def repeat() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask_once() -> None:
        scope = {"type": "http", "method": "POST", "path": "/holds-much", "query_string": b"", "headers": []}
        async with application.lifespan():
            await application(scope, repeat, send)

    asyncio.run(ask_once())
    assert sent[0]["status"] == 200, sent


def test_wsgi_leaves_other_paths_to_the_application_behind_it() -> None:
    def other(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [])
        return [b"other"]

    ours = wsgi_application(dev_root_token=ROOT, prefix=PREFIX)
    with ours:
        both = ours.in_front_of(other)
        assert ask(both, "/cloudidly") == ("200 OK", b"other")
        line, answer = ask(both, "/cloudid/v1/sys/health")
        assert (line, json.loads(answer)["initialized"]) == ("200 OK", True)
    with pytest.raises(ValueError, match="set prefix"):
        wsgi_application(dev_root_token=ROOT).in_front_of(other)


def _health_in_child(application: WsgiApplication, answers: Any) -> None:
    answers.put(ask(application, "/v1/sys/health")[0])
    application.close()


def test_a_forked_process_opens_a_service_of_its_own() -> None:
    application = wsgi_application(dev_root_token=ROOT)
    with application:
        assert ask(application, "/v1/sys/health")[0] == "200 OK"
        context = multiprocessing.get_context("fork")
        answers: Any = context.Queue()
        child = context.Process(target=_health_in_child, args=(application, answers))
        child.start()
        assert answers.get(timeout=PATIENCE) == "200 OK"
        child.join()
        assert child.exitcode == 0
        assert ask(application, "/v1/sys/health")[0] == "200 OK"


ENDS_WITHOUT_CLOSE: Final = """
import sys
from pathlib import Path
from cloudid_core.effects import GenerateKey
from cloudid_servers.aiohttp_server.host import open_host
from cloudid_servers.adapters import wsgi_adapter
from cloudid_servers.machine import Platform
from cloudid_servers.stores.memory import InMemory
from tests.servers.fake_server import FakeService

class Ending(FakeService):
    async def stop(self):
        await GenerateKey()  # in a thread of an executor
        Path(sys.argv[1]).write_text("stopped")

async def opened():
    return Ending()

wsgi_adapter(lambda: open_host(InMemory(), Platform()), opened).start()
"""


def test_the_end_of_the_process_closes_the_service(tmp_path: Path) -> None:
    """Threads, which a store in a file needs, still run then."""
    note = tmp_path / "note"
    subprocess.run([sys.executable, "-c", ENDS_WITHOUT_CLOSE, str(note)], cwd=REPOSITORY, check=True, timeout=PATIENCE)
    assert note.read_text() == "stopped"
