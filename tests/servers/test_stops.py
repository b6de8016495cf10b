"""The end of connections, on both servers: what is executed is answered, and so is what came in time."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from attrs import define, field

from tests.waiting import PATIENCE, until

from .deployment import Deployment
from .running import SERVERS, Client, Running, status

RUNTIMES: Final = ("trio", "aiohttp")
FAKE: Final = "tests.servers.fake_server"
REQUEST: Final = b"GET /echo HTTP/1.1\r\nhost: test\r\n\r\n"
STOPS: Final = ((4, 60), pytest.param(50, 200, marks=pytest.mark.long))
BODY: Final = b'{"ttl": "1h", "no_default_policy": true, "policies": ["app"]}'


@define
class Clients:
    """Connections on which each answer is followed by the next request, until the server closes them."""

    port: int
    request: bytes
    accessors: set[str] = field(factory=set)
    """Of the tokens that were answered."""
    statuses: set[int] = field(factory=set)

    async def ask(self, count: int, server: Running, enough: int) -> None:
        """Tell the server to stop once it has answered so many requests on so many connections."""
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(self._ask_on_one())
            goal = len(self.accessors) + enough
            await until(asyncio.sleep, lambda: len(self.accessors) >= goal)
            server.process.send_signal(signal.SIGTERM)

    async def _ask_on_one(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            while True:
                writer.write(self.request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                content = await reader.readexactly(length)
                self.statuses.add(int(head.split(b" ", 2)[1]))
                self.accessors.add(json.loads(content)["auth"]["accessor"])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.mark.parametrize(("stops", "connections"), STOPS)
@pytest.mark.parametrize("name", SERVERS)
def test_a_stopped_server_answers_what_it_executes(name: str, stops: int, connections: int, tmp_path: Path) -> None:
    """Each request makes a token, so that the store tells what was executed."""
    deployment = Deployment.prepare(name, tmp_path, "http://127.0.0.1:1", {})
    head = f"POST /v1/auth/token/create HTTP/1.1\r\nhost: a\r\nx-service-token: {deployment.root}\r\n"
    request = f"{head}content-length: {len(BODY)}\r\n\r\n".encode() + BODY
    answered: set[str] = set()
    before = deployment.stored_tokens()
    for number in range(stops):
        with deployment.serving() as server:
            clients = Clients(server.port, request)
            asyncio.run(clients.ask(connections, server, enough=1 + number * 7 % 50))
            code, log = server.wait()
        assert (code, clients.statuses) == (0, {200}), log[-2000:]
        answered |= clients.accessors
    assert deployment.stored_tokens() - before == len(answered)


@contextmanager
def frozen(running: Running) -> Iterator[None]:
    """The server does nothing for as long as the block lasts, as if the machine had no time for it."""
    running.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        running.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_request_that_came_before_the_idle_timeout_is_answered(runtime: str) -> None:
    """Though the server was too busy to read it until the time was over."""
    with Running(FAKE, runtime, "idle_timeout=1s") as running, Client(running.port) as client:
        assert status(client.ask(REQUEST)) == 200
        with frozen(running):
            client.send(REQUEST)
            time.sleep(1.5)
        assert status(client.receive()) == 200
        assert client.is_closed()
