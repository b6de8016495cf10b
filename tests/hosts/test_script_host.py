"""The smallest host, which the page of recipes shows: it is short, conforms, and serves the main job."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cloudid_core import Request, Secret, Settings, initialise, open_service, run_now
from cloudid_core.clouds import CLOUDS, Cloud
from cloudid_core.testing import check_host_now
from cloudid_servers.conformance import served_provider
from cloudid_servers.provider_simulator import Simulator, start
from tests.pages.blocks import python_of

BLOCKS = python_of("docs/how-to/recipes.md")[:2]


def test_the_host_is_short() -> None:
    """An embedder's host has at most fifty lines."""
    assert len(BLOCKS[0].strip().splitlines()) <= 50


def test_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Both blocks, one after the other, as somebody would paste them."""
    exec("\n".join(BLOCKS), {})


def test_the_host_conforms(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(BLOCKS[0], names)
    with served_provider() as provider:
        host = names["ScriptHost"]()
        check_host_now(host)
        check_host_now(host, provider.checks)
        host.http.close()


def test_a_machine_logs_in(capsys: pytest.CaptureFixture[str]) -> None:
    """The third host serves the main job, against the simulator over HTTP."""
    names: dict[str, Any] = {}
    exec(BLOCKS[0], names)
    host = names["ScriptHost"]()
    with start(Simulator(clock=time.time)) as running:
        cloud = Cloud(
            login=f"{running.url}/login",
            resource_manager=f"{running.url}/arm",
            resource_audience="https://management.core.windows.net/",
            directory=f"{running.url}/graph",
        )
        settings = Settings(master_key=Secret("5a" * 32), clouds=dict.fromkeys(CLOUDS, cloud))
        root = run_now(initialise(settings), host).reveal()
        service = run_now(open_service(settings), host)

        def ask(path: str, body: dict[str, Any], token: str = "") -> Any:
            from msgspec import json

            request = Request("POST", f"/v1/{path}", {"x-service-token": token}, json.encode(body))
            response = run_now(service.handle(request), host)
            assert response.status in (200, 204), response.body
            return json.decode(response.body) if response.body else None

        world = host.http.get(f"{running.url}/simulator/world").json()
        machine, application = world["machines"][0], world["applications"][0]
        audience = "https://management.azure.com/"
        identity = host.http.get(
            f"{running.url}/machines/{machine['name']}/metadata/identity/oauth2/token",
            params={"api-version": "2018-02-01", "resource": audience},
            headers={"Metadata": "true"},
        ).json()
        config = {"tenant_id": world["tenant"], "resource": audience}
        ask("auth/cloud/config", {**config, **{k: application[k] for k in ("client_id", "client_secret")}}, root)
        ask("auth/cloud/role/app", {"bound_locations": [machine["location"]]}, root)
        form = {"role": "app", "jwt": identity["access_token"], "vm_name": machine["name"]}
        form |= {"subscription_id": machine["subscription"], "resource_group_name": machine["resource_group"]}
        assert ask("auth/cloud/login", form)["auth"]["token_policies"] == ["default"]
    host.http.close()
