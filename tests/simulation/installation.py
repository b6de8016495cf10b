"""An installation: the service on a deterministic world beside a simulated cloud; it can be killed and restarted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from attrs import evolve, field, frozen

from cloudid_core import (
    HttpRequest,
    HttpResponse,
    Request,
    Response,
    Secret,
    Service,
    Settings,
    initialise,
    open_service,
)
from cloudid_core.background import queue
from cloudid_core.clouds import CLOUDS, Cloud
from cloudid_core.effects import Effect, Instant, Program
from cloudid_core.errors import CloudidError
from cloudid_core.store import keys
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing import Crashed, Fault, FaultKind, World
from cloudid_core.testing.faults import troubles_of
from servers.provider_simulator import Answer, Simulator

T = TypeVar("T")

ADDRESS: Final = "http://cloud"
CLOUD: Final = Cloud(
    login=f"{ADDRESS}/login",
    resource_manager=f"{ADDRESS}/arm",
    resource_audience="https://management.core.windows.net/",
    directory=f"{ADDRESS}/graph",
)
ISSUER: Final = "https://id.test"
ROOT: Final = "root"
HOME: Final = "127.0.0.1"
"""The address that clients ask from."""
SETTLE_TIME: Final = 300
SETTINGS: Final = Settings(
    master_key=Secret("5a" * 32),
    clouds=dict.fromkeys(CLOUDS, CLOUD),
    settle_time=SETTLE_TIME,
    request_deadline=60.0,
    issuer=ISSUER,
)
START: Final = 1_800_000_000.0
LONGEST_CONVERGENCE: Final = 200
ENDLESS: Final = (queue.SIGNING_KEY, queue.ROTATION_PLAN)
"""Kinds of background work that are always due some day."""


@frozen
class Reply:
    """What a client got."""

    status: int
    body: Any = field(repr=False)

    @property
    def data(self) -> Any:
        return self.body["data"]


@frozen
class Answered:
    """Credentials that reached a client, and until when it may use them as far as it knows."""

    lease_id: str
    client_id: str
    client_secret: str = field(repr=False)
    until: Instant = 0.0
    given_back: bool = False
    """The client has asked for their end, or for that of what they rest on."""


class Installation(World):
    """A world whose host runs the service. What clients were told survives every crash, as they do."""

    def __init__(
        self,
        seed: int = 0,
        store: MemoryStore | None = None,
        simulator: Simulator | None = None,
        start: Instant = START,
    ) -> None:
        super().__init__(seed, None, store, start)
        if simulator is not None:
            self.simulator = simulator.copy(self.time, self.fetch)
        else:
            self.simulator = Simulator(0, ADDRESS, self.time, self.fetch)
        self.provider = self._ask_cloud
        self.disbelieved = 0
        """How many client assertions named a key that the cloud did not know."""
        self.answered: dict[str, Answered] = {}
        self.taken_over: set[str] = set()
        """Root secrets that operators have taken from the service: they outlive its configuration."""
        self.trouble: Fault | None = None
        """Something that goes wrong at that effect, or at the first one after it that knows this kind of fault."""
        if store is None:
            self.perform(initialise(SETTINGS, Secret(ROOT)))
        self.service: Service = self.perform(open_service(SETTINGS))

    def time(self) -> Instant:
        return self.clock

    def _ask_cloud(self, request: HttpRequest) -> Answer:
        answer = self.simulator.handle(request)
        self.disbelieved += b"AADSTS700027" in answer.response.body
        return answer

    def fetch(self, url: str) -> HttpResponse:
        """What the cloud gets when it asks for a document of the issuer; it counts as no effect."""
        request = Request("GET", url.removeprefix(ISSUER))
        response = self.peek(self.service.handle(request))
        return HttpResponse(response.status, dict(response.headers), response.body)

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        trouble = self.trouble
        if trouble is None or len(self.trace) < trouble.at or trouble.kind not in troubles_of(effect):
            return super().fault_for(effect)
        self.trouble = None
        return trouble.kind

    def restart(self) -> None:
        """Kill the host and start it again, over the same store, as often as it takes."""
        while True:
            self.crash()
            with suppress(Crashed, CloudidError):
                self.service = self.perform(open_service(SETTINGS))
                return

    # What clients do

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        token: str = ROOT,
        seconds: int | None = None,
        address: str = HOME,
    ) -> Reply:
        """One request of a client, which may want its answer in so many seconds. Credentials are remembered."""
        return self._answer(self.perform(self.service.handle(_request(method, path, body, token, seconds, address))))

    def handling(self, method: str, path: str, body: object = None, token: str = ROOT) -> Program[Response]:
        """A request under way."""
        return self.service.handle(_request(method, path, body, token))

    def ask_all(self, paths: Sequence[str]) -> None:
        """Several reads at the same time, with background work between."""
        tasks = [self.spawn(self.handling("GET", path)) for path in paths]
        background = self.spawn(self.service.tick())
        self.settle()
        for task in tasks:
            self._answer(task.result())
        with suppress(CloudidError):
            background.result()

    def ask_and_hang_up(self, path: str) -> None:
        """A read whose answer cannot be written, because its client is gone."""
        response = self.perform(self.service.handle(_request("GET", path, None, ROOT)))
        self.perform(self.service.undelivered(response))

    def must(self, method: str, path: str, body: object = None, token: str = ROOT) -> Reply:
        """A request that has to succeed."""
        reply = self.ask(method, path, body, token)
        assert reply.status in (200, 202, 204), (method, path, reply.status, reply.body)
        return reply

    def revoke(self, lease_id: str, body: object = None) -> None:
        """A client revokes a lease. An answer of 204 is true: the secret is dead by then."""
        self.give_back(lease_id)
        if self.ask("PUT", f"sys/leases/revoke/{lease_id}", body).status == 204:
            self.assert_dead(lease_id)

    def revoke_below(self, path: str) -> None:
        """An operator revokes all leases below a path. An answer of 204 is true: the secrets are dead by then."""
        listed = self.counted_on(f"{path}/")
        self.give_back(f"{path}/")
        if self.ask("PUT", f"sys/leases/revoke-prefix/{path}").status == 204:
            self.assert_dead(*listed)

    def disable(self, path: str) -> None:
        """An operator disables an engine. An answer of 204 is true: nothing is left of it."""
        listed = self.counted_on(f"{path}/")
        self.give_back(f"{path}/")
        if self.ask("DELETE", f"sys/mounts/{path}").status == 204:
            self.assert_dead(*listed)

    def counted_on(self, start: str) -> list[str]:
        """The leases with such ids whose end nobody has asked for. Others may be those of an earlier mount."""
        return [key for key, answered in self.answered.items() if key.startswith(start) and not answered.given_back]

    def assert_dead(self, *lease_ids: str) -> None:
        for lease_id in lease_ids:
            answered = self.answered[lease_id]
            assert not self.accepts(answered.client_id, answered.client_secret), f"204, but {lease_id} is alive"

    def heal(self) -> None:
        """Take all faults of the cloud away."""
        self.cloud("POST", "/simulator/faults", [])

    def break_down(self, *families: str, **action: Any) -> None:
        """Let every request to parts of the cloud fail, or hang."""
        rules = [{"match": {"family": family}, "times": None, "action": action} for family in families]
        self.cloud("POST", "/simulator/faults", rules)

    def give_back(self, part_of_id: str) -> None:
        """Clients ask for the end of leases, so from now on they count on nothing."""
        for lease_id, answered in self.answered.items():
            if part_of_id in lease_id:
                self.answered[lease_id] = evolve(answered, given_back=True)

    def count_on(self, lease_id: str, seconds: float) -> None:
        """A client asks that a lease end so many seconds from now; whatever the answer, it counts on no more."""
        answered = self.answered[lease_id]
        self.answered[lease_id] = evolve(answered, until=min(answered.until, self.clock + seconds))

    def _answer(self, response: Response) -> Reply:
        if response.status == 500 and response.failure is not None:
            raise response.failure
        reply = Reply(response.status, msgspec.json.decode(response.body) if response.body else None)
        lease_id = reply.body.get("lease_id") if reply.body and reply.status == 200 else None
        if lease_id:
            until = self.clock + reply.body["lease_duration"]
            known = Answered(lease_id, **reply.data) if reply.data else self.answered[lease_id]
            self.answered[lease_id] = evolve(known, until=until)
        return reply

    # The cloud

    def cloud(self, method: str, path: str, body: object = None) -> Any:
        """A request to the simulated cloud that is not the service's; it counts as no effect."""
        content = b"" if body is None else msgspec.json.encode(body)
        response = self.simulator.handle(HttpRequest(method, ADDRESS + path, {"metadata": "true"}, content)).response
        return msgspec.json.decode(response.body) if response.body else None

    def accepts(self, client_id: str, client_secret: str) -> bool:
        """Whether these credentials are good at the cloud, in truth: whatever one of its front-ends knows yet."""
        application = self.simulator.world.directory.application_of(client_id)
        passwords = application.passwords if application else ()
        return any(one.secret == client_secret and self.clock < one.ends_at for one in passwords)

    def peek(self, program: Program[T]) -> T:
        """Run a program that only reads beside the world: it counts as no effect, and nothing goes wrong in it."""
        return World(store=self.store, start=self.clock).perform(program)

    # The background

    def tick(self) -> Instant:
        """One round of background work."""
        return self.perform(self.service.tick())

    def converge(self) -> None:
        """Let the background work go on, as a server does, until nothing is open."""
        for _ in range(LONGEST_CONVERGENCE):
            again = self.clock
            try:
                again = self.tick()
            except Crashed:
                self.restart()
            except CloudidError:
                pass  # a server notes it, and goes on
            if not self.open_keys():
                return
            self.advance(max(1.0, again - self.clock))
        raise AssertionError(f"the background work does not come to an end: {self.open_keys()}")

    def open_keys(self) -> list[str]:
        """What the background still has to do: everything due but what waits for the end of a live lease or token."""
        horizon = self.clock + 2 * SETTLE_TIME
        waiting = {key: queue.parse(key) for key in self.store.list(keys.DUE, "", 10_000)}
        return [
            key
            for key, (at, kind, _, _) in waiting.items()
            if kind not in ENDLESS and (at <= horizon or kind not in (queue.LEASE, queue.TOKEN))
        ]


def _request(
    method: str, path: str, body: object, token: str, seconds: int | None = None, address: str = HOME
) -> Request:
    content = b"" if body is None else msgspec.json.encode(body)
    headers = {} if seconds is None else {"x-service-deadline": str(seconds)}
    return Request(method, f"/v1/{path}", {"x-service-token": token, **headers}, content, address)
