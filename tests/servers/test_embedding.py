"""The page for embedders: its applications serve beside other routes, and its test tells whether a host conforms."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import httpx
import pytest

from cloudid_core.testing import NotConforming
from cloudid_servers.provider_simulator import Simulator, start
from tests.pages.blocks import blocks_of, python_of
from tests.waiting import PATIENT

from .foreign import served
from .running import initialise
from .story import RESOURCE, login_form

SETTINGS: Final = """
[clouds.CloudPublicCloud]
login = "{0}/login"
resource_manager = "{0}/arm"
directory = "{0}/graph"
"""


PROGRAMS: Final = {block.marks.get("file"): block.text for block in blocks_of("docs/how-to/embed.md", "python")}
IN_FASTAPI, IN_AIOHTTP = PROGRAMS["app.py"], PROGRAMS["with_aiohttp.py"]
HOST, CONFORMANCE = python_of("docs/how-to/write-a-host.md")
SERVED: Final = (("hypercorn on trio", IN_FASTAPI), ("aiohttp", IN_AIOHTTP))
"""By uvicorn its page serves it, which `tests/release` executes."""


def defined(block: str) -> dict[str, Any]:
    """The names that a block defines."""
    names: dict[str, Any] = {}
    exec(block, names)
    return names


@pytest.fixture
def cloud() -> Iterator[str]:
    with start(Simulator()) as simulator:
        yield simulator.url


@pytest.fixture
def root_token(cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a store in the folder that the code runs in."""
    settings = tmp_path / "cloudid.toml"
    settings.write_text(SETTINGS.format(cloud))
    monkeypatch.chdir(tmp_path)
    return initialise("aiohttp_server", settings)


@pytest.mark.parametrize("block", [IN_FASTAPI, IN_AIOHTTP, CONFORMANCE])
def test_it_takes_a_few_lines(block: str) -> None:
    assert sum(bool(line.strip()) for line in block.splitlines()) <= 10


@pytest.mark.parametrize("by, block", SERVED)
def test_a_machine_logs_in_beside_other_routes(by: str, block: str, cloud: str, root_token: str) -> None:
    world = httpx.get(f"{cloud}/simulator/world", **PATIENT).json()
    config = {"tenant_id": world["tenant"], "resource": RESOURCE}
    config |= {name: world["applications"][0][name] for name in ("client_id", "client_secret")}
    form = login_form(cloud, world["machines"][0])
    headers = {"X-Vault-Token": root_token}
    with served(by, defined(block)["app"]) as url, httpx.Client(base_url=f"{url}/cloudid/v1", **PATIENT) as client:
        assert client.post("auth/cloud/config", json=config, headers=headers).status_code == 204
        role = {"bound_subscription_ids": world["subscriptions"]}
        assert client.post("auth/cloud/role/all", json=role, headers=headers).status_code == 204
        assert client.post("auth/cloud/login", json=form).json()["auth"]["token_policies"] == ["default"]
        assert "Hello!" in httpx.get(f"{url}/hello", **PATIENT).text
    with served(by, defined(block)["app"]) as url:  # the store was let go, and has kept everything
        answer = httpx.post(f"{url}/cloudid/v1/auth/cloud/login", json=form, **PATIENT)
        assert answer.json()["auth"]["token_policies"] == ["default"]


def test_the_test_of_the_page_holds_its_host_to_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_host")
    exec(HOST, module.__dict__)
    monkeypatch.setitem(sys.modules, "own_host", module)
    test = defined(CONFORMANCE)["test_the_host_conforms"]
    test()

    async def now(host: object) -> float:
        return 0.0

    monkeypatch.setattr(module.MemoryHost, "now", now)
    with pytest.raises(NotConforming):
        test()
