"""An installation: the service on a deterministic world beside a simulated cloud; it can be killed and restarted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from attrs import evolve, field, frozen

from cloudid_core import HttpRequest, Request, Response, Secret, Service, Settings, initialise, open_service
from cloudid_core.background import queue
from cloudid_core.clouds import CLOUDS, Cloud
from cloudid_core.effects import Effect, Instant, Program
from cloudid_core.errors import CloudidError
from cloudid_core.store import keys
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing import Crashed, Fault, FaultKind, World
from cloudid_core.testing.faults import troubles_of
from servers.provider_simulator import Simulator

T = TypeVar("T")

ADDRESS: Final = "http://cloud"
CLOUD: Final = Cloud(
    login=f"{ADDRESS}/login",
    resource_manager=f"{ADDRESS}/arm",
    resource_audience="https://management.core.windows.net/",
    directory=f"{ADDRESS}/graph",
)
ROOT: Final = "root"
SETTLE_TIME: Final = 300
SETTINGS: Final = Settings(
    master_key=Secret("5a" * 32), clouds=dict.fromkeys(CLOUDS, CLOUD), settle_time=SETTLE_TIME, request_deadline=60.0
)
START: Final = 1_800_000_000.0
LONGEST_CONVERGENCE: Final = 200


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
        self.simulator = simulator.copy(self.time) if simulator else Simulator(0, ADDRESS, self.time)
        self.provider = self.simulator.handle
        self.answered: dict[str, Answered] = {}
        self.trouble: Fault | None = None
        """Something that goes wrong at that effect, or at the first one after it that knows this kind of fault."""
        if store is None:
            self.perform(initialise(SETTINGS, Secret(ROOT)))
        self.service: Service = self.perform(open_service(SETTINGS))

    def time(self) -> Instant:
        return self.clock

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

    def ask(self, method: str, path: str, body: object = None, token: str = ROOT) -> Reply:
        """One request of a client. Credentials that it gets are remembered."""
        return self._answer(self.perform(self.service.handle(_request(method, path, body, token))))

    def ask_all(self, paths: Sequence[str]) -> None:
        """Several reads at the same time, with background work between."""
        tasks = [self.spawn(self.service.handle(_request("GET", path, None, ROOT))) for path in paths]
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
            key for key, (at, kind, _, _) in waiting.items() if at <= horizon or kind not in (queue.LEASE, queue.TOKEN)
        ]


def _request(method: str, path: str, body: object, token: str) -> Request:
    content = b"" if body is None else msgspec.json.encode(body)
    return Request(method, f"/v1/{path}", {"x-service-token": token}, content, "127.0.0.1")
