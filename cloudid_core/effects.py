"""Effects: everything that the core may ask of its host, on one page.

A program is a coroutine over these effects: `now = await Now()` hands the frozen value `Now()` to the loop that runs
the program and resumes with the answer. Nothing here waits by itself: `await` is used as a language feature, and
`run_now` runs a whole login without an event loop.

Rules, kept by tests:

1. An effect is inert data: no callable, no open file, and nothing secret in its repr. Three effects carry programs
   (`Together`, `Within`, `Shared`); that is the only structure that a host has to know.
2. A failure is *sent in as a value* and raised where the effect was awaited. `coroutine.throw` would lose the context
   of an exception that is being handled (CPython issue 108668).
3. Cancellation is a crash: the program is closed on the spot. Nothing awaits in a `finally`.
4. Provider writes never run inside `Within`, and inside `Together` only as background work that cannot fail: what those
   cut short must be harmless. The one around a whole request strikes after its deadline, when its calls to the provider
   have ended by themselves; what it cuts short is a crash of that request alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec
from attrs import field, frozen

from .errors import PublicationFailed, RecordFailed
from .events import Event
from .metrics import Numbers
from .values import Secret

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)

Instant: TypeAlias = float
"""A point in time: seconds since 1970-01-01T00:00:00Z, wall clock."""


class Failure(msgspec.Struct, frozen=True):
    """The answer to an effect that failed."""

    error: Exception


class Effect(msgspec.Struct, Generic[T_co], frozen=True):
    """A request to the host, and the type of its answer. Await it to get the answer."""

    @abstractmethod
    def perform_on(self, host: Host) -> Awaitable[T_co]: ...

    def __await__(self) -> Generator[Effect[Any], Any, T_co]:
        reply = yield self
        if type(reply) is Failure:
            try:
                raise reply.error
            finally:
                del reply  # its error refers to this frame, which must not refer back to it
        answer: T_co = reply
        return answer


Program: TypeAlias = Coroutine[Effect[Any], Any, T]
"""A program that runs on any host."""


def name_of(program: Program[Any]) -> str:
    """Return the name of a program for people."""
    return getattr(program, "__name__", "program")


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An entry of the store. Versions are unique, and grow over the whole store."""

    value: bytes
    version: int

    def __repr__(self) -> str:
        return f"<Entry {self.version}>"


MOST_ENTRIES: Final = 1000
"""Maximum number of entries that one effect reads."""

MOST_COMMITTED: Final = 90
"""Maximum number of entries that a commit names: those it expects, puts and deletes, each counted once.

DynamoDB and Cosmos DB accept 100 operations in a transaction, and a store may need some of them for its own entries.
"""

ABSENT = 0
"""The version of an entry that does not exist."""


@frozen
class HttpRequest:
    """A request to Azure. Only its method and path are ever printed."""

    method: str
    url: str = field(repr=lambda url: repr(url.partition("?")[0]))
    headers: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    body: bytes = field(default=b"", repr=False)
    idempotent: bool = field(default=True, repr=False)
    """Whether a host may repeat the request if a kept connection ended before a response.

    Otherwise, the host sends it on a new connection if it can.
    """


