"""For tests of applications that embed the service: a simulated Azure in this process, and a service that knows it.

with cloud() as azure:
    cloudid = azure.asgi_application()
    async with cloudid.lifespan():
        await cloudid.call("POST", "auth/cloud/login", azure.login("web"))
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from attrs import evolve, field, frozen
from msgspec import json

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.events import Event
from cloudid_core.values.secret import Secret

from . import extras
from .provider_simulator import Running, Simulator, start

with extras.named():
    from .adapters import AsgiApplication, Opened
    from .asgi import opener
    from .command import Options, first_writes, set_up

__all__ = ["Azure", "cloud"]

RESOURCE: Final = "https://management.azure.com/"
ROOT_TOKEN: Final = "root"
"""The root token of the service."""


@frozen
class Azure:
    """Simulates Azure at `url`. `world` is what it has: tenant, subscriptions, machines, applications."""

    url: str
    world: dict[str, Any] = field(repr=False)
    _running: Running = field(repr=False, alias="running")

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Call the simulator's own API, such as `POST /simulator/faults`. Raises `LookupError` if it refuses."""
        answer = self._answer(method, path, b"" if body is None else json.encode(body))
        return json.decode(answer.body) if answer.body else None

    def machine(self, name: str) -> dict[str, Any]:
        """Return a machine of the world. Raises `LookupError` if there is none of this name."""
        for each in self.world["machines"]:
            if each["name"] == name:
                found: dict[str, Any] = each
                return found
        raise LookupError(f"the simulated Azure has no machine {name}")

    def token(self, name: str, resource: str = RESOURCE) -> str:
        """Return the token that a machine gets from its metadata service."""
        self.machine(name)
        query = f"api-version=2018-02-01&resource={resource}"
        answer = self._answer("GET", f"/machines/{name}/metadata/identity/oauth2/token?{query}")
        token: str = json.decode(answer.body)["access_token"]
        return token

    def login(self, name: str, role: str = "web") -> dict[str, str]:
        """Return the body of a machine's login."""
        machine = self.machine(name)
        place = {"subscription_id": machine["subscription"], "resource_group_name": machine["resource_group"]}
        return {"role": role, "jwt": self.token(name), **place}

    def asgi_application(self, prefix: str = "", on_event: Callable[[Event], None] | None = None) -> AsgiApplication:
        """Return a service in memory with the root token `root`, connected to this Azure.

        It has the mounts `auth/cloud` with the role `web`, and `cloud` with the role `reader`.
        """
        options = Options(is_dev=True, root_token=Secret(ROOT_TOKEN), provider=self.url)
        open_empty = opener(lambda: set_up(options), on_event)

        @asynccontextmanager
        async def open_connected() -> AsyncIterator[Opened]:
            async with open_empty() as service:
                for path, body in first_writes(self.world):
                    answer = await service.call("POST", path, body, token=ROOT_TOKEN)
                    if not answer.is_done:
                        raise LookupError(f"{path} cannot be written: {answer.errors}")
                yield service

        return AsgiApplication(open_connected, prefix)

    def _answer(self, method: str, path: str, body: bytes = b"") -> HttpResponse:
        request = HttpRequest(method, f"{self.url}{path}", {"metadata": "true"}, body)
        response = self._running.answer(request).response
        if response.status >= 400:
            raise LookupError(f"{method} {path}: status {response.status} {response.body.decode(errors='replace')}")
        return response


@contextmanager
def cloud(seed: int = 0) -> Iterator[Azure]:
    """Run a simulated Azure in this process, at an address of loopback, until the block ends."""
    with start(Simulator(seed)) as running:
        bare = Azure(running.url, {}, running)
        yield evolve(bare, world=bare.ask("GET", "/simulator/world"))
