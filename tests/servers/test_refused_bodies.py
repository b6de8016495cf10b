"""Large requests that are refused are gone with their answers: on both runtimes, and in the memory of both servers."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from types import FrameType
from typing import Final

import httpx
import pytest

from cloudid_core import Request, Secret, Settings, initialise, open_service
from cloudid_core.dispatch import Exchange
from cloudid_core.run import run
from cloudid_servers.aiohttp_server.application import aiohttp_application
from cloudid_servers.asgi import asgi_application
from cloudid_servers.host.app import App
from cloudid_servers.host.host import Host
from cloudid_servers.http1.heads import Head
from cloudid_servers.logs.logs import open_log
from tests.hosts.opened import RUNTIMES, on
from tests.waiting import PATIENT

from . import foreign
from .running import SERVERS, Running
from .running import initialise as initialise_store
from .story import ROOT

SETTINGS: Final = Settings(master_key=Secret("5a" * 32))
BODY: Final = json.dumps({"policy": "x" * 900_000, "role": "r", "jwt": "a.b.c"}).encode()
REFUSED: Final = ("sys/policies/acl/p", "nothing/here", "auth/cloud/login")
"""By a policy, as no path, and as a login."""
MANY: Final = 1000
MOST_GROWTH: Final = 100 * 2**20
"""Bytes: far less than the bodies of a tenth of the requests."""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_refused_request_leaves_nothing_for_the_collector(runtime: str) -> None:
    async def scenario(host: Host) -> list[object]:
        await run(initialise(SETTINGS, Secret("root")), host)
        app = App(await run(open_service(SETTINGS), host), host, open_log("error"), ())
        gc.collect()
        gc.disable()
        try:
            for path in REFUSED:
                head = Head("POST", f"/v1/{path}", {"x-service-token": "root"}, closes=False, length=5)
                response = await app.answer_in_time(app.begin(head, b"[1, 2", "127.0.0.1"))
                assert response.status >= 400
                del response, head
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            return [each for each in gc.garbage if isinstance(each, Request | Exchange | FrameType)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
            await app.finish()

    assert on(runtime, scenario) == []


def resident(process: int) -> int:
    """The memory of a process, in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def assert_memory_stays_flat(process: int, url: str, root: str, path: str) -> None:
    """Send large requests that are refused, and compare the memory of the process before and after."""
    with httpx.Client(base_url=f"{url}/v1/", **PATIENT) as client:
        token = client.post("auth/token/create", headers={"x-service-token": root}, json={"policies": "default"})
        headers = {"x-service-token": token.json()["auth"]["client_token"]}

        def refuse(times: int) -> None:
            for _ in range(times):
                assert client.post(path, headers=headers, content=BODY).status_code >= 400

        refuse(50)
        before = resident(process)
        refuse(MANY)
        assert resident(process) - before < MOST_GROWTH


@pytest.mark.long
@pytest.mark.parametrize("path", REFUSED)
@pytest.mark.parametrize("server", SERVERS)
def test_the_memory_of_a_server_stays_flat(server: str, path: str, tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    settings.write_text(f'[server]\nlisten = "127.0.0.1:0"\nstore = "{tmp_path}/store"\nkey_file = "{tmp_path}/key"\n')
    root = initialise_store(server, settings)
    with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
        assert_memory_stays_flat(running.process.pid, running.url, root, path)


@pytest.mark.long
@pytest.mark.parametrize("path", REFUSED)
@pytest.mark.parametrize("by", foreign.SERVERS)
def test_the_memory_of_an_application_that_embeds_the_service_stays_flat(by: str, path: str) -> None:
    make = aiohttp_application if by == "aiohttp" else asgi_application
    with foreign.served(by, make(dev_root_token=ROOT)) as url:
        assert_memory_stays_flat(os.getpid(), url, ROOT, path)