@frozen
class HttpResponse:
    """A response from Azure, whatever its status. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    body: bytes = field(default=b"", repr=False)


@frozen
class PlatformToken:
    """An access token from the platform that the host runs on."""

    token: Secret
    expires_at: Instant


@frozen
class Document:
    """A published document."""

    body: bytes = field(repr=False)
    tag: str
    """Changes whenever the document changes. Empty: the place of publication does not support it."""


class Ready(msgspec.Struct, Generic[T_co], frozen=True, gc=False):
    """An answer for which a host need not wait. `run` uses it directly; awaiting it also works, but costs more."""

    answer: T_co

    def __await__(self) -> Generator[Any, Any, T_co]:
        return self.answer
        yield  # makes this a generator, which `await` needs


class Host(ABC):
    """Perform effects, and decide nothing.

    A host raises only `HostFailure`s, and every method may be called concurrently. Every host inherits from this class,
    so a host that lacks a method cannot be instantiated. Methods are usually `async def`. If a method never waits, a
    plain `def` that returns `Ready(answer)` is faster.
    """

    @abstractmethod
    def read_entry(self, key: str) -> Awaitable[Entry | None]: ...

    @abstractmethod
    def read_entries(self, keys: tuple[str, ...]) -> Awaitable[Mapping[str, Entry]]: ...

    @abstractmethod
    def list_keys(self, prefix: str, after: str, limit: int) -> Awaitable[tuple[str, ...]]: ...

    @abstractmethod
    def commit(
        self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]
    ) -> Awaitable[int]: ...

    @abstractmethod
    def call_provider(self, request: HttpRequest, timeout: float) -> Awaitable[HttpResponse]: ...

    @abstractmethod
    def read_platform_token(self, resource: str, client_id: str) -> Awaitable[PlatformToken]: ...

    @abstractmethod
    def sleep(self, seconds: float) -> Awaitable[None]: ...

    @abstractmethod
    def now(self) -> Awaitable[Instant]: ...

    @abstractmethod
    def compare_clocks(self) -> Awaitable[ClockReading | None]: ...

    @abstractmethod
    def random_bytes(self, count: int) -> Awaitable[bytes]: ...

    @abstractmethod
    def generate_key(self) -> Awaitable[Secret]: ...

    @abstractmethod
    def read_federated_token(self, path: str) -> Awaitable[Secret]: ...

    @abstractmethod
    def record(self, event: Event) -> Awaitable[None]: ...

    @abstractmethod
    def together(self, programs: tuple[Program[Any], ...]) -> Awaitable[tuple[Any, ...]]: ...

    @abstractmethod
    def within(self, seconds: float, program: Program[Any]) -> Awaitable[Any]: ...

    @abstractmethod
    def shared(self, key: str, program: Program[Any]) -> Awaitable[Any]: ...

    def read_document(self, path: str) -> Awaitable[Document | None]:
        """A host that does not publish documents keeps this and `write_document` as they are."""
        raise PublicationFailed("this host does not publish documents")

    def write_document(self, path: str, body: bytes, replaces: Document | None) -> Awaitable[None]:
        raise PublicationFailed("this host does not publish documents")

    def show_metrics(self, numbers: Numbers, output: str) -> Awaitable[str | None]:
        """A host without metrics keeps this as it is. `sys/metrics` is 404 then."""
        return Ready(None)


class ReadEntry(Effect["Entry | None"], frozen=True):
    """Read one entry of the store, or `None` if it does not exist."""

    key: str

    def perform_on(self, host: Host) -> Awaitable[Entry | None]:
        return host.read_entry(self.key)


class ReadEntries(Effect[Mapping[str, Entry]], frozen=True):
    """Read up to `MOST_ENTRIES` entries of the store, and return those that exist by their keys.

    Each is read as by `ReadEntry`, and a commit may come between two of them.
    """

    keys: tuple[str, ...]

    def perform_on(self, host: Host) -> Awaitable[Mapping[str, Entry]]:
        return host.read_entries(self.keys)


class ListKeys(Effect[tuple[str, ...]], frozen=True):
    """Return up to `limit` keys that start with `prefix` and sort after `after`, in order of their code points."""

    prefix: str
    after: str = ""
    limit: int = 1000

    def perform_on(self, host: Host) -> Awaitable[tuple[str, ...]]:
        return host.list_keys(self.prefix, self.after, self.limit)


class Commit(Effect[int], frozen=True):
    """Write all changes or none, and only if every key of `expects` has its version (`ABSENT`: it does not exist).

    The answer is the new version of all entries in `puts`. Fails with `Conflict` (nothing was written), `StoreFailed`
    (nothing was written) or `OutcomeUnknown` (read again: the outcome no longer changes). It names at most
    `MOST_COMMITTED` entries, and no key is in both `puts` and `deletes`.

    A host executes the commits that change the same entry in order. If a program is closed, its commit may still be
    written, but before all that follow. Commits that undo it rely on this.
    """

    expects: Mapping[str, int]
    puts: Mapping[str, bytes] = {}
    deletes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Commit(expects={self.expects!r}, puts={sorted(self.puts)!r}, deletes={self.deletes!r})"

    def perform_on(self, host: Host) -> Awaitable[int]:
        return host.commit(self.expects, self.puts, self.deletes)


class CallProvider(Effect[HttpResponse], frozen=True):
    """Send one HTTP request to Azure, without retries or redirects. Any status is an answer.

    Fails with `ProviderUnreachable` if there is no response within `timeout` seconds. The host limits the size of
    bodies.
    """

    request: HttpRequest
    timeout: float

    def perform_on(self, host: Host) -> Awaitable[HttpResponse]:
        return host.call_provider(self.request, self.timeout)


class ReadPlatformToken(Effect[PlatformToken], frozen=True):
    """Return an access token for `resource` for the identity of the host's machine.

    `client_id` chooses a user-assigned identity; empty chooses the system-assigned one. Fails with
    `PlatformTokenUnavailable`, whose `status` says whether the program may retry.
    """

    resource: str
    client_id: str = ""

    def perform_on(self, host: Host) -> Awaitable[PlatformToken]:
        return host.read_platform_token(self.resource, self.client_id)


class ReadFederatedToken(Effect[Secret], frozen=True):
    """Return the token in the file that a container platform writes and renews for the host's workload.

    The file is read every time. Fails with `PlatformTokenUnavailable`.
    """

    path: str

    def perform_on(self, host: Host) -> Awaitable[Secret]:
        return host.read_federated_token(self.path)


class ReadDocument(Effect["Document | None"], frozen=True):
    """Return one of the service's own published documents by its path, or `None` if it does not exist.

    Fails with `PublicationFailed`.
    """

    path: str

    def perform_on(self, host: Host) -> Awaitable[Document | None]:
        return host.read_document(self.path)


class WriteDocument(Effect[None], frozen=True):
    """Publish a document in place of the one that was read, or where there was none.

    Fails with `PublicationFailed`, also if a different document was published since.
    """

    path: str
    body: bytes
    replaces: Document | None

    def __repr__(self) -> str:
        return f"WriteDocument({self.path!r})"

    def perform_on(self, host: Host) -> Awaitable[None]:
        return host.write_document(self.path, self.body, self.replaces)


class Sleep(Effect[None], frozen=True):
    """Continue after this many seconds."""

    seconds: float

    def perform_on(self, host: Host) -> Awaitable[None]:
        return host.sleep(self.seconds)


class Now(Effect[Instant], frozen=True):
    """The wall clock."""

    def perform_on(self, host: Host) -> Awaitable[Instant]:
        return host.now()


class ClockReading(msgspec.Struct, frozen=True):
    """The difference between the store's clock and the host's."""

    offset: float
    """Seconds by which the store's clock is ahead."""

    uncertainty: float
    """The accuracy of the offset, in seconds."""


