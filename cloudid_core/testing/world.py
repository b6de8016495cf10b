"""World: a deterministic host, whose clock, chance, store and order of events are all its own.

    world = World(seed=7)
    login = world.perform(log_in(form))

Programs run on the same loop as on any host. Before each effect the world decides by its seed whose turn it is: the
same seed has the same course. What happened is in `trace`; `Fault`s define what goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import shake_128
from math import inf
from typing import Any, Final, NoReturn, Protocol, TypeAlias, TypeVar

from ..audit import NULL, Device
from ..effects import (
    CallProvider,
    ClockReading,
    Commit,
    CompareClocks,
    Document,
    Effect,
    Entry,
    GenerateKey,
    Host,
    HttpRequest,
    HttpResponse,
    Instant,
    ListKeys,
    Now,
    PlatformToken,
    Program,
    RandomBytes,
    ReadDocument,
    ReadEntries,
    ReadEntry,
    ReadFederatedToken,
    ReadPlatformToken,
    Record,
    Shared,
    Sleep,
    Together,
    Within,
    WriteDocument,
    name_of,
)
from ..errors import (
    HostFailure,
    PlatformTokenUnavailable,
    ProviderUnreachable,
    PublicationFailed,
    RecordFailed,
    TimeIsUp,
)
from ..events import Event
from ..run import run
from ..store import MemoryStore
from ..values import Secret
from .faults import Fault, FaultKind, Stall, inflict
from .rsa_keys import private_key_pem
from .turns import Task, Turns

T = TypeVar("T")

KEYS: Final = 8
"""How many different keys worlds generate: after the last one comes the first."""


class Answer(Protocol):
    """An answer that may have trouble on its way back. The provider's work is done at once."""

    @property
    def response(self) -> HttpResponse: ...

    @property
    def delay(self) -> float:
        """Seconds after which it arrives."""
        ...

    @property
    def drop(self) -> bool:
        """Whether the connection breaks instead."""
        ...


Provider: TypeAlias = Callable[[HttpRequest], HttpResponse | Answer]
"""The cloud of a world. One that has a clock reads it from `World.clock`."""

Platform: TypeAlias = Callable[[str, str], PlatformToken]
"""The identity of the machine that the host runs on: (resource, client_id) -> token."""


