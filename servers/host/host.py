"""Host: what the hosts of both servers have in common. A runtime adds the words of its event loop, and HTTP."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from attrs import Factory, define
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec.structs import replace

from cloudid_core import effects
from cloudid_core.audit.device import Entries
from cloudid_core.effects import (
    ClockReading,
    Commit,
    Document,
    Entry,
    HttpRequest,
    HttpResponse,
    Instant,
    PlatformToken,
    Program,
    Ready,
)
from cloudid_core.errors import PlatformTokenUnavailable, ProviderUnreachable, PublicationFailed, TimeIsUp
from cloudid_core.events import Event
from cloudid_core.metrics import Numbers, merged
from cloudid_core.run import run
from cloudid_core.values.secret import Secret

from ..audit import Devices, Report
from ..logs import describe_error, open_log
from ..machine import Platform, platform_identity
from ..metrics import Measures, WorkerSlot
from ..runtime import Runtime, runtime
from ..stores import Store
from .documents import Address, Folder


class KeptConnectionEnded(ProviderUnreachable):
    """A connection that was kept from an earlier call ended before a byte of the answer came."""


T = TypeVar("T")
A = TypeVar("A")

PROVIDER_HEADERS: Final = {"user-agent": "cloudid", "accept-encoding": "identity"}
"""What every request to the provider says. Answers come uncompressed, so that their bound is a bound."""

PROVIDER_BODY_LIMIT: Final = 8 * 2**20
"""Largest answer of the provider, in bytes."""

LANE_WIDTH: Final = 64
"""Most calls at a time of one kind with one access token to one interface of the provider; see `Lane`."""

ROAD_WIDTH: Final = 2 * LANE_WIDTH
"""The same with all access tokens: one mount whose calls hang leaves room for the others. Each call may take a
descriptor, of which servers keep some hundreds for all but their clients.
"""

_DONE: Final = Ready(None)

SHARED_SECONDS: Final = 300.0
"""A shared program that takes longer is stuck, and is closed for all who wait for it."""

KEY_BITS: Final = 2048


def _generate_key(bits: int) -> Secret:
    key = rsa.generate_private_key(65537, bits)
    return Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


@define(eq=False)
class _Flight:
    """A shared program on its way, and in the end its answer or failure."""

    landed: runtime.Event
    program: Program[Any] | None = None
    answer: Any = None
    failure: Exception | None = Factory(lambda: TimeIsUp("the host was closed"))

    def result(self) -> Any:
        """The answer. Raises the failure, which refers to the frames of all who wait: none may refer back to it."""
        if self.failure is not None:
            failure = self.failure
            try:
                raise failure
            finally:
                del self, failure
        return self.answer


@define(eq=False)
class Lane:
    """Calls of one kind to one interface of the provider: so many may be under way, and the others wait for these only.

    An interface is a host and the first segment of the path: a gateway may stand for several. Reading and writing have
    lanes of their own, since logins only read, and must not wait behind what the secrets engine changes. So has each
    access token: what one mount has under way may hang while the provider answers the others.
    """

    free: AbstractAsyncContextManager[object]
    users: int = 0


class Host(effects.Host, Runtime):
    """The effects that are the same on every runtime; see `cloudid_core.effects` for what each one means."""

    def __init__(self, store: Store, platform: Platform) -> None:
        self._store = store
        self._platform = platform
        self._flights: dict[str, _Flight] = {}
        self._lanes: dict[Hashable, Lane] = {}
        self.measures = Measures()
        """What is counted in this process."""
        self.slots: WorkerSlot | None = None
        """Where the numbers of the other workers of this machine are."""

        self.sinks: list[Callable[[Event], None]] = []
        """Who learns of the core's events."""
        self.audit = Devices(self)
        """Who has to have them before a request continues."""
        self.published: Folder | Address | None = None
        """Where the issuers' documents are published."""
        self.report: Report = open_log("error").error
        """The log's method for errors."""

    # What is asked of a runtime besides

    @abstractmethod
    def new_semaphore(self, count: int) -> AbstractAsyncContextManager[object]: ...

    @abstractmethod
    def start_task(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """As `start`, for work that raises no `Exception`."""

    @abstractmethod
    def from_thread(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """In the thread of `in_thread`: what `work` answers on the event loop."""

    @abstractmethod
    async def fetch_over(self, request: HttpRequest, timeout: float, *, is_new: bool) -> HttpResponse:
        """As `fetch`, over a new connection or one that may be kept from an earlier call.

        Raises `KeptConnectionEnded` besides, if it is.
        """

    # The rest

    async def fetch(self, request: HttpRequest, timeout: float) -> HttpResponse:
        """As `call_provider`, which measures it.

        Gateways end connections without saying so. A call that was lost with one is made again at once; one that must
        not be made twice has a connection of its own.
        """
        if not request.idempotent:
            return await self.fetch_over(request, timeout, is_new=True)
        started = time.monotonic()
        try:
            return await self.fetch_over(request, timeout, is_new=False)
        except KeptConnectionEnded:
            left = timeout - (time.monotonic() - started)
            return await self.fetch_over(request, left, is_new=True)

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        measures, started, status = self.measures, time.monotonic(), None
        measures.open_calls += 1
        try:
            response = await self.fetch(request, timeout)
            status = response.status
            return response
        finally:
            measures.open_calls -= 1
            measures.note_call(request.url, status, time.monotonic() - started)

    def note_batch(self, size: int, seconds: float) -> None:
        self.measures.note_batch(size, seconds)

    async def show_metrics(self, numbers: Numbers, output: str) -> str:
        from ..metrics.showing import show  # only a scrape waits for its library

        own = merged([numbers, self.measures.numbers])
        if self.slots is None:
            return show(own, output)
        self.slots.write(own)  # the replacement of this worker continues with these numbers
        return show(merged([own, *self.slots.others]), output)

    def within(self, seconds: float, program: Program[Any]) -> Awaitable[Any]:
        return self.in_time(seconds, partial(run, program, self))

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.start_task(partial(self._run_or_report, work))

    async def _run_or_report(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001  # one task must not end the server
            self.report("background task failed", **describe_error(error))

    @asynccontextmanager
    async def in_lane(self, request: HttpRequest) -> AsyncIterator[None]:
        """Around a call to the provider: wait for its lane. The caller bounds the time."""
        origin, _, path = request.url.partition("://")[2].partition("/")
        road = (origin, path.partition("/")[0], request.method in ("GET", "HEAD"))
        lane = (*road, hash(request.headers.get("authorization")))
        async with self._place_in(lane, LANE_WIDTH), self._place_in(road, ROAD_WIDTH):
            yield

    @asynccontextmanager
    async def _place_in(self, key: Hashable, width: int) -> AsyncIterator[None]:
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(self.new_semaphore(width))
        lane.users += 1
        try:
            async with lane.free:
                yield
        finally:
            lane.users -= 1
            if not lane.users:
                del self._lanes[key]

    def read_entry(self, key: str) -> Awaitable[Entry | None]:
        return self._store.read(key)

    def read_entries(self, keys: tuple[str, ...]) -> Awaitable[Mapping[str, Entry]]:
        return self._store.read_all(keys)

    def list_keys(self, prefix: str, after: str, limit: int) -> Awaitable[tuple[str, ...]]:
        return self._store.list(prefix, after, limit)

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> Awaitable[int]:
        return self._store.commit(Commit(expects, puts, deletes))

    async def read_platform_token(self, resource: str, client_id: str) -> PlatformToken:
        try:
            response = await self.call_provider(self._platform.ask(resource, client_id), platform_identity.TIMEOUT)
        except ProviderUnreachable as failure:
            raise PlatformTokenUnavailable(str(failure), status=PlatformTokenUnavailable.NO_ANSWER) from None
        return platform_identity.read(response)

    def now(self) -> Ready[Instant]:
        return Ready(time.time())

    def compare_clocks(self) -> Ready[ClockReading | None]:
        return Ready(self._store.clock)

    def random_bytes(self, count: int) -> Ready[bytes]:
        return Ready(os.urandom(count))

    async def generate_key(self) -> Secret:
        return await self._beside(_generate_key, KEY_BITS)

    async def read_federated_token(self, path: str) -> Secret:
        return await self._beside(platform_identity.read_file, path)

    def publish_to(self, place: str, credential_file: str) -> None:
        """Publish documents below an address or a folder."""
        if place.startswith(("http://", "https://")):
            self.published = Address(place, credential_file, self.fetch)
        elif place:
            self.published = Folder(Path(place))

    async def read_document(self, path: str) -> Document | None:
        match self.published:
            case Folder() as folder:
                return await self._beside(folder.read, path)
            case Address() as address:
                return await address.read(path)
        raise PublicationFailed("this host does not publish documents")

    async def write_document(self, path: str, body: bytes, replaces: Document | None) -> None:
        match self.published:
            case Folder() as folder:
                await self._beside(lambda name: folder.write(name, body, replaces), path)
            case Address() as address:
                await address.write(path, body, replaces)
            case None:
                raise PublicationFailed("this host does not publish documents")

    async def _beside(self, work: Callable[[A], T], argument: A) -> T:
        """Return the result of work in a thread. A cancelled caller does not wait for the end of the thread."""
        flight = _Flight(self.new_event())
        self.start(partial(self._land, flight, partial(self.in_thread, work, argument)))
        await flight.landed.wait()
        try:
            result: T = flight.result()
        finally:
            del flight
        return result

    def record(self, event: Event) -> Awaitable[None]:
        if event.audit is not None:
            return self._record_in(event.audit, replace(event, audit=None))
        self._tell_sinks(event)
        return _DONE

    async def _record_in(self, entries: Entries, event: Event) -> None:
        """Record an event once audit devices have its entries."""
        await self.audit.write(entries)
        self._tell_sinks(event)

    def _tell_sinks(self, event: Event) -> None:
        self.measures.tally(event, time.time())
        for sink in self.sinks:
            sink(event)

    async def shared(self, key: str, program: Program[Any]) -> Any:
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(self.new_event(), program)
            self.start(partial(self._land, flight, partial(self.within, SHARED_SECONDS, program), key))
        else:
            program.close()
        await flight.landed.wait()
        try:
            return flight.result()
        finally:
            del flight

    async def _land(self, flight: _Flight, work: Callable[[], Awaitable[Any]], key: str = "") -> None:
        try:
            flight.answer, flight.failure = await work(), None
        except Exception as error:  # noqa: BLE001  # every failure belongs to those who wait
            flight.failure = error
        finally:
            self._flights.pop(key, None)
            flight.landed.set()

    def abandon(self) -> None:
        """The runtime is closed: end what it did not even start."""
        for flight in self._flights.values():
            if flight.program is not None:
                flight.program.close()
            flight.landed.set()
        self._flights.clear()