class CompareClocks(Effect["ClockReading | None"], frozen=True):
    """Return the store's clock as of the last commit. `None` if it is the host's clock, or before the first commit."""

    def perform_on(self, host: Host) -> Awaitable[ClockReading | None]:
        return host.compare_clocks()


class RandomBytes(Effect[bytes], frozen=True):
    """Return random bytes from the operating system."""

    count: int

    def perform_on(self, host: Host) -> Awaitable[bytes]:
        return host.random_bytes(self.count)


class GenerateKey(Effect[Secret], frozen=True):
    """Generate an RSA key of 2048 bits, and return the private key as PEM (PKCS #8, not encrypted).

    Takes about 0.1 seconds.
    """

    def perform_on(self, host: Host) -> Awaitable[Secret]:
        return host.generate_key()


class Record(Effect[None], frozen=True):
    """Pass an event to the host's log, audit devices and metrics.

    Fails with `RecordFailed` if the event has entries for audit devices (`Event.audit`) and no device could write its
    entry. A host without audit devices always fails then. The request is not executed, or not answered, after such a
    failure.
    """

    event: Event

    def __repr__(self) -> str:
        return "Record()"

    def perform_on(self, host: Host) -> Awaitable[None]:
        return host.record(self.event)


class ShowMetrics(Effect["str | None"], frozen=True):
    """Return all metrics of this machine as text, `prometheus` or `json`: what the host counted, and `numbers`.

    `None`: the host has no metrics.
    """

    numbers: Numbers
    output: str

    def __repr__(self) -> str:
        return f"ShowMetrics({self.output!r})"

    def perform_on(self, host: Host) -> Awaitable[str | None]:
        return host.show_metrics(self.numbers, self.output)