class World(Turns, Host):
    """A `Host`, and the one who runs programs on it. `crash` leaves `store`, `provider`, `clock` and `events`.

    Provider and platform are plain functions; without them, calls fail as if nothing were there.
    """

    def __init__(
        self,
        seed: int = 0,
        provider: Provider | None = None,
        store: MemoryStore | None = None,
        start: Instant = 1_700_000_000.0,
        faults: tuple[Fault, ...] = (),
        platform: Platform | None = None,
    ) -> None:
        super().__init__(seed, start)
        self.provider = provider
        self.platform = platform
        self.store = MemoryStore() if store is None else store
        self.trace: list[tuple[str, Effect[Any]]] = []
        """Every effect in the order of performance, with the name of its task."""
        self.store_clock: ClockReading | None = None
        """What `CompareClocks` answers."""
        self.events: list[Event] = []
        """What was recorded."""
        self._faults: dict[int, FaultKind] = {}
        self.files: dict[str, str] = {}
        """What the container platform has written, by path."""
        self.documents: dict[str, Document] = {}
        """What is published, by path."""
        self._written = 0
        self._drawn = 0
        self._generated = 0
        self._spawned = 0
        self._shared: dict[str, Task[Any]] = {}
        self._late: list[tuple[Host, Callable[[], object]]] = []
        self.inject(*faults)

    def __repr__(self) -> str:
        faults = "".join(f", {kind.name} at {at}" for at, kind in sorted(self._faults.items()))
        return f"<World seed={self.seed}{faults}>"

    # Telling a story

    def perform(self, program: Program[T]) -> T:
        """Run a program to its end, while the others continue. Return its answer or failure."""
        task = self.spawn(program)
        self._go_on(inf, task)
        return task.result()

    def spawn(self, program: Program[T], name: str = "", host: Host | None = None) -> Task[T]:
        """Start a program, which runs when the world does.

        `host` may see the world in another way, as one of several.
        """
        self._spawned += 1
        host = self if host is None else host
        return self._start(name or f"{name_of(program)} {self._spawned}", run(program, host), host)

    def crash(self) -> None:
        """Kill the host: close all programs on the spot."""
        super().crash()
        self._shared.clear()
        self._late.clear()

    def inject(self, *faults: Fault) -> None:
        """Let things go wrong at later effects."""
        for fault in faults:
            self._faults[fault.at] = fault.kind

    def transcript(self) -> list[str]:
        """The trace as text. It is the same in two worlds if the same happened in them."""
        return [f"{name}: {effect}" for name, effect in self.trace]

    # The Host

    async def read_entry(self, key: str) -> Entry | None:
        return await self._perform(ReadEntry(key), lambda: self.store.read(key))

    async def read_entries(self, keys: tuple[str, ...]) -> Mapping[str, Entry]:
        return await self._perform(ReadEntries(keys), lambda: self.store.read_all(keys))

    async def list_keys(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return await self._perform(ListKeys(prefix, after, limit), lambda: self.store.list(prefix, after, limit))

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        def write() -> int:
            self.perform_late(self._running_task().host)
            return self.store.commit(expects, puts, deletes)

        return await self._perform(Commit(expects, puts, deletes), write)

    def perform_late(self, host: Host | None = None) -> None:
        """Perform the commits of a host, or of all, that are stalled until `LATER`."""
        late = [perform for of, perform in self._late if host is None or of is host]
        self._late = [(of, perform) for of, perform in self._late if host is not None and of is not host]
        for perform in late:
            with suppress(HostFailure):
                perform()

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        answer = await self._perform(CallProvider(request, timeout), lambda: self._ask_provider(request))
        if isinstance(answer, HttpResponse):
            return answer
        await self._wait_until(self.clock + min(answer.delay, timeout))
        if answer.delay > timeout:
            raise ProviderUnreachable("no answer in time", sent=True)
        if answer.drop:
            raise ProviderUnreachable("the connection broke", sent=True)
        return answer.response

    async def read_platform_token(self, resource: str, client_id: str) -> PlatformToken:
        return await self._perform(
            ReadPlatformToken(resource, client_id), lambda: self._ask_platform(resource, client_id)
        )

    async def sleep(self, seconds: float) -> None:
        await self._perform(Sleep(seconds), lambda: None)
        await self._wait_until(self.clock + seconds)

    async def now(self) -> Instant:
        return await self._perform(Now(), lambda: self.clock)

    async def compare_clocks(self) -> ClockReading | None:
        return await self._perform(CompareClocks(), lambda: self.store_clock)

    async def random_bytes(self, count: int) -> bytes:
        return await self._perform(RandomBytes(count), lambda: self._draw(count))

    async def generate_key(self) -> Secret:
        return await self._perform(GenerateKey(), self._generate)

    async def read_federated_token(self, path: str) -> Secret:
        return await self._perform(ReadFederatedToken(path), lambda: self._read_file(path))

    async def read_document(self, path: str) -> Document | None:
        return await self._perform(ReadDocument(path), lambda: self.documents.get(path))

    async def write_document(self, path: str, body: bytes, replaces: Document | None) -> None:
        await self._perform(WriteDocument(path, body, replaces), lambda: self._write_document(path, body, replaces))

    async def record(self, event: Event) -> None:
        await self._perform(Record(event), lambda: self._record(event))

    async def together(self, programs: tuple[Program[Any], ...]) -> tuple[Any, ...]:
        me = await self._perform(Together(programs), self._running_task)
        tasks = [
            self._start(f"{me.name}.{number}", run(program, me.host), me.host, me)
            for number, program in enumerate(programs)
        ]
        try:
            while not all(task.is_done for task in tasks) and all(task.error is None for task in tasks):
                await self._park(me)
            for task in tasks:
                if task.error is not None:
                    raise task.error
            return tuple(task.result() for task in tasks)
        finally:
            for task in tasks:
                task.close()

    async def within(self, seconds: float, program: Program[Any]) -> Any:
        me = await self._perform(Within(seconds, program), self._running_task)
        until = self.clock + seconds
        task = self._start(me.name, run(program, me.host), me.host, me)
        try:
            while not task.is_done and self.clock < until:
                await self._park(me, until)
            if not task.is_done:
                raise TimeIsUp(f"not done in {seconds:g} seconds")
            return task.result()
        finally:
            task.close()

    async def shared(self, key: str, program: Program[Any]) -> Any:
        try:
            me = await self._perform(Shared(key, program), self._running_task)
        except BaseException:
            program.close()
            raise
        task = self._shared.get(key)
        if task is None or task.is_done:
            task = self._shared[key] = self._start(f"shared {key}", run(program, me.host), me.host)
        else:
            program.close()
        task.waiters.append(me)
        while not task.is_done:
            await self._park(me)
        return task.result()

    # Performing effects

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        """What goes wrong at the effect that comes next. A world of your own may decide otherwise."""
        return self._faults.get(len(self.trace))

    def stall_for(self, effect: Effect[Any]) -> Stall | None:
        """Whether the effect that comes next is never answered. A world of your own may decide so."""
        return None

    async def _perform(self, effect: Effect[Any], perform: Callable[[], T]) -> T:
        """Wait for this task's turn; then perform the effect, or what a fault makes of it."""
        me = self._running_task()
        await self._next_turn(me)
        fault = self.fault_for(effect)
        stall = self.stall_for(effect)
        self.trace.append((me.name, effect))
        if stall is not None:
            await self._stall(stall, effect, perform)
        return perform() if fault is None else inflict(fault, effect, perform)

    async def _stall(self, stall: Stall, effect: Effect[Any], perform: Callable[[], object]) -> NoReturn:
        if stall is Stall.AFTER:
            with suppress(HostFailure):
                perform()
        if stall is Stall.LATER:
            self._late.append((self._running_task().host, partial(self._write_late, effect)))
        if isinstance(effect, CallProvider):
            await self._wait_until(self.clock + effect.timeout)
            raise ProviderUnreachable("no answer in time", sent=True)
        while True:
            await self._park(self._running_task())

    def _write_late(self, effect: Effect[Any]) -> None:
        assert isinstance(effect, Commit)
        self.store.commit(effect.expects, effect.puts, effect.deletes)

    def _ask_provider(self, request: HttpRequest) -> HttpResponse | Answer:
        if self.provider is None:
            raise ProviderUnreachable("this world has no provider", sent=False)
        return self.provider(request)

    def _ask_platform(self, resource: str, client_id: str) -> PlatformToken:
        if self.platform is None:
            raise PlatformTokenUnavailable("this world has no platform")
        return self.platform(resource, client_id)

    def _record(self, event: Event) -> None:
        if event.audit is not None and not any(map(_can_be_written, event.audit.devices)):
            raise RecordFailed("no audit device of this world can be written")
        self.events.append(event)

    def _generate(self) -> Secret:
        self._generated += 1
        return Secret(private_key_pem(f"key {self._generated % KEYS} of a world"))

    def _read_file(self, path: str) -> Secret:
        if path not in self.files:
            raise PlatformTokenUnavailable("this world has no such file")
        return Secret(self.files[path])

    def _write_document(self, path: str, body: bytes, replaces: Document | None) -> None:
        if self.documents.get(path) != replaces:
            raise PublicationFailed("another document is there")
        self._written += 1
        self.documents[path] = Document(body, str(self._written))

    def _draw(self, count: int) -> bytes:
        self._drawn += 1
        return shake_128(b"%d %d" % (self.seed, self._drawn)).digest(count)


def _can_be_written(device: Device) -> bool:
    """Every device of a world can, but for one whose file is below what is no folder."""
    return not device.options.get("file_path", "").startswith(f"{NULL}/")
