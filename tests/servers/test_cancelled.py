"""Whoever embeds the service may cancel a request at any moment: only what was delivered lives.

The applications are called directly and by other servers, on asyncio and on trio, over a store that waits for its disk.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import httpx
import pytest
import trio
from aiohttp import web

from cloudid_servers.aiohttp_server.application import aiohttp_application
from cloudid_servers.asgi import AsgiApplication, asgi_application
from cloudid_servers.provider_simulator import Simulator, start
from tests.sampling import Sample
from tests.waiting import PATIENT, STEP, wait_until

from .foreign import CANCELS_HANDLERS, served
from .running import initialise

SETTINGS: Final = """
[clouds.CloudPublicCloud]
login = "{0}/login"
resource_manager = "{0}/arm"
directory = "{0}/graph"
"""
MOMENTS: Final = 96
"""So many moments of a request are tried, all in a thorough run."""
GRACE: Final = 1.2
"""Some of the moments come after the usual end of the request."""
TOKENS: Final = "auth/token/accessors?list=true"
LEASES: Final = "sys/leases/lookup/cloud/creds/existing?list=true"
RUNTIMES: Final = ("asyncio", "trio")

Ask: TypeAlias = Callable[[str, str, object], Awaitable[tuple[int, Any]]]
"""The status and the body of the answer to a request: method, path and body."""


@pytest.fixture
def cloud() -> Iterator[str]:
    with start(Simulator()) as simulator:
        yield simulator.url


@pytest.fixture
def settings(cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cloudid.toml"
    path.write_text(SETTINGS.format(cloud))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def root_token(settings: Path) -> str:
    return initialise("aiohttp_server", settings)


def asker(application: AsgiApplication, token: str, next_turn: Callable[[], Awaitable[object]]) -> Ask:
    """Calls an application, as its server would. An answer counts as received with its last piece."""

    async def ask(method: str, path: str, body: object = None) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": f"/v1/{path}",
            "query_string": query.encode(),
            "headers": [(b"x-service-token", token.encode())],
            "client": ("127.0.0.1", 1),
        }
        messages = [{"type": "http.request", "body": content}]
        answer: dict[str, Any] = {"body": b""}

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            while True:
                await next_turn()

        async def send(message: Any) -> None:
            await next_turn()
            answer["status"] = message.get("status", answer.get("status"))
            answer["body"] += message.get("body", b"")
            answer["is_whole"] = message["type"] == "http.response.body" and not message.get("more_body", False)

        try:
            await application(scope, receive, send)
        except BaseException:
            if not answer.get("is_whole"):
                raise
        return answer["status"], json.loads(answer["body"] or b"null")

    return ask


def engine_of(scene: Any) -> tuple[tuple[str, object], ...]:
    """What is written for an engine with a role of an application: paths and bodies."""
    root, other = scene["applications"][:2]
    config = {"tenant_id": scene["tenant"], "subscription_id": scene["subscriptions"][0]}
    config |= {"client_id": root["client_id"], "client_secret": root["client_secret"]}
    role = {"application_object_id": other["object_id"], "ttl": "1h"}
    return ("cloud/config", {**config, "allowed_application_ids": None}), ("cloud/roles/existing", role)


async def count(ask: Ask, path: str) -> int:
    status, answer = await ask("GET", path, None)
    return len(answer["data"]["keys"]) if status == 200 else 0


async def cancelled_on_asyncio(work: Callable[[], Awaitable[object]], seconds: float) -> bool:
    """Whether the work was done before it was cancelled."""
    try:
        async with asyncio.timeout(seconds):
            await work()
    except TimeoutError:
        return False
    return True


async def cancelled_on_trio(work: Callable[[], Awaitable[object]], seconds: float) -> bool:
    with trio.move_on_after(seconds) as scope:
        await work()
        return True
    assert scope.cancelled_caught
    return False


@pytest.mark.filterwarnings("ignore:.*ByteStream.__aiter__:pytest.PytestUnraisableExceptionWarning")  # of httpcore
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("path, listing", [("auth/token/create", TOKENS), ("cloud/creds/existing", LEASES)])
def test_a_cancelled_request_leaves_nothing_alive(
    path: str, listing: str, runtime: str, cloud: str, settings: Path, root_token: str, sample: Sample
) -> None:
    scene = httpx.get(f"{cloud}/simulator/world", **PATIENT).json()
    is_trio = runtime == "trio"
    sleep: Callable[[float], Awaitable[object]] = trio.sleep if is_trio else asyncio.sleep
    cancelled = cancelled_on_trio if is_trio else cancelled_on_asyncio
    method = "POST" if path.startswith("auth") else "GET"

    async def scenario() -> None:
        application = asgi_application(str(settings))
        async with application.lifespan():
            ask = asker(application, root_token, lambda: sleep(0))
            for written, fields in engine_of(scene):
                assert (await ask("POST", written, fields))[0] < 300
            before = await count(ask, listing)

            async def request() -> None:
                status, answer = await ask(method, path, None)
                assert status == 200, answer

            begun = time.monotonic()
            await request()
            usual, received = time.monotonic() - begun, 1
            for moment in sample(range(MOMENTS)):
                received += await cancelled(request, usual * GRACE * moment / MOMENTS)

            while await count(ask, listing) != before + received:
                await sleep(STEP)

    trio.run(scenario) if is_trio else asyncio.run(scenario())


def impatient(application: AsgiApplication) -> Any:
    """A middleware that gives a request as many seconds as its header `x-seconds` says."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        try:
            async with asyncio.timeout(float(headers[b"x-seconds"]) if b"x-seconds" in headers else None):
                await application(scope, receive, send)
        except TimeoutError:
            pass  # the server answers 500, or breaks the answer off

    return answer


def keys(client: httpx.Client, path: str) -> set[str]:
    answer = client.get(path)
    return set(answer.json()["data"]["keys"]) if answer.status_code == 200 else set()


@pytest.mark.parametrize("by", ["uvicorn", CANCELS_HANDLERS])
def test_a_lease_that_lives_was_received(by: str, cloud: str, settings: Path, root_token: str, sample: Sample) -> None:
    """A middleware has a time-out, or the handlers of clients that leave are cancelled."""
    scene = httpx.get(f"{cloud}/simulator/world", **PATIENT).json()
    if by == "uvicorn":
        prefix, application = "", impatient(asgi_application(str(settings)))
    else:
        prefix, application = "/cloudid", web.Application()
        application.add_subapp(prefix, aiohttp_application(str(settings)))
    headers = {"x-service-token": root_token}
    with (
        served(by, application) as url,
        httpx.Client(base_url=f"{url}{prefix}/v1/", headers=headers, **PATIENT) as client,
    ):
        for written, fields in engine_of(scene):
            assert client.post(written, json=fields).status_code < 300
        begun = time.monotonic()
        received = {client.get("cloud/creds/existing").json()["lease_id"].rpartition("/")[2]}
        usual = time.monotonic() - begun
        for moment in sample(range(MOMENTS)):
            seconds = max(0.001, usual * GRACE * moment / MOMENTS)
            limited = {"headers": {"x-seconds": str(seconds)}} if by == "uvicorn" else {"timeout": seconds}
            with suppress(httpx.TransportError):
                answer = client.get("cloud/creds/existing", **limited)
                if answer.status_code == 200:
                    received.add(answer.json()["lease_id"].rpartition("/")[2])
        wait_until(lambda: keys(client, LEASES) <= received)