class Together(Effect[tuple[Any, ...]], frozen=True):
    """Run programs in parallel, and return their answers in order.

    If some fail, the others are closed, and the first failure *in order* is raised, not in a group.
    """

    programs: tuple[Program[Any], ...]

    def __repr__(self) -> str:
        return f"Together(<{len(self.programs)} programs>)"

    def perform_on(self, host: Host) -> Awaitable[tuple[Any, ...]]:
        return host.together(self.programs)


class Within(Effect[Any], frozen=True):
    """Run a program. If it takes longer, close it and fail with `TimeIsUp`."""

    seconds: float
    program: Program[Any]

    def __repr__(self) -> str:
        return f"Within({self.seconds!r}, {name_of(self.program)})"

    def perform_on(self, host: Host) -> Awaitable[Any]:
        return host.within(self.seconds, self.program)


class Shared(Effect[Any], frozen=True):
    """Run a program once for all callers with the same `key`. All of them get its answer or failure.

    The program runs in the host's own scope, so cancelling one caller does not cancel the others. `key` is the full
    identity of the call. A program that is not needed, because one is already running, is closed unstarted.
    """

    key: str
    program: Program[Any]

    def __repr__(self) -> str:
        return f"Shared({self.key!r}, {name_of(self.program)})"

    def perform_on(self, host: Host) -> Awaitable[Any]:
        return host.shared(self.key, self.program)


async def record_if_possible(event: Event) -> None:
    """Record an event that is not required for anything, because what has happened can no longer be refused."""
    with suppress(RecordFailed):
        await Record(event)


async def give_way() -> None:
    """Let other programs run before this one continues.

    A program that computes for a long time between two effects does this every few milliseconds, because a host runs
    all programs on one thread.
    """
    await Sleep(0.0)


async def in_turns(items: Iterable[T], work: Callable[[T], Iterable[U]], at_once: int) -> list[U]:
    """Return the results of `work` for all items, in order. Other programs run after each `at_once` items."""
    made: list[U] = []
    left = iter(items)
    batch = list(islice(left, at_once))
    while batch:
        for item in batch:
            made.extend(work(item))
        batch = list(islice(left, at_once))
        if batch:
            await give_way()
    return made


A = TypeVar("A")
B = TypeVar("B")


async def together(first: Program[A], second: Program[B]) -> tuple[A, B]:
    """Run two programs in parallel, and return their answers."""
    answers: list[Any] = await gather((first, second))
    return answers[0], answers[1]


async def gather(programs: Sequence[Program[T]]) -> list[T]:
    """Run any number of programs in parallel, and return their answers."""
    try:
        answers = await Together(tuple(programs))
    finally:
        for program in programs:
            program.close()
    return list(answers)


async def within(seconds: float, program: Program[T]) -> T:
    """Return the answer of a program, or raise `TimeIsUp` if it takes too long."""
    try:
        answer: T = await Within(seconds, program)
    finally:
        program.close()
    return answer


async def shared(key: str, program: Program[T]) -> T:
    """Return the answer of a program that runs once for all callers with the same `key`."""
    answer: T = await Shared(key, program)
    return answer
