"""A service on a deterministic world beside a simulated cloud, its secrets engine configured; and what tests ask it."""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any, Final

import msgspec
from attrs import frozen

from cloudid_core import HttpRequest, Request, Response, Secret, Settings, initialise, open_service
from cloudid_core.background.queue import parse
from cloudid_core.clouds import CLOUDS, Cloud
from cloudid_core.effects import CallProvider, Instant, Program
from cloudid_core.foundation.context import Context
from cloudid_core.leases.record import Lease, find_lease
from cloudid_core.mounts.table import Mount, mount_table
from cloudid_core.rotation.record import Rotation, find_rotation
from cloudid_core.store.keys import DUE
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing import World
from servers.provider_simulator import Simulator

START: Final = 1_800_000_000.0
SETTLE_TIME: Final = 300
ADDRESS: Final = "http://cloud"
CLOUD: Final = Cloud(
    login=f"{ADDRESS}/login",
    resource_manager=f"{ADDRESS}/arm",
    resource_audience="https://management.core.windows.net/",
    directory=f"{ADDRESS}/graph",
)
USUAL: Final[dict[str, Any]] = {
    "master_key": Secret("5a" * 32),
    "clouds": dict.fromkeys(CLOUDS, CLOUD),
    "settle_time": SETTLE_TIME,
    "request_deadline": 60.0,
    "verify_credentials": False,
    "issuer": "https://id.test",
}


@frozen
class Reply:
    """What a client got."""

    status: int
    body: Any
    response: Response

    @property
    def data(self) -> Any:
        return self.body["data"]

    @property
    def codes(self) -> list[str]:
        codes: list[str] = self.body["codes"]
        return codes


