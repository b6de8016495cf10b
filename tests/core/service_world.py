"""A world with an initialised service in it, and clients that ask it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from cloudid_core import HttpRequest, Request, Secret, Service, Settings, initialise, open_service
from cloudid_core.api.response import ERROR_CODE_HEADER, Response
from cloudid_core.clouds import CLOUDS, Cloud
from cloudid_core.effects import Commit, Program
from cloudid_core.issuer.tokens import IdentityTokens
from cloudid_core.mounts.table import Mount, mount_table
from cloudid_core.testing import World
from servers.provider_simulator import Simulator

ROOT: Final = "root"
HOME: Final = "192.0.2.1"
RESOURCE: Final = "https://management.azure.com/"
ADDRESS: Final = "http://cloud.test"

Reply = tuple[int, Any]
"""A status, and the JSON below it (`None`: nothing)."""


class ServiceWorld(World):
    """The root token's text is `root`. The simulated cloud is only made when somebody needs it."""

    def __init__(self, seed: int = 0, **settings: Any) -> None:
        super().__init__(seed, lambda request: self.cloud.handle(request))
        clouds = {
            name: Cloud(
                login=f"{ADDRESS}/login",
                resource_manager=f"{ADDRESS}/arm",
                resource_audience=cloud.resource_audience,
                directory=f"{ADDRESS}/graph",
            )
            for name, cloud in CLOUDS.items()
        }
        chosen: dict[str, Any] = {"issuer": "https://id.test", **settings}
        self.settings = Settings(master_key=Secret("5a" * 32), clouds=clouds, **chosen)
        self.perform(initialise(self.settings, Secret(ROOT)))
        self.service: Service = self.perform(open_service(self.settings))
        self.last = Response(0)

    @cached_property
    def cloud(self) -> Simulator:
        return Simulator(0, ADDRESS, lambda: self.clock)

    def asking(
        self, method: str, path: str, body: object = None, token: str = ROOT, address: str = HOME, wrap_ttl: str = ""
    ) -> Program[Response]:
        """A request under way."""
        raw = b"" if body is None else msgspec.json.encode(body)
        headers = {"x-service-token": token} if token else {}
        if wrap_ttl:
            headers["x-service-wrap-ttl"] = wrap_ttl
        return self.service.handle(Request(method, f"/v1/{path}", headers, raw, address))

    def ask(self, method: str, path: str, body: object = None, token: str = ROOT, address: str = HOME) -> Reply:
        """The answer to one request; a bug is raised. `last` is the whole response."""
        self.last = self.perform(self.asking(method, path, body, token, address))
        if self.last.status == 500 and self.last.failure:
            raise self.last.failure
        return self.last.status, msgspec.json.decode(self.last.body) if self.last.body else None

    def must(self, method: str, path: str, body: object = None, token: str = ROOT, address: str = HOME) -> Any:
        """The JSON of an answer that has to be a success."""
        status, told = self.ask(method, path, body, token, address)
        assert status in (200, 202, 204), (status, told)
        return told

    def code(self, method: str, path: str, body: object = None, token: str = ROOT, address: str = HOME) -> Reply:
        """Status and first code of an answer that has to be a refusal."""
        status, told = self.ask(method, path, body, token, address)
        assert status >= 400, (status, told)
        return status, self.last.headers[ERROR_CODE_HEADER]

    def tick(self, rounds: int = 1) -> None:
        """Background work, a second between the rounds."""
        for _ in range(rounds):
            self.perform(self.service.tick())
            self.advance(1)

    def keys(self, prefix: str) -> tuple[str, ...]:
        """The keys of the store that start so."""
        return self.store.list(prefix, "", 1000)

    def last_commit(self, name: str) -> int:
        """Which effect was the last commit of a task."""
        return max(at for at, (task, effect) in enumerate(self.trace) if task == name and isinstance(effect, Commit))

    def policy(self, name: str, *rules: tuple[str, list[str]]) -> str:
        """Write a policy; its name."""
        text = msgspec.json.encode({"path": {path: {"capabilities": can} for path, can in rules}}).decode()
        self.must("POST", f"sys/policies/acl/{name}", {"policy": text})
        return name

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return self.perform(mount_table(self.service.context.records)).record.live

    def reopen(self) -> None:
        """Open the service anew over the same store."""
        self.service = self.perform(open_service(self.settings))

    def identity_token(self, path: str = "cloud", audience: str = "a", lifetime: int = 3600) -> str:
        """An identity token of a mount."""
        mount = next(mount for mount in self.mounts if mount.path == path)
        tokens = IdentityTokens.of(self.settings, self.service.context.records, mount, audience, lifetime)
        return self.perform(tokens.make()).reveal()

    # Tokens

    def create(self, token: str = ROOT, at: str = "create", **wishes: object) -> Any:
        """The `auth` member of a new token."""
        return self.must("POST", f"auth/token/{at}", wishes, token)["auth"]

    def child(self, token: str = ROOT, **wishes: object) -> str:
        """The text of a new token."""
        text: str = self.create(token, "create", **wishes)["client_token"]
        return text

    def look_up(self, token: str) -> Any:
        """What a token is told about itself."""
        return self.must("GET", "auth/token/lookup-self", None, token)["data"]

    def is_good(self, token: str) -> bool:
        return self.ask("GET", "auth/token/lookup-self", None, token)[0] == 200

    # Machines

    def furnish(self, **role: object) -> Any:
        """Configure the authentication method and a role `dev` for the first machine of the cloud; the machine."""
        world = self.sim("/simulator/world")
        application, machine = world["applications"][0], world["machines"][0]
        config = {"tenant_id": world["tenant"], "resource": RESOURCE}
        secret = {"client_id": application["client_id"], "client_secret": application["client_secret"]}
        self.must("POST", "auth/cloud/config", {**config, **secret})
        self.must("POST", "auth/cloud/role/dev", {"bound_subscription_ids": machine["subscription"], **role})
        return machine

    def credentials(self, machine: Any, **changes: object) -> dict[str, object]:
        """The body of a login of a machine."""
        query = urlencode({"api-version": "2018-02-01", "resource": RESOURCE})
        token = self.sim(f"/machines/{machine['name']}/metadata/identity/oauth2/token?{query}", metadata="true")
        body = {"role": "dev", "jwt": token["access_token"], "subscription_id": machine["subscription"]}
        return {**body, "resource_group_name": machine["resource_group"], "vm_name": machine["name"], **changes}

    def log_in(self, machine: Any, **changes: object) -> Any:
        """The `auth` member of a login."""
        return self.must("POST", "auth/cloud/login", self.credentials(machine, **changes), token="")["auth"]

    def sim(self, path: str, body: object = None, **headers: str) -> Any:
        """The answer of the cloud itself; a POST if there is a body."""
        method, raw = ("GET", b"") if body is None else ("POST", msgspec.json.encode(body))
        return msgspec.json.decode(self.cloud.handle(HttpRequest(method, ADDRESS + path, headers, raw)).response.body)
