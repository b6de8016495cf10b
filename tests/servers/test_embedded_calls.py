"""An application uses the service that it embeds: calls, a dependency of FastAPI, events, and a simulated Azure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from fastapi import Depends, FastAPI

from cloudid_core.events import Event, RequestAnswered
from cloudid_servers.asgi import AsgiApplication, asgi_application
from cloudid_servers.testing import Azure, cloud
from cloudid_servers.wsgi import wsgi_application
from tests.pages.blocks import blocks_of

POLICY = 'path "orders" { capabilities = ["read"] }'


def on_service(
    work: Callable[[AsgiApplication, Azure], Awaitable[None]], on_event: Callable[[Event], None] | None = None
) -> None:
    """Do some work with an open service that is connected to a simulated Azure."""

    async def opened(azure: Azure) -> None:
        cloudid = azure.asgi_application(on_event=on_event)
        async with cloudid.lifespan():
            await work(cloudid, azure)

    with cloud() as azure:
        asyncio.run(opened(azure))


def test_a_machine_of_the_simulated_azure_logs_in_without_a_connection() -> None:
    async def work(cloudid: AsgiApplication, azure: Azure) -> None:
        answer = await cloudid.call("POST", "auth/cloud/login", azure.login("web"))
        token = answer.body["auth"]["client_token"]
        own = await cloudid.call("GET", "auth/token/lookup-self", token=token)
        assert (own.status, own.data["policies"]) == (200, ["app", "default"])
        credentials = await cloudid.call("GET", "cloud/creds/reader", token=token)
        assert credentials.data["client_id"]
        assert azure.ask("GET", "/simulator/ledger")
        refused = await cloudid.call("GET", "sys/mounts", token=token)
        assert (refused.is_done, refused.status, refused.data) == (False, 403, {})
        assert "permission denied" in refused.errors[0]
        assert (await cloudid.call("POST", "auth/token/revoke-self", token=token)).body is None

    on_service(work)


def test_the_simulated_azure_names_what_it_has_not() -> None:
    with cloud() as azure:
        with pytest.raises(LookupError, match="no machine absent"):
            azure.token("absent")
        with pytest.raises(LookupError, match="status 404"):
            azure.ask("GET", "/nowhere")
        assert azure.token("web", "api://orders").count(".") == 2


def test_the_programs_of_the_page_work() -> None:
    """A test of an application, and routes behind policies, as the page shows them."""
    programs = {block.marks.get("file"): block.text for block in blocks_of("docs/how-to/embed.md", "python")}
    names: dict[str, Any] = {}
    exec(programs["test_own_application.py"], names)
    names["test_a_machine_gets_credentials"]()
    exec(programs["own_routes.py"], names)
    assert {route.path for route in names["app"].routes} >= {"/orders", "/cloudid"}


def test_a_call_of_a_service_that_is_not_open_says_so() -> None:
    with pytest.raises(RuntimeError, match="not open"):
        asyncio.run(asgi_application(dev_root_token="root").call("GET", "sys/health"))


def test_an_application_of_wsgi_calls_its_service() -> None:
    with wsgi_application(dev_root_token="root") as cloudid:
        assert cloudid.call("GET", "auth/token/lookup-self", token="root").data["policies"] == ["root"]
        assert cloudid.call("GET", "auth/token/lookup-self").status == 403


@pytest.mark.parametrize(
    "policies, header, status",
    [
        ("orders", "X-Vault-Token", 200),
        ("orders", "Authorization", 200),
        ("root", "X-Vault-Token", 200),
        ("default", "X-Vault-Token", 403),
        ("", "X-Vault-Token", 401),
        ("", "", 401),
    ],
)
def test_routes_of_fastapi_are_behind_tokens_and_policies(policies: str, header: str, status: int) -> None:
    async def work(cloudid: AsgiApplication, azure: Azure) -> None:
        app = FastAPI()

        @app.get("/orders", dependencies=[Depends(cloudid.require("orders", "read"))])
        async def orders() -> str:
            return "all orders"

        await cloudid.call("POST", "sys/policies/acl/orders", {"policy": POLICY}, token="root")
        token = "invalid"
        if policies:
            made = await cloudid.call("POST", "auth/token/create", {"policies": [policies]}, token="root")
            token = made.body["auth"]["client_token"]
        headers = {header: f"Bearer {token}" if header == "Authorization" else token} if header else {}
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            answer = await client.get("/orders", headers=headers)
        assert answer.status_code == status
        assert ("www-authenticate" in answer.headers) == (status == 401)

    on_service(work)


def test_events_reach_the_application() -> None:
    events: list[Any] = []

    async def work(cloudid: AsgiApplication, azure: Azure) -> None:
        events.clear()
        await cloudid.call("GET", "sys/health")

    on_service(work, events.append)
    assert [event.path for event in events if isinstance(event, RequestAnswered)] == ["sys/health"]


@pytest.mark.parametrize(("address", "status"), [("203.0.113.9", 200), ("198.51.100.1", 401)])
def test_a_route_sees_where_its_caller_is(address: str, status: int) -> None:
    """As for tokens that are bound to addresses."""

    async def work(cloudid: AsgiApplication, azure: Azure) -> None:
        app = FastAPI()

        @app.get("/orders", dependencies=[Depends(cloudid.require("orders", "read"))])
        async def orders() -> str:
            return "all orders"

        role = {"allowed_policies": ["orders", "default"], "token_bound_cidrs": ["203.0.113.0/24"]}
        await cloudid.call("POST", "sys/policies/acl/orders", {"policy": POLICY}, token="root")
        await cloudid.call("POST", "auth/token/roles/bound", role, token="root")
        made = await cloudid.call("POST", "auth/token/create/bound", {"policies": ["orders"]}, token="root")
        transport = httpx.ASGITransport(app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            answer = await client.get("/orders", headers={"X-Vault-Token": made.body["auth"]["client_token"]})
        assert answer.status_code == status, answer.text

    on_service(work)


def test_callers_who_send_too_much_do_not_stop_others() -> None:
    """Each has a quota of its own, by its address."""

    async def work(cloudid: AsgiApplication, azure: Azure) -> None:
        app = FastAPI()

        @app.get("/orders", dependencies=[Depends(cloudid.require("orders", "read"))])
        async def orders() -> str:
            return "all orders"

        quota = {"rate": 2, "interval": "1h", "path": ""}
        await cloudid.call("POST", "sys/quotas/rate-limit/all", quota, token="root")

        async def ask(address: str, token: str) -> httpx.Response:
            transport = httpx.ASGITransport(app, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.get("/orders", headers={"X-Vault-Token": token})

        answers = [await ask("198.51.100.1", "junk") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [401, 401, 429]
        assert int(answers[-1].headers["retry-after"]) > 0
        assert (await ask("203.0.113.9", "root")).status_code == 200

    on_service(work)


@pytest.mark.parametrize(
    ("path", "capability"),
    [("orders", "deny"), ("orders", "reed"), ("v1/orders", "read"), ("a/../orders", "read"), ("", "read")],
)
def test_a_route_that_no_policy_could_grant_is_refused(path: str, capability: str) -> None:
    with pytest.raises(ValueError, match=r"^(path|capability) must be"):
        asgi_application(dev_root_token="root").require(path, capability)
