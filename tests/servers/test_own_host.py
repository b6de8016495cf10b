"""A host of one's own: the pages' conforms, and behind the adapter it serves a machine's login."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import httpx
import pytest
from attrs import evolve

from cloudid_core.testing import CHECKS, check_host
from cloudid_servers.conformance import served_provider
from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.settings.settings import clouds_at
from cloudid_servers.stores.postgres.temporary import free_port
from tests.pages.blocks import blocks_of
from tests.pages.runner import commands
from tests.waiting import PATIENT

from .story import RESOURCE, login_form
from .test_frameworks import started

PAGES: Final = ("write-a-host", "serve-with-a-host")
BLOCKS: Final = {
    block.marks["file"]: block.text for page in PAGES for block in blocks_of(f"docs/how-to/{page}.md", "python")
}
ROOT: Final = "root-of-the-page"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the server of the page defines."""
    monkeypatch.setenv("CLOUDID_MASTER_KEY", "5a" * 32)
    monkeypatch.setenv("ROOT_TOKEN", ROOT)
    module = ModuleType("own_host")
    exec(BLOCKS["own_host.py"], module.__dict__)
    monkeypatch.setitem(sys.modules, "own_host", module)
    names: dict[str, Any] = {"open_host": module.__dict__["open_host"]}
    exec(BLOCKS["own_server.py"], names)
    return names


def test_the_server_is_short() -> None:
    """What every server needs is in the adapter."""
    assert sum(bool(line.strip()) for line in BLOCKS["own_server.py"].splitlines()) <= 12


def test_the_commands_of_the_page_start_the_server(tmp_path: Path) -> None:
    """All but that of pip: the adapters need no package beyond those of the core."""
    for name, text in BLOCKS.items():
        (tmp_path / name).write_text(text)
    [block] = blocks_of("docs/how-to/serve-with-a-host.md", "console")
    _, variables, serve = (command.text for command in commands(block))
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    path = f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH"
    script = f"{path}\n{variables}\nexec {serve} --port {port}"
    with started(["bash", "-c", script], tmp_path, f"{url}/sys/health") as log:
        own = httpx.get(f"{url}/auth/token/lookup-self", headers={"X-Vault-Token": "root"}, **PATIENT)
        assert own.json()["data"]["policies"] == ["root"]
    assert "Traceback" not in log.read_text()


def test_its_host_conforms(page: dict[str, Any]) -> None:
    async def scenario() -> None:
        with served_provider() as provider:
            async with page["open_host"]() as host:
                await check_host(host, [*CHECKS, *provider.checks])

    asyncio.run(scenario())


def test_a_machine_logs_in(page: dict[str, Any]) -> None:
    async def scenario(world: Any, form: Any) -> None:
        app = page["app"]
        transport = httpx.ASGITransport(app)
        async with app.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            headers = {"X-Service-Token": ROOT}
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
        page["settings"] = evolve(page["settings"], clouds=clouds_at(cloud.url))
        world = httpx.get(f"{cloud.url}/simulator/world", **PATIENT).json()
        asyncio.run(scenario(world, login_form(cloud.url, world["machines"][0])))
