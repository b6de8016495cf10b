"""The ready applications behind servers of others: what these leave to an application is done as by our own servers."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio
from aiohttp import web
from aiohttp.compression_utils import ZLibDecompressor
from attrs import evolve
from starlette.applications import Starlette

from cloudid_servers.adapters.asgi import target_of
from cloudid_servers.aiohttp_server.application import aiohttp_application, application_of
from cloudid_servers.asgi import AsgiApplication, asgi_application
from cloudid_servers.asgi import application_of as asgi_application_of
from cloudid_servers.command.bootstrap import Setup
from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.settings.settings import SettingsError
from cloudid_servers.ui import Page
from tests.waiting import PATIENT, wait_until

from .fake_server import BODY_LIMIT, setup_of
from .foreign import SERVERS, counted, port_of, served
from .running import Client, Gate, body, status
from .story import ROOT, tell

PREFIX: Final = "/cloudid"
BOMB: Final = 2**25
"""Bytes that are sent in few: gzip takes a thousandth."""
LONG: Final = b"a" * (BODY_LIMIT + 1)

every_server: Final = pytest.mark.parametrize("by", SERVERS)


def mounted(by: str, setup: Setup | None = None) -> Any:
    """An application of somebody else with ours below a prefix."""

    def set_up() -> AbstractContextManager[Setup]:
        return nullcontext(setup or setup_of())

    if by == "aiohttp":
        outer = web.Application()
        outer.add_subapp(PREFIX, application_of(set_up))
        return outer
    ours = asgi_application_of(set_up)
    application = Starlette(lifespan=ours.lifespan)
    application.mount(PREFIX, ours)
    return application


def request(path: str, *headers: str) -> bytes:
    lines = (f"POST {PREFIX}{path} HTTP/1.1", "host: a", *headers)
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


@every_server
def test_a_request_arrives_as_it_was_sent(by: str) -> None:
    headers = [("X-One", "1"), ("X-One", "2"), ("X-Forwarded-For", "203.0.113.9")]
    with served(by, mounted(by)) as url:
        target = httpx.URL(url).copy_with(raw_path=f"{PREFIX}/echo?a=b%2Fc&d=%20".encode())
        told = httpx.post(target, headers=headers, content=b"\xff\n", **PATIENT).json()
    assert told["method"] == "POST"
    assert told["target"] == "/echo?a=b%2Fc&d=%20"
    assert told["headers"]["x-one"] == "1, 2"
    assert told["body"] == "\xff\n"
    assert told["remote_address"] == "203.0.113.9"


@pytest.mark.parametrize("by", [by for by in SERVERS if by != "aiohttp"])
def test_a_target_may_have_a_host(by: str) -> None:
    with served(by, asgi_application_of(lambda: nullcontext(setup_of()))) as url, Client(port_of(url)) as client:
        answer = client.ask(b"POST http://other/echo?a=b HTTP/1.1\r\nhost: other\r\ncontent-length: 0\r\n\r\n")
    assert (status(answer), json.loads(body(answer))["target"]) == (200, "/echo?a=b")


@every_server
def test_the_page_for_people_is_below_the_prefix(by: str) -> None:
    setup = evolve(setup_of(), page=Page().answer)
    with served(by, mounted(by, setup)) as url:
        page = httpx.get(f"{url}{PREFIX}/ui", follow_redirects=True, **PATIENT)
        script = httpx.get(page.url.join("page.js"), **PATIENT)
    assert (page.url.path, page.headers["content-type"]) == (f"{PREFIX}/ui/", "text/html; charset=utf-8")
    assert script.status_code == 200
    assert "fetch(" in script.text
    assert not re.search(r"fetch\([`\"']/", script.text)


@every_server
def test_an_answer_leaves_as_it_is(by: str) -> None:
    with served(by, mounted(by)) as url, httpx.Client(base_url=f"{url}{PREFIX}", **PATIENT) as client:
        nothing = client.get("nothing")
        assert (nothing.status_code, nothing.content) == (204, b"")
        assert "content-length" not in nothing.headers
        whole, head = client.get("v1/sys/health"), client.head("v1/sys/health")
        assert whole.headers["content-type"] == head.headers["content-type"] == "application/json"
        assert whole.headers["content-length"] == head.headers["content-length"] == str(len(whole.content))
        assert (whole.json(), head.content) == ({"health": True}, b"")
        assert client.get("health").status_code == 473
        assert client.get("wait%2Fs").status_code == 500
        assert "hunter2" not in client.get("nowhere").text


@every_server
def test_a_body_is_read_as_far_as_the_service_allows(by: str) -> None:
    with served(by, mounted(by)) as url:
        told = httpx.post(f"{url}{PREFIX}/echo", content=LONG[1:], **PATIENT).json()
        assert len(told["body"]) == BODY_LIMIT
        with Client(port_of(url)) as announced:
            assert status(announced.ask(request("/echo", f"content-length: {len(LONG)}"))) == 413
        with Client(port_of(url)) as in_chunks:
            in_chunks.send(request("/echo", "transfer-encoding: chunked"))
            assert status(in_chunks.ask(b"%x\r\n%b\r\n" % (len(LONG), LONG))) == 413


@pytest.mark.parametrize("codings", [("gzip",), ("identity", "gzip"), ("gzip", "identity")])
def test_aiohttp_does_not_expand_a_compressed_body(codings: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """At most the piece that aiohttp expands before it calls a handler; the client reads why."""
    expanded, expand = [0], ZLibDecompressor.decompress_sync

    def count_expanded(self: ZLibDecompressor, data: bytes, max_length: int = 0) -> bytes:
        piece = expand(self, data, max_length)
        expanded[0] += len(piece)
        return piece

    monkeypatch.setattr(ZLibDecompressor, "decompress_sync", count_expanded)
    bomb = gzip.compress(bytes(BOMB))
    headers = [f"content-encoding: {coding}" for coding in codings]
    head = request("/echo", *headers, f"content-length: {len(bomb)}")
    with served("aiohttp", mounted("aiohttp")) as url:
        with Client(port_of(url)) as client:
            answer = client.ask(head + bomb)
            assert (status(answer), b"must not be compressed" in body(answer)) == (415, True)
            assert client.is_closed()
        with Client(port_of(url)) as client:
            client.send(head + bomb[:1])
            assert status(client.receive()) == 415  # however slow the body comes
        plain = request("/echo", "content-encoding: identity", "content-length: 1")
        with Client(port_of(url)) as client:
            assert status(client.ask(plain + b"a")) == 200
    assert expanded[0] <= BOMB // 16


@every_server
def test_a_body_may_not_take_too_long(by: str) -> None:
    with served(by, mounted(by, setup_of("body_timeout=100ms"))) as url, Client(port_of(url)) as client:
        answer = client.ask(request("/echo", "content-length: 2") + b"a")
    assert status(answer) == 408
    assert json.loads(body(answer))["errors"]


@every_server
def test_a_body_without_sense_is_no_error_of_ours(by: str) -> None:
    with served(by, mounted(by)) as url, Client(port_of(url)) as client:
        client.send(request("/echo", "transfer-encoding: chunked") + b"nonsense\r\n\r\n")
        answer = client.receive()
    assert not answer or status(answer) == 400


@every_server
def test_background_work_runs_and_is_woken(by: str) -> None:
    with served(by, mounted(by)) as url:
        wait_until(lambda: counted(f"{url}{PREFIX}", "tick") == counted(f"{url}{PREFIX}", "upkeep") == 1)
        httpx.get(f"{url}{PREFIX}/visit", **PATIENT)
        wait_until(lambda: counted(f"{url}{PREFIX}", "tick") == 2)


@every_server
def test_an_answer_whose_client_has_left_is_given_back(by: str, tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    with served(by, mounted(by)) as url:
        with Client(port_of(url)) as client:
            client.send(request(f"/holds?{tmp_path}", "content-length: 0"))
            gate.wait_for(1)
        gate.open()
        wait_until(lambda: counted(f"{url}{PREFIX}", "undelivered-a-lease") == 1)


@every_server
def test_an_answer_whose_client_leaves_amid_it_is_given_back(by: str) -> None:
    with served(by, mounted(by)) as url:
        with Client(port_of(url)) as client:
            client.send(request("/holds-much", "content-length: 0"))
            assert client.socket.recv(1)
        wait_until(lambda: counted(f"{url}{PREFIX}", "undelivered-a-lease") == 1)


@pytest.mark.parametrize(
    "by", [by for by in SERVERS if by != "hypercorn on trio"]
)  # it does not let itself be cancelled
def test_an_answer_that_nobody_reads_is_given_back(by: str) -> None:
    with served(by, mounted(by, setup_of("write_timeout=100ms"))) as url, Client(port_of(url)) as client:
        client.send(request("/holds-much", "content-length: 0"))
        wait_until(lambda: counted(f"{url}{PREFIX}", "undelivered-a-lease") == 1)


@every_server
def test_an_answer_that_is_read_is_not_given_back(by: str, tmp_path: Path) -> None:
    Gate(tmp_path).open()
    with served(by, mounted(by)) as url, httpx.Client(**PATIENT) as client:
        for _ in range(3):
            assert client.post(f"{url}{PREFIX}/holds?{tmp_path}").status_code == 200
        assert counted(f"{url}{PREFIX}", "undelivered-a-lease") == 0


@every_server
def test_logs_of_others_stay_where_they_are(by: str) -> None:
    before = list(logging.root.handlers)
    with served(by, mounted(by)):
        assert logging.root.handlers == before


@pytest.mark.parametrize("by", ["uvicorn", "hypercorn on trio", "aiohttp"])
def test_the_whole_story_on_a_service_in_memory(by: str) -> None:
    make = aiohttp_application if by == "aiohttp" else asgi_application
    with start(Simulator()) as cloud, served(by, make(dev_root_token=ROOT, provider=cloud.url)) as url:
        for step, found, answer in tell(url, cloud.url):
            if by != "aiohttp" or step.method != "LIST":  # its parser does not know the method
                assert found == step.status, f"{step} {answer}"


def settings(folder: Path, **server: Any) -> dict[str, Any]:
    return {"server": {"store": str(folder / "store"), "key_file": str(folder / "key"), **server}}


UNUSABLE: Final = (
    ({"key_file": "nowhere"}, "the key file .*nowhere is missing"),
    ({"nonsense": 1}, '"nonsense" is unknown'),
    ({"store": "postgresql://127.0.0.1:1/nothing"}, "the database cannot be used"),
)


def on_asyncio(work: Callable[[Any], Coroutine[Any, Any, Any]], argument: object) -> Any:
    return asyncio.run(work(argument))


async def lifespan(application: AsgiApplication) -> list[dict[str, Any]]:
    """What the application tells a server that starts it, and stops it at once."""
    told: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.shutdown" if told else "lifespan.startup"}

    async def send(message: Any) -> None:
        told.append(message)

    await application({"type": "lifespan"}, receive, send)
    return told


@pytest.mark.parametrize("run", [trio.run, on_asyncio])
@pytest.mark.parametrize("changed, reason", UNUSABLE)
def test_a_start_that_fails_says_why(
    run: Callable[..., Any], changed: dict[str, Any], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUDID_MASTER_KEY", "" if "key_file" in changed else "5a" * 32)
    [failed] = run(lifespan, asgi_application(settings(tmp_path, **changed)))
    assert failed["type"] == "lifespan.startup.failed"
    assert re.match(f"cloudid cannot start: .*{reason}", failed["message"])


def test_an_application_of_aiohttp_that_cannot_be_opened_raises_why(tmp_path: Path) -> None:
    application = aiohttp_application(settings(tmp_path))
    with pytest.raises(SettingsError, match="is missing: restore it, or run init"), served("aiohttp", application):
        pytest.fail("it started")


@pytest.mark.parametrize("make", [asgi_application, aiohttp_application])
def test_it_needs_settings_or_a_token(make: Callable[..., Any]) -> None:
    for given in ({}, {"settings": {}, "dev_root_token": ROOT}):
        with pytest.raises(ValueError, match="either settings or dev_root_token"):
            make(**given)


@pytest.mark.parametrize("make", [asgi_application, aiohttp_application])
def test_an_address_that_cannot_be_used_is_named(make: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"^provider must be a URL"):
        make(dev_root_token=ROOT, provider="127.0.0.1:8400")


def test_one_that_is_mounted_and_was_not_opened_says_so() -> None:
    with pytest.raises(RuntimeError, match="give its `lifespan`"):
        asyncio.run(asgi_application({})({"type": "http"}, nothing, nothing))


async def nothing(*message: Any) -> Any:
    return None


def test_an_application_that_is_open_is_not_opened_again() -> None:
    """By an application and its router, for example: the end of the inner one would close both."""
    application = asgi_application(dev_root_token=ROOT)

    async def enter_twice() -> None:
        async with application.lifespan():
            with pytest.raises(RuntimeError, match="open already"):
                async with application.lifespan():
                    pytest.fail("a second service is open")
            health: list[Any] = []

            async def send(message: Any) -> None:
                health.append(message)

            await application({**HEALTH, "path": "/v1/sys/health"}, no_body, send)
            assert health[0]["status"] == 200
        async with application.lifespan():
            pass

    asyncio.run(enter_twice())


HEALTH: Final = {"type": "http", "method": "GET", "query_string": b"", "headers": []}


async def no_body() -> dict[str, Any]:
    return {"type": "http.request", "body": b""}


@pytest.mark.parametrize(
    "path, prefix, text",
    [
        ("/cloudid/v1/sys/health", "", "nothing is at /cloudid/v1/sys/health: paths begin with /v1/. If this one"),
        ("/cloudid/v1/sys/health", "/cloudid", "initialized"),
        ("/v1/sys/health", "/cloudid", "initialized"),
        ("/v1/nothing", "", "errors"),
    ],
)
def test_a_path_outside_the_api_is_shown_and_a_prefix_removed(path: str, prefix: str, text: str) -> None:
    application = asgi_application(dev_root_token=ROOT, prefix=prefix)
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def ask() -> None:
        async with application.lifespan():
            await application({**HEALTH, "path": path}, no_body, send)

    asyncio.run(ask())
    assert text in said[-1]["body"].decode()


def test_a_prefix_is_a_path() -> None:
    with pytest.raises(ValueError, match="must begin with /"):
        asgi_application({}, prefix="cloudid")
    with pytest.raises(ValueError, match="set prefix"):
        asgi_application({}).in_front_of(nothing)


def test_websockets_are_refused() -> None:
    told: list[Any] = []

    async def send(message: Any) -> None:
        told.append(message)

    asyncio.run(asgi_application({})({"type": "websocket"}, nothing, send))
    assert told == [{"type": "websocket.close"}]


@pytest.mark.parametrize(
    "scope, target",
    [
        ({"raw_path": b"/v1/a%20b", "path": "/v1/a b"}, "/v1/a%20b"),
        ({"path": "/v1/a b?"}, "/v1/a%20b%3F"),
        ({"raw_path": b"/c/v1/a", "path": "/c/v1/a", "root_path": "/c"}, "/v1/a"),
        ({"raw_path": b"/v1/a", "path": "/v1/a", "root_path": "/c"}, "/v1/a"),
        ({"raw_path": b"/cc/v1/a", "path": "/cc/v1/a", "root_path": "/c"}, "/cc/v1/a"),
        ({"raw_path": b"/%63/d%20e/v1/a%2Fb", "path": "/c/d e/v1/a/b", "root_path": "/c/d e"}, "/v1/a%2Fb"),
        ({"raw_path": b"/v1/a", "path": "/v1/a", "query_string": b"list=true"}, "/v1/a?list=true"),
        ({"raw_path": b"/v1/a?list=true", "path": "/v1/a", "query_string": b"list=true"}, "/v1/a?list=true"),
        ({"raw_path": b"HTTP://host:80/v1/a%2Fb", "path": "HTTP://host:80/v1/a/b"}, "/v1/a%2Fb"),
        ({"raw_path": b"http://host", "path": "http://host", "query_string": b"a"}, "/?a"),
    ],
)
def test_the_target_is_what_the_client_sent_without_the_prefix(scope: dict[str, Any], target: str) -> None:
    assert target_of({"query_string": b"", **scope}) == target
