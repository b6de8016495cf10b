"""A server whose service does what its tests say: `python -m tests.servers.fake_server RUNTIME [SETTING=VALUE …]`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from cloudid_core.dispatch.body_limit import UNASKED
from cloudid_core.effects import ABSENT, Commit, Instant, Now, RandomBytes, ReadEntry, Record, Sleep
from cloudid_core.errors import Code, Refused
from cloudid_core.events import RequestAnswered
from cloudid_core.forms.fields import parse
from cloudid_core.messages.response import Request, Response, render_refusal
from cloudid_core.values.network import networks
from cloudid_servers.command.bootstrap import Setup
from cloudid_servers.processes import Reload
from cloudid_servers.settings.settings import ServerSettings, SettingsFile
from cloudid_servers.stores import Store
from cloudid_servers.stores.memory import InMemory

from .handling import Handling

BODY_LIMIT: Final = 2 * UNASKED
FAR: Final = 3600.0
STEP: Final = 0.01
MUCH: Final = 2**26
"""Bytes that no socket buffer holds."""
NOTE: Final = "NOTE"
"""Environment variable: a file that says that an answer was not delivered."""


class FakeService(Handling):
    """Echoes, waits, fails, and counts what its host asks of it."""

    def __init__(self) -> None:
        self.handled = 0

    async def handle(self, request: Request) -> Response:
        path, _, query = request.target.partition("?")
        self.handled += 1
        response = await self._answer(request, path, query)
        await Record(
            RequestAnswered(
                request_id="", time=await Now(), status=response.status, operation=request.method, path=path
            )
        )
        return response

    async def limit_in_time(self, head: Request) -> int:
        return BODY_LIMIT

    async def body_limit(self, head: Request) -> int:
        return BODY_LIMIT

    async def _answer(self, request: Request, path: str, query: str) -> Response:
        if request.body_is_cut:
            return render_refusal(Refused(Code.BODY_TOO_LARGE))
        match path:
            case "/echo":
                return answer(
                    method=request.method,
                    target=request.target,
                    headers={name: request.headers.get(name) for name in ("x-one", "x-two", "content-type")},
                    body=request.body.decode("latin-1"),
                    remote_address=request.remote_address,
                )
            case "/number":
                return answer(number=self.handled)
            case "/nothing":
                return Response(204)
            case "/v1/sys/health":
                return answer(health=True)
            case "/health":
                return Response(473, b"{}\n")
            case "/sleep":
                await Sleep(float(query))
                return answer(slept=query)
            case "/waits":
                await gate(Path(query))
                return answer()
            case "/holds":
                await gate(Path(query))
                return replace(answer(), holds="a lease")
            case "/holds-much":
                return replace(answer(), body=bytes(MUCH), holds="a lease")
            case "/large":
                return replace(answer(large="a" * int(query)), holds="much")
            case "/visit":
                return replace(answer(), wake_at=await Now())
            case "/write":
                return answer(count=await count(query, 1))
            case "/count":
                return answer(count=await count(query, 0))
        raise LookupError("a bug, with a secret in its text: hunter2")

    async def undelivered(self, response: Response) -> None:
        note = f"undelivered {response.holds}"
        await count(note.replace(" ", "-"), 1)
        leave_note(note)

    async def tick(self) -> Instant:
        await count("tick", 1)
        return await Now() + FAR

    async def upkeep(self) -> Instant:
        await count("upkeep", 1)
        return await Now() + FAR

    async def stop(self) -> None:
        """There is nothing to hand over."""


async def gate(folder: Path) -> None:
    """Wait until the folder has a file `open`. A file `begun-…` says that this request waits."""
    (folder / f"begun-{(await RandomBytes(8)).hex()}").touch()
    while not (folder / "open").exists():
        await Sleep(STEP)


def leave_note(text: str) -> None:
    if path := os.environ.get(NOTE):
        Path(path).write_text(text)


async def count(key: str, step: int) -> int:
    entry = await ReadEntry(key)
    number = int(entry.value) + step if entry else step
    if step:
        await Commit({key: entry.version if entry else ABSENT}, {key: str(number).encode()})
    return number


def answer(**members: Any) -> Response:
    return Response(200, json.dumps(members).encode() + b"\n")


async def open_fake() -> FakeService:
    return FakeService()


def setup_of(*settings: str, store: Store | None = None) -> Setup:
    """What a server with this service is started with."""
    options = dict(setting.split("=", 1) for setting in settings)
    trusted_proxies = networks(options.pop("trusted_proxies", "127.0.0.0/8"))
    given = parse(ServerSettings, options)
    file = SettingsFile(server=ServerSettings(**{"listen": "127.0.0.1:0", **given.values}))
    return Setup(
        server=file.server,
        store=store or InMemory(),
        open=lambda _: open_fake(),
        trusted_proxies=trusted_proxies,
        reload=Reload(file, lambda: file),
    )


def main(runtime: str, *settings: str, store: Store | None = None) -> None:
    if runtime == "trio":
        from cloudid_servers.trio_server.serve import serve
    else:
        from cloudid_servers.aiohttp_server.serve import serve
    serve(setup_of(*settings, store=store))


if __name__ == "__main__":
    main(*sys.argv[1:])
