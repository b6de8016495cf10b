"""A host of one's own: the pages' conforms, and its application serves, works in the background, and gives back."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import httpx
import pytest

from cloudid_core import Request, Response, Settings
from cloudid_core.effects import Instant, Now, Sleep
from cloudid_core.testing import check_host, provider_checks
from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.settings.settings import clouds_at
from tests.hosts.opened import serving
from tests.pages.blocks import python_of
from tests.waiting import PATIENCE, PATIENT, until

from .story import RESOURCE, login_form

BLOCKS: Final = [python_of("docs/how-to/write-a-host.md")[0], *python_of("docs/how-to/serve-with-a-host.md")]
STEP: Final = 0.01


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the code of the page defines."""
    monkeypatch.setenv("CLOUDID_MASTER_KEY", "5a" * 32)
    names: dict[str, Any] = {"print": lambda event: None}
    exec("\n\n".join(BLOCKS), names)
    return names


@asynccontextmanager
async def alive(page: dict[str, Any]) -> AsyncIterator[None]:
    """The application, as an ASGI server starts and ends it."""
    messages, said = asyncio.Queue[dict[str, Any]](), asyncio.Queue[dict[str, Any]]()
    running = asyncio.create_task(page["app"]({"type": "lifespan"}, messages.get, said.put))
    messages.put_nowait({"type": "lifespan.startup"})
    assert (await said.get())["type"] == "lifespan.startup.complete"
    try:
        yield
    finally:
        messages.put_nowait({"type": "lifespan.shutdown"})
        await asyncio.wait_for(running, PATIENCE)
    assert (await said.get())["type"] == "lifespan.shutdown.complete"


def test_it_is_short() -> None:
    """Host and application together; blank lines do not count."""
    assert sum(bool(line.strip()) for block in BLOCKS for line in block.splitlines()) < 90


def test_its_host_conforms(page: dict[str, Any]) -> None:
    async def scenario() -> None:
        host = page["MemoryHost"]()
        await check_host(host)
        with serving() as url, socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # taken, but nobody listens
            await check_host(host, provider_checks(url, f"http://127.0.0.1:{closed.getsockname()[1]}"))
        await host.http.aclose()

    asyncio.run(scenario())


def test_a_machine_logs_in(page: dict[str, Any]) -> None:
    async def scenario(world: Any, form: Any) -> None:
        transport = httpx.ASGITransport(page["app"])
        async with alive(page), httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            headers = {"X-Service-Token": page["root_token"].reveal()}
            assert (await client.get("/v1/sys/health?standbyok=true")).status_code == 200
            assert (await client.get("/v1/auth/cloud/config")).status_code == 403
            assert (await client.post("/v1/auth/cloud/login", content=b" " * (2**20 + 1))).status_code == 413
            config = {"tenant_id": world["tenant"], "resource": RESOURCE}
            config |= {name: world["applications"][0][name] for name in ("client_id", "client_secret")}
            for path, body in (("config", config), ("role/all", {"bound_subscription_ids": world["subscriptions"]})):
                answer = await client.post(f"/v1/auth/cloud/{path}", json=body, headers=headers)
                assert answer.status_code == 204
            answer = await client.post("/v1/auth/cloud/login", json=form)
            assert answer.json()["auth"]["token_policies"] == ["default"]

    with start(Simulator()) as cloud:
        page["Settings"] = partial(Settings, clouds=clouds_at(cloud.url))
        world = httpx.get(f"{cloud.url}/simulator/world", **PATIENT).json()
        asyncio.run(scenario(world, login_form(cloud.url, world["machines"][0])))


class Lending:
    """A service whose answers hold a lease that is due in no time. It notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = 0

    async def handle(self, request: Request) -> Response:
        return Response(200, json.dumps(request.target).encode(), holds="a lease", wake_at=await Now())

    async def body_limit(self, head: Request) -> int:
        return 4096

    async def undelivered(self, response: Response) -> None:
        self.asked.append(f"undelivered {response.holds}")

    async def tick(self) -> Instant:
        self.asked.append("tick")
        await Sleep(STEP)
        if self.fails:
            self.fails -= 1
            raise LookupError
        return await Now() + 3600

    async def stop(self) -> None:
        self.asked.append("stop")

    async def upkeep(self) -> Instant:
        return await Now() + 3600


def lending(page: dict[str, Any]) -> Lending:
    """The page's application with this service instead of the real one."""
    service = Lending()

    async def opened(settings: Settings) -> Lending:
        return service

    page["open_service"] = opened
    return service


async def ask(page: dict[str, Any], send: Callable[[Any], Awaitable[None]]) -> None:
    scope = {
        "type": "http",
        "method": "GET",
        "raw_path": b"/v1/a%2Fb",
        "query_string": b"c=d",
        "headers": [],
        "client": ("127.0.0.1", 1),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    await page["app"](scope, receive, send)


def test_a_request_that_makes_something_due_wakes_the_background(page: dict[str, Any]) -> None:
    service = lending(page)
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def scenario() -> None:
        async with alive(page):
            await until(asyncio.sleep, lambda: service.asked == ["tick"])
            await ask(page, send)  # during the first round
            await until(asyncio.sleep, lambda: service.asked == ["tick"] * 2)

    asyncio.run(scenario())
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert json.loads(sent[1]["body"]) == "/v1/a%2Fb?c=d"


def test_an_answer_that_cannot_be_written_is_given_back(page: dict[str, Any]) -> None:
    service = lending(page)

    async def send(message: dict[str, Any]) -> None:
        raise ConnectionResetError

    async def scenario() -> None:
        async with alive(page):
            with pytest.raises(ConnectionResetError):
                await ask(page, send)
            await until(asyncio.sleep, lambda: "undelivered a lease" in service.asked and service.asked[-1] == "tick")

    asyncio.run(scenario())


def test_the_end_hands_the_background_work_over(page: dict[str, Any]) -> None:
    service = lending(page)

    async def scenario() -> None:
        async with alive(page):
            await until(asyncio.sleep, lambda: service.asked == ["tick"])

    asyncio.run(scenario())
    assert service.asked == ["tick", "stop"]


def test_a_round_that_fails_is_followed_by_another(page: dict[str, Any]) -> None:
    service = lending(page)
    service.fails = 1

    async def scenario() -> None:
        async with alive(page):
            await until(asyncio.sleep, lambda: service.asked == ["tick"])
            await asyncio.sleep(5 * STEP)
            page["woken"].set()
            await until(asyncio.sleep, lambda: service.asked == ["tick"] * 2)

    asyncio.run(scenario())
