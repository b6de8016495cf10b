"""The one installation of the tests: a service on a deterministic world, beside a simulated cloud.

`tests.tokens`, `tests.logins` and `tests.engines` have what tests of those parts do with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import inf
from typing import Any, ClassVar, Final, Self, TypeAlias, TypeVar

import msgspec
from attrs import asdict, evolve, field, frozen

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
from cloudid_core.clouds import CLOUDS, Cloud
from cloudid_core.context import queue
from cloudid_core.context.context import Context
from cloudid_core.credentials import max_age
from cloudid_core.effects import MOST_COMMITTED, CallProvider, Commit, Instant, Program
from cloudid_core.errors import CloudidError
from cloudid_core.leases.record import find_lease
from cloudid_core.messages.response import ERROR_CODE_HEADER
from cloudid_core.mounts import Mount, mount_table
from cloudid_core.store import keys
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing import Answer, Crashed, World
from cloudid_core.testing.turns import Task
from cloudid_servers.provider_simulator import Simulator
from cloudid_servers.provider_simulator.engine.ledger import LedgerEntry

T = TypeVar("T")

ROOT: Final = "root"
"""The text of the root token."""

HOME: Final = "192.0.2.1"
"""The address that clients ask from."""

ADDRESS: Final = "http://cloud"
"""The address of the simulated cloud."""

ISSUER: Final = "https://id.test"
START: Final = 1_800_000_000.0
SETTLE_TIME: Final = 300
ALL: Final = 100_000
MOST_ROUNDS: Final = 1500
"""Rounds of background work after which an installation that has not converged never will."""

MOST_STARTS: Final = 100

ENDLESS: Final = (queue.SIGNING_KEY, queue.PUBLICATION, queue.ROTATION_PLAN)
"""Kinds of background work that are always due some day."""

USUAL: Final[dict[str, Any]] = {
    "master_key": Secret("5a" * 32),
    "clouds": dict.fromkeys(
        CLOUDS,
        Cloud(
            login=f"{ADDRESS}/login",
            resource_manager=f"{ADDRESS}/arm",
            resource_audience="https://management.core.windows.net/",
            directory=f"{ADDRESS}/graph",
        ),
    ),
    "settle_time": SETTLE_TIME,
    "request_deadline": 60.0,
    "issuer": ISSUER,
    "audit_folders": ("/var/log",),
}
"""The settings, unless a test chooses others."""

Refusal: TypeAlias = tuple[int | str, ...]
"""A status of 400 or more, and the codes of what is wrong."""


@frozen
class Reply:
    """The answer to a client. `body` is its JSON, `None` if it has no body."""

    response: Response = field(repr=False)
    body: Any = field(repr=False)

    @classmethod
    def of(cls, response: Response) -> Reply:
        assert response.status != 204 or not response.body
        return cls(response, msgspec.json.decode(response.body) if response.body else None)

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def data(self) -> Any:
        return self.body["data"]

    @property
    def auth(self) -> Any:
        return self.body["auth"]

    @property
    def codes(self) -> list[str]:
        """The codes of a refusal. A header has the first one; in a 404 that is the only place."""
        first = self.response.headers[ERROR_CODE_HEADER]
        codes: list[str] = (self.body or {}).get("codes", [first])
        assert codes[0] == first
        return codes

    @property
    def code(self) -> str:
        return self.codes[0]


class Installation(World):
    """A service that was just initialised, unless there is a store; its host can be killed and started again."""

    watchers: ClassVar[tuple[Callable[[Request, Response], None], ...]] = ()
    """They look at each request of a client and its response."""

    def __init__(
        self,
        seed: int = 0,
        store: MemoryStore | None = None,
        simulator: Simulator | None = None,
        start: Instant = START,
        **settings: Any,
    ) -> None:
        super().__init__(seed, None, store, start)
        self.settings = Settings(**{**USUAL, **settings})
        if simulator is None:
            self.simulator = Simulator(0, ADDRESS, lambda: self.clock, self._fetch)
        else:
            self.simulator = simulator.copy(lambda: self.clock, self._fetch)
        self.provider = self.call_cloud
        if store is None:
            self.perform(initialise(self.settings, Secret(ROOT)))
        self.service = self.perform(open_service(self.settings))

    @classmethod
    def copy_of(cls, original: Installation, seed: int | None = None) -> Self:
        """An independent installation in the same state, whose host has just started."""
        seed = original.seed if seed is None else seed
        settings = asdict(original.settings, recurse=False)
        copy = cls(seed, original.store.copy(), original.simulator, original.clock, **settings)
        copy.documents = dict(original.documents)
        return copy

    def copy(self) -> Self:
        return self.copy_of(self)

    def restart(self, **settings: Any) -> None:
        """Kill the host and start it again over the same store, as often as it takes; with other settings, if given."""
        self.settings = evolve(self.settings, **settings)
        for _ in range(MOST_STARTS):
            self.crash()
            with suppress(Crashed, CloudidError):
                self.service = self.perform(open_service(self.settings))
                return
        raise AssertionError("the service does not start")

    @property
    def context(self) -> Context:
        return self.service.context

    def open_node(self, **settings: Any) -> Service:
        """Another node over the same store, with other settings if they are given. Requests do not go to it yet."""
        return self.perform(open_service(evolve(self.settings, **settings)))

    @contextmanager
    def requests_to(self, node: Service) -> Iterator[None]:
        """In the meantime, requests go to another node."""
        before, self.service = self.service, node
        try:
            yield
        finally:
            self.service = before

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        named = expects.keys() | puts.keys() | set(deletes)
        assert len(named) <= MOST_COMMITTED, "not every store takes so much"
        assert puts.keys().isdisjoint(deletes), "stores need not agree on what becomes of a key that is both"
        return await super().commit(expects, puts, deletes)

    # What clients do

    def request(
        self, method: str, path: str, body: object = None, token: str = ROOT, address: str = HOME, **headers: str
    ) -> Request:
        """A request below `/v1/`; `x_service_deadline="20"` is the header `x-service-deadline`."""
        content = b"" if body is None else msgspec.json.encode(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            named["x-service-token"] = token
        return Request(method, f"/v1/{path}", named, content, address)

    def program(self, request: Request) -> Program[Response]:
        """What answers a request, effect by effect: within `handle` nobody sees them."""
        return self.service.work_on(self.service.begin(request))

    async def asking(
        self, method: str, path: str, body: object = None, token: str = ROOT, address: str = HOME, **headers: str
    ) -> Reply:
        """A request under way. A bug in the service is raised."""
        request = self.request(method, path, body, token, address, **headers)
        response = await self.service.handle(request)
        for watch in self.watchers:
            watch(request, response)
        return self.receive(response)

    def receive(self, response: Response) -> Reply:
        """A response as its client gets it."""
        if response.status == 500 and response.failure is not None:
            response.failure.add_note(f"{self.events[-1]}")  # it has no traceback any more, but the event tells where
            raise response.failure
        return Reply.of(response)

    def ask(
        self, method: str, path: str, body: object = None, token: str = ROOT, address: str = HOME, **headers: str
    ) -> Reply:
        """The reply to one request."""
        return self.perform(self.asking(method, path, body, token, address, **headers))

    def must(
        self, method: str, path: str, body: object = None, token: str = ROOT, address: str = HOME, **headers: str
    ) -> Reply:
        """The reply to a request that has to succeed."""
        reply = self.ask(method, path, body, token, address, **headers)
        assert reply.status in (200, 202, 204), (method, path, reply.status, reply.body)
        return reply

    def refused(
        self, method: str, path: str, body: object = None, token: str = ROOT, address: str = HOME, **headers: str
    ) -> Refusal:
        """Status and codes of the reply to a request that has to be refused."""
        reply = self.ask(method, path, body, token, address, **headers)
        assert reply.status >= 400, (method, path, reply.status, reply.body)
        return reply.status, *reply.codes

    # What happens by itself

    def tick(self) -> Instant:
        """One round of background work, with the lanes that it leaves at work; when the next one is due."""
        try:
            return self.perform(self.service.tick())
        finally:
            self.finish_lanes()

    @property
    def lanes_at_work(self) -> list[Task[Any]]:
        """Background work that no round waits for."""
        return [task for key, task in self._shared.items() if "lane " in key and not task.is_done]

    def finish_lanes(self) -> None:
        for task in self.lanes_at_work:
            self._go_on(inf, task)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with all background work that becomes due; rounds without any are left out."""
        until = self.clock + seconds
        while (again := max(self.tick(), self.clock + 1.0, min(self.next_due, until))) < until:
            self.advance(again - self.clock)
        self.advance(until - self.clock)
        self.tick()

    def wait(self, seconds: float) -> None:
        """Let time pass without background work. If what is under way kills the host, it starts again."""
        until = self.clock + seconds
        while self.clock < until:
            try:
                self.advance(until - self.clock)
            except Crashed:
                self.restart()

    def converge(self) -> None:
        """Let the background work go on, as a server does, until nothing is open."""
        for _ in range(MOST_ROUNDS):
            again = self.clock
            try:
                again = self.tick()
            except Crashed:
                self.restart()
            except CloudidError:
                pass  # a server notes it, and goes on
            if not self.open_work():
                return
            self.wait(max(1.0, again - self.clock))
        raise AssertionError(f"the background work does not come to an end: {self.open_work()}")

    def open_work(self) -> list[str]:
        """What the background still has to do: everything due but what waits for the end of a live lease or token."""
        horizon = self.clock + 2 * SETTLE_TIME
        waiting = {key: queue.parse(key) for key in self.keys(keys.DUE)}
        return [
            key
            for key, (at, kind, _, ref) in waiting.items()
            if kind not in ENDLESS
            and (at <= horizon or kind not in (queue.LEASE, queue.TOKEN) or (kind == queue.LEASE and self._ends(ref)))
        ]

    def _ends(self, lease_id: str) -> bool:
        """Whether a lease is being revoked: its next try may be an hour away."""
        found = self.peek(find_lease(self.context, lease_id))
        return found is not None and found.record.revoking

    @property
    def next_due(self) -> Instant:
        return min((queue.parse(key)[0] for key in self.keys(keys.DUE)), default=inf)

    def due(self, kind: str) -> list[str]:
        """The keys of the background work of a kind."""
        return [key for key in self.keys(keys.DUE) if queue.parse(key)[1] == kind]

    # What is in the store

    def keys(self, prefix: str) -> list[str]:
        """The keys of the store that start with a prefix."""
        return list(self.store.list(prefix, "", ALL))

    def peek(self, program: Program[T]) -> T:
        """Run a program that only reads, beside the world: it counts as no effect, and nothing goes wrong in it."""
        return World(store=self.store, start=self.clock).perform(program)

    def mount(self, path: str = "cloud") -> Mount:
        return self.perform(mount_table(self.context.records)).record.by_path[path]

    def leases(self) -> list[str]:
        """The ids of all leases."""
        return [key.removeprefix(keys.LEASES) for key in self.keys(keys.LEASES)]

    def last_commit(self, task: str) -> int:
        """The number of the effect that was the last commit of a task."""
        return max(at for at, (name, effect) in enumerate(self.trace) if name == task and isinstance(effect, Commit))

    # The cloud

    def cloud(self, method: str, path: str, body: object = None) -> Any:
        """The answer of the simulated cloud to a request that is not the service's; it counts as no effect.

        Below `/simulator/` is its control interface, below `/machines/` are the metadata services of its machines.
        """
        content = b"" if body is None else msgspec.json.encode(body)
        response = self.simulator.handle(HttpRequest(method, ADDRESS + path, {"metadata": "true"}, content)).response
        assert response.status < 300, response
        return msgspec.json.decode(response.body) if response.body else None

    @property
    def scene(self) -> Any:
        """What the simulated cloud shows of itself: its tenant, subscriptions, applications, machines and groups."""
        return self.cloud("GET", "/simulator/world")

    def call_cloud(self, request: HttpRequest) -> Answer:
        """The simulated cloud's answer to a call of the service."""
        return self.simulator.handle(request)

    def behave(self, **behaviour: Any) -> None:
        """Set how slowly the cloud's front-ends learn of changes, and what else is possible in a healthy cloud."""
        self.cloud("POST", "/simulator/behaviour", behaviour)

    def fail(self, *families: str, times: int | None = None, path: str = "", method: str = "", **action: Any) -> None:
        """Let requests fail from now on, in place of those that failed so far.

        `families` are parts of the cloud (login, arm, graph, metadata); `path` is a pattern of how a path starts.
        `action` is a status (503 if there is no action), a `delay` in seconds, or `drop` for a broken connection.
        """
        match = {name: value for name, value in (("path", path), ("method", method)) if value}
        matches: Iterable[dict[str, str]] = [{"family": family, **match} for family in families] or [match]
        rules = [{"match": match, "times": times, "action": action or {"status": 503}} for match in matches]
        self.cloud("POST", "/simulator/faults", rules)

    def slow(self, seconds: float) -> None:
        """Let answers of the directory arrive so late from now on; its work is done at once."""
        self.fail("graph", delay=seconds)

    def heal(self) -> None:
        """Let requests no longer fail."""
        self.cloud("POST", "/simulator/faults", [])

    def calls(self, since: int = 0) -> list[str]:
        """The calls of the provider since an effect, as method and path."""
        requests = (effect.request for _, effect in self.trace[since:] if isinstance(effect, CallProvider))
        return [f"{r.method} {r.url.removeprefix(ADDRESS).partition('?')[0]}" for r in requests]

    def alive(self, *kinds: str) -> list[LedgerEntry]:
        """What the service has made at the cloud and not removed: objects of these kinds, or of all."""
        return [made for made in self.simulator.ledger.alive() if made.kind in kinds or not kinds]

    def made(self, kind: str) -> list[LedgerEntry]:
        """All objects of a kind that the service ever made at the cloud."""
        return [made for made in self.simulator.ledger.entries if made.kind == kind]

    def soft_deleted(self) -> list[LedgerEntry]:
        """What the service has deleted at the cloud, and can still be restored."""
        return self.simulator.ledger.soft_deleted()

    def accepts(self, client_id: str, client_secret: str, **_: str) -> bool:
        """Whether these credentials are good in truth, even if a front-end of the cloud does not know it yet."""
        application = self.simulator.world.directory.application_of(client_id)
        passwords = application.passwords if application else ()
        return any(one.secret == client_secret and self.clock < one.ends_at for one in passwords)

    def _fetch(self, url: str) -> HttpResponse:
        """What the cloud gets when it asks for a document of the issuer; it counts as no effect."""
        path = url.removeprefix(self.settings.issuer)
        if self.settings.publishes_to:
            document = self.documents.get(path[1:])
            headers = {"cache-control": f"max-age={max_age(self.settings.signing_key_period)}"}
            return HttpResponse(404) if document is None else HttpResponse(200, headers, document.body)
        response = self.peek(self.service.handle(Request("GET", path)))
        return HttpResponse(response.status, dict(response.headers), response.body)