class Engine(World):
    """The world, the service in it, and the cloud beside it, which shares its clock."""

    def __init__(
        self, seed: int = 0, store: MemoryStore | None = None, simulator: Simulator | None = None, **settings: Any
    ) -> None:
        super().__init__(seed, None, store, START)
        self.settings = Settings(**{**USUAL, **settings})
        self.simulator = (simulator or Simulator(0, ADDRESS)).copy(lambda: self.clock)
        self.provider = self.simulator.handle
        if store is None:
            self.perform(initialise(self.settings, Secret("root")))
        self.start()

    def start(self) -> None:
        """A new host over the same store."""
        self.crash()
        self.service = self.perform(open_service(self.settings))

    @property
    def context(self) -> Context:
        return self.service.context

    def copy(self) -> Engine:
        """The same again, to go its own way, on a host that has just started."""
        twin = type(self)(self.seed, self.store.copy(), self.simulator)
        twin.settings = self.settings
        twin.clock = self.clock
        return twin

    # What clients do

    def ask(self, method: str, path: str, body: object = None, token: str = "root", **headers: str) -> Reply:
        return self.perform(self.asking(self.request(method, path, body, token, **headers)))

    def request(self, method: str, path: str, body: object = None, token: str = "root", **headers: str) -> Request:
        content = b"" if body is None else msgspec.json.encode(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Request(method, f"/v1/{path}", {"x-service-token": token, **named}, content)

    async def asking(self, request: Request) -> Reply:
        response = await self.service.handle(request)
        if response.status == 500 and response.failure is not None:
            raise response.failure
        return Reply(response.status, msgspec.json.decode(response.body) if response.body else None, response)

    def must(self, method: str, path: str, body: object = None, token: str = "root") -> Reply:
        reply = self.ask(method, path, body, token)
        assert reply.status < 300, (method, path, reply.status, reply.body)
        return reply

    def issue(self, role: str = "existing", token: str = "root") -> str:
        """Credentials of a role; the id of their lease."""
        lease_id: str = self.must("GET", f"cloud/creds/{role}", token=token).body["lease_id"]
        return lease_id

    # What happens by itself

    def tick(self) -> Instant:
        return self.perform(self.service.tick())

    def pass_time(self, seconds: float) -> None:
        """Let the time go on, with the background work that asks for its turns; rounds without any are left out."""
        until = self.clock + seconds
        while (again := max(self.tick(), self.clock + 1.0, min(self.next_due, until))) < until:
            self.advance(again - self.clock)
        self.advance(until - self.clock)
        self.tick()

    @property
    def next_due(self) -> Instant:
        return min((parse(key)[0] for key in self.store.list(DUE, "", 100_000)), default=inf)

    # What can be seen

    def do(self, program: Program[Any]) -> Any:
        return self.perform(program)

    def lease(self, lease_id: str) -> Lease | None:
        found = self.perform(find_lease(self.context, lease_id))
        return found.record if found else None

    def mount(self, path: str = "cloud") -> Mount:
        return self.perform(mount_table(self.context.records)).record.by_path[path]

    def rotation(self, path: str = "cloud") -> Rotation:
        found = self.perform(find_rotation(self.context, self.mount(path).id))
        assert found is not None
        return found.record

    def due(self, kind: str) -> list[str]:
        return [key for key in self.store.list("due/", "", 100_000) if key.split("/")[2] == kind]

    def cloud(self, method: str, path: str, body: object = None) -> Any:
        """The simulated cloud's control interface."""
        content = b"" if body is None else msgspec.json.encode(body)
        response = self.simulator.handle(HttpRequest(method, f"{ADDRESS}/simulator/{path}", {}, content)).response
        assert response.status < 300, response
        return msgspec.json.decode(response.body) if response.body else None

    def fail(self, path: str = "", *, status: int = 503, times: int | None = None, **more: Any) -> None:
        """Let requests to paths that start so fail from now on; no path: those to the directory."""
        match = {"path": path} if path else {"family": "graph"}
        action = {"status": status, "code": more.pop("code", "Trouble"), **more}
        self.cloud("POST", "faults", [{"match": match, "times": times, "action": action}])

    def slow(self, seconds: float) -> None:
        """Let answers of the directory arrive so late from now on; its work is done at once."""
        self.cloud("POST", "faults", [{"match": {"family": "graph"}, "times": None, "action": {"delay": seconds}}])

    def heal(self) -> None:
        self.cloud("POST", "faults", [])

    def alive(self, kind: str) -> list[str]:
        """Ids of what the service made at the provider and has not removed."""
        return [made.id for made in self.simulator.ledger.alive() if made.kind == kind]

    def accepts(self, secret: str) -> bool:
        """Whether a secret is that of an application, whatever the token endpoint makes of it at the moment."""
        applications = self.simulator.world.directory.applications.all()
        return any(password.secret == secret for application in applications for password in application.passwords)

    @property
    def calls(self) -> list[str]:
        """Everything that was asked of the provider."""
        return [f"{e.request.method} {e.request.url}" for _, e in self.trace if isinstance(e, CallProvider)]


@cache
def _furnished() -> Engine:
    engine = Engine()
    world = engine.cloud("GET", "world")
    engine.must("POST", "cloud/config", config(engine))
    reader = [{"role_name": "Reader", "scope": f"/subscriptions/{world['subscriptions'][0]}"}]
    engine.must("POST", "cloud/roles/fresh", {"azure_roles": reader, "ttl": "1h", "max_ttl": "4h"})
    other = world["applications"][1]["object_id"]
    engine.must("POST", "cloud/roles/existing", {"application_object_id": other, "ttl": "1h", "max_ttl": "4h"})
    return engine


def config(engine: Engine) -> dict[str, str]:
    """A configuration that works."""
    world = engine.cloud("GET", "world")
    root = world["applications"][0]
    return {
        "tenant_id": world["tenant"],
        "subscription_id": world["subscriptions"][0],
        "client_id": root["client_id"],
        "client_secret": root["client_secret"],
    }


def engine() -> Engine:
    """A service with a configured engine and the roles "fresh" (makes principals) and "existing" (makes passwords)."""
    return _furnished().copy()
