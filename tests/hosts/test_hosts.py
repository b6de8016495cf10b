"""What our hosts promise beyond what is asked of every host."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import CORO_CLOSED, getcoroutinestate
from pathlib import Path
from typing import Any, Final

import aiohttp
import httpcore
import pytest

from cloudid_core.effects import (
    ABSENT,
    CallProvider,
    Commit,
    Effect,
    HttpRequest,
    HttpResponse,
    Sleep,
    gather,
    shared,
    together,
    within,
)
from cloudid_core.errors import (
    Conflict,
    OutcomeUnknown,
    PlatformTokenUnavailable,
    ProviderUnreachable,
    StoreFailed,
    TimeIsUp,
)
from cloudid_core.run import run
from cloudid_core.testing.conformance import Scripted
from cloudid_core.values.secret import Secret
from cloudid_servers.host.host import LANE_WIDTH, PROVIDER_BODY_LIMIT, Host
from cloudid_servers.machine.disk import BEARABLE_SECONDS, TRY_EVERY
from cloudid_servers.machine.platform_identity import Platform
from cloudid_servers.runtime.runtime import Runtime
from cloudid_servers.stores import Outcome
from cloudid_servers.stores.batches import Batches, Ticket
from cloudid_servers.stores.group_commit import GroupCommit
from cloudid_servers.stores.memory import InMemory
from cloudid_servers.trio_server import host as trio_host

from ..servers.certificates import write_certificate
from ..waiting import PATIENCE, until
from .opened import RUNTIMES, Scenario, on, serving
from .reference import ReferenceStore

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)
LONG: Final = PATIENCE


async def never(closed: list[str], name: str = "never") -> None:
    try:
        await Sleep(LONG)
    finally:
        closed.append(name)


async def failing() -> None:
    raise LookupError


def test_programs_that_never_started_are_closed(runtime: str) -> None:
    """A failure at the very first step of one program, while none of the others had its turn."""

    async def scenario(host: Host) -> None:
        programs = (failing(), *(never([]) for _ in range(5)))
        with pytest.raises(LookupError):
            await host.together(programs)
        assert {getcoroutinestate(program) for program in programs} == {CORO_CLOSED}

    on(runtime, scenario)


def test_a_time_limit_wins_over_a_failure_at_the_same_moment(runtime: str) -> None:
    """A program whose time is up does not go on, even if it was just being told of a failure."""
    outlived: list[str] = []

    async def fail_late() -> None:
        await Sleep(0)
        time.sleep(0.1)  # noqa: ASYNC251  # so that no event loop can end it before it has failed
        raise LookupError

    async def outlive() -> None:
        with suppress(LookupError):
            await together(fail_late(), never([]))
        await Sleep(0.1)
        outlived.append("a program")

    async def scenario(host: Host) -> None:
        with pytest.raises(TimeIsUp):
            await run(within(0.02, outlive()), host)

    on(runtime, scenario)
    assert outlived == []


def test_closing_a_host_ends_its_shared_programs_and_the_waits_for_them(runtime: str) -> None:
    closed: list[str] = []

    async def scenario(host: Host) -> None:
        with pytest.raises(TimeIsUp):
            await run(within(0.02, shared("key", never(closed))), host)
        assert closed == []
        host.start(lambda: wait_for_shared(host))
        await host.sleep(0)

    async def wait_for_shared(host: Host) -> None:
        await run(shared("key", never(closed, "unneeded")), host)

    on(runtime, scenario)
    assert closed == ["never"]


def test_a_failure_on_an_open_host_is_raised_without_a_group(runtime: str) -> None:
    async def scenario(host: Host) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        on(runtime, scenario)


def test_a_task_that_fails_in_the_background_is_reported_and_ends_nothing_else(runtime: str) -> None:
    reports: list[tuple[str, object]] = []
    closed: list[str] = []

    async def scenario(host: Host) -> str:
        host.report = lambda event, **facts: reports.append((event, facts["error"]))
        host.start(lambda: run(never(closed), host))
        host.start(failing)
        await host.sleep(0.02)
        assert closed == []
        return "still open"

    assert on(runtime, scenario) == "still open"
    assert reports == [("background task failed", "LookupError")]
    assert closed == ["never"], "what is cancelled is no failure"


def test_a_host_waits_until_a_socket_can_be_read_or_written(runtime: str) -> None:
    """Each wait leaves nothing behind, so that the next is on its own."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)

    async def scenario(host: Host) -> None:
        fd = ours.fileno()
        assert await host.wait_writable(fd, LONG)
        with suppress(BlockingIOError):
            while True:
                ours.send(bytes(2**16))
        assert not await host.wait_writable(fd, 0.02)
        assert not await host.wait_readable(fd, 0.02)
        threading.Timer(0.02, theirs.send, (b"1",)).start()
        assert await host.wait_readable(fd, LONG)
        assert ours.recv(1) == b"1"
        assert not await host.wait_readable(fd, 0.0)
        theirs.recv(2**20)
        assert await host.wait_writable(fd, LONG)

    with ours, theirs:
        on(runtime, scenario)


class Closed(InMemory):
    """A store that cannot be opened."""

    async def open(self, runtime: Runtime) -> None:
        raise StoreFailed("closed")


def test_a_store_that_cannot_be_opened_opens_no_host(runtime: str) -> None:
    async def scenario(host: Host) -> None:
        raise LookupError

    with pytest.raises(StoreFailed, match="closed"):
        on(runtime, scenario, Closed())


class SlowStore(ReferenceStore):
    """A store that waits for its disk, as long as its test wants; it notes its batches."""

    waited = 0.005

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.threads: set[int] = set()
        self.disk = threading.Event()

    def commit_all(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
        if not commits:
            return ()
        self.batches.append(len(commits))
        self.threads.add(threading.get_ident())
        self.disk.wait(LONG)
        return super().commit_all(commits)


async def put(key: str, *, expected: int = ABSENT) -> int:
    return await Commit({key: expected}, {key: b""})


async def started(store: SlowStore, batches: int) -> None:
    while len(store.batches) < batches:
        await Sleep(0.001)


def test_commits_that_come_while_one_is_written_share_the_next_batch(runtime: str) -> None:
    """Off the event loop; each has its own outcome."""
    store = SlowStore()

    async def others() -> list[Any]:
        await started(store, 1)

        async def release() -> None:
            await Sleep(0.01)
            store.disk.set()

        async def refused() -> str:
            with pytest.raises(Conflict):
                await put("second", expected=7)
            return "refused"

        return await gather([put("second"), put("third"), refused(), release()])

    async def scenario(host: Host) -> None:
        first, (second, third, refused, _) = await run(together(put("first"), others()), host)
        assert (first, {second, third}, refused) == (1, {2, 3}, "refused")

    on(runtime, scenario, GroupCommit(store))
    assert store.batches == [1, 3]
    assert threading.get_ident() not in store.threads


def test_what_a_batch_leaves_is_answered_by_the_next_one(runtime: str) -> None:
    """Callers of one batch wait for one event, and those of what is left go on waiting."""
    sizes: list[int] = []
    answers: list[int] = []

    async def first_only(batch: Sequence[Ticket[str, int]]) -> Sequence[Ticket[str, int]]:
        sizes.append(len(batch))
        batch[0].settle(len(sizes))
        return batch[1:]

    async def scenario(host: Host) -> None:
        batches: Batches[str, int] = Batches(host, first_only)

        async def asker(name: str) -> None:
            answers.append(await batches.ask(name))

        for name in ("first", "second", "third"):
            host.start(partial(asker, name))
        while len(answers) < 3:
            await host.sleep(0.001)

    on(runtime, scenario)
    assert sizes == [3, 2, 1]
    assert sorted(answers) == [1, 2, 3]


def test_an_asker_that_is_cut_off_takes_no_other_commit_with_it(runtime: str) -> None:
    """Neither while its own commit is written nor while that is waiting."""
    store = SlowStore()

    async def impatient(key: str) -> str:
        with suppress(TimeIsUp):
            await within(0.02, put(key))
        return "cut off"

    async def others() -> list[Any]:
        await started(store, 1)

        async def release() -> None:
            await Sleep(0.05)
            store.disk.set()

        return await gather([impatient("second"), put("third"), release()])

    async def scenario(host: Host) -> None:
        first, (second, third, _) = await run(together(impatient("first"), others()), host)
        assert (first, second, third > 1) == ("cut off", "cut off", True)
        assert await host.list_keys("", "", 9) == ("first", "third"), "a commit that waits is not made for no one"

    on(runtime, scenario, GroupCommit(store))


def test_a_host_is_closed_only_when_its_last_batch_is_written(runtime: str) -> None:
    store = SlowStore()

    async def scenario(host: Host) -> None:
        with pytest.raises(TimeIsUp):
            await run(within(0.02, put("a")), host)
        threading.Timer(0.05, store.disk.set).start()

    on(runtime, scenario, GroupCommit(store))
    assert store.read("a") is not None


class TimedStore(ReferenceStore):
    """A store whose disk takes a while; it notes which batches the event loop had to wait for."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.waited = seconds
        self.on_loop: list[bool] = []
        self._loop = threading.get_ident()

    def commit_all(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
        time.sleep(self.waited)
        if commits:
            self.on_loop.append(threading.get_ident() == self._loop)
        return super().commit_all(commits)


def write_in(store: TimedStore, runtime: str, batches: int, then: float | None = None) -> list[bool]:
    """One batch after the other; from half of them on the disk takes another time."""

    async def scenario(host: Host) -> None:
        for number in range(batches):
            if then is not None and number == batches // 2:
                store.waited = then
            await run(put(f"{number}"), host)

    on(runtime, scenario, GroupCommit(store))
    return store.on_loop


def test_a_quick_disk_is_waited_for_on_the_loop(runtime: str) -> None:
    assert write_in(TimedStore(0.0), runtime, 20) == [True] * 20


def test_a_slow_disk_holds_up_nothing_else(runtime: str) -> None:
    """From the first commit on, and with one try on the loop after many batches."""
    on_loop = write_in(TimedStore(0.005), runtime, TRY_EVERY + 2)
    assert on_loop == [False] * TRY_EVERY + [True, False]


def test_a_disk_that_hangs_is_not_tried_on_the_loop(runtime: str) -> None:
    assert not any(write_in(TimedStore(BEARABLE_SECONDS + 0.001), runtime, TRY_EVERY + 2))


def test_a_disk_that_becomes_slow_is_left_to_a_thread(runtime: str) -> None:
    on_loop = write_in(TimedStore(0.0), runtime, 40, then=0.006)
    assert on_loop[:20] == [True] * 20
    assert on_loop[-10:] == [False] * 10


def test_long_waits_now_and_then_do_not_make_a_disk_slow(runtime: str) -> None:
    """As on a busy machine, where the disk is quick and the processor is taken."""

    class Hiccups(TimedStore):
        def commit_all(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
            self.waited = 0.02 if len(self.on_loop) % 3 == 2 else 0.0
            return super().commit_all(commits)

    assert write_in(Hiccups(0.0), runtime, 30) == [True] * 30


def test_a_disk_that_becomes_quick_again_is_waited_for_on_the_loop(runtime: str) -> None:
    on_loop = write_in(TimedStore(0.005), runtime, 2 * TRY_EVERY, then=0.0)
    assert on_loop == [False] * TRY_EVERY + [True] * TRY_EVERY


class BrokenStore(ReferenceStore):
    """A store that raises, which no store may."""

    def commit_all(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
        if commits:
            raise LookupError
        return ()


def test_a_store_that_raises_leaves_the_outcome_unknown(runtime: str) -> None:
    async def scenario(host: Host) -> None:
        with pytest.raises(OutcomeUnknown):
            await run(put("a"), host)

    on(runtime, scenario, GroupCommit(BrokenStore()))


def call(path: str, method: str = "GET", **given: Any) -> Scenario[HttpResponse]:
    async def scenario(host: Host) -> HttpResponse:
        return await host.call_provider(HttpRequest(method, path, **given), LONG)

    return scenario


def test_answers_of_the_provider_are_bounded(runtime: str) -> None:
    def large(request: HttpRequest) -> Scripted:
        surplus = int(request.url.rpartition("/")[2])
        return Scripted(HttpResponse(200, {}, bytes(PROVIDER_BODY_LIMIT + surplus)))

    with serving(large) as url:
        assert len(on(runtime, call(f"{url}/0")).body) == PROVIDER_BODY_LIMIT
        with pytest.raises(ProviderUnreachable, match="too large"):
            on(runtime, call(f"{url}/1"))


def test_the_provider_learns_nothing_that_was_not_asked_for(runtime: str) -> None:
    """No cookie comes back, no library names itself, and no coding is offered."""
    seen: list[dict[str, str]] = []

    def curious(request: HttpRequest) -> Scripted:
        seen.append({name.lower(): value for name, value in request.headers.items()})
        return Scripted(HttpResponse(200, {"set-cookie": "track=me; Path=/"}))

    async def scenario(host: Host) -> None:
        for method in ("GET", "POST"):
            await host.call_provider(HttpRequest(method, f"{url}/", {"x-mine": "1"}), LONG)

    with serving(curious) as url:
        on(runtime, scenario)
    assert [headers.get("cookie") for headers in seen] == [None, None]
    assert [headers["user-agent"] for headers in seen] == ["cloudid"] * 2
    assert [headers["accept-encoding"] for headers in seen] == ["identity"] * 2
    assert [headers["x-mine"] for headers in seen] == ["1"] * 2


async def is_sent(host: Host, request: HttpRequest, timeout: float, ended: list[bool]) -> None:
    """Make a call that fails, and note whether it was sent."""
    with pytest.raises(ProviderUnreachable) as failure:
        await host.call_provider(request, timeout)
    ended.append(failure.value.sent)


@pytest.mark.parametrize("hanging", ["GET /graph", "PUT /arm"])
def test_calls_that_hang_make_only_their_own_kind_wait(
    runtime: str, hanging: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that hangs does not delay a look-up of a machine, and neither does a write that hangs.

    The first calls are sent; the others find no room, and are not.
    """
    monkeypatch.setattr("cloudid_servers.host.host.LANE_WIDTH", 2)
    method, path = hanging.split()
    is_over = threading.Event()

    def partly_hanging(request: HttpRequest) -> Scripted:
        hangs = request.method == method and f"{path}/" in request.url
        if hangs:
            is_over.wait(LONG)
        return Scripted(HttpResponse(200), drop=hangs)

    async def scenario(host: Host) -> None:
        ended: list[bool] = []
        for timeout in (LONG, LONG, 0.2, 0.2):
            host.start(partial(is_sent, host, HttpRequest(method, f"{url}{path}/object"), timeout, ended))
            await host.sleep(0.02)
        assert (await host.call_provider(HttpRequest("GET", f"{url}/arm/machine"), LONG)).status == 200
        await until(host.sleep, lambda: len(ended) == 2)
        assert ended == [False, False]
        is_over.set()
        await until(host.sleep, lambda: len(ended) == 4)
        assert ended[2:] == [True, True]
        assert (await host.call_provider(HttpRequest("GET", f"{url}/login/keys"), LONG)).status == 200
        assert host._lanes == {}

    with serving(partly_hanging) as url:
        on(runtime, scenario)


def test_calls_of_one_mount_that_hang_do_not_make_those_of_another_wait(
    runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mounts are told apart by their access tokens. All together have room for a few of them only."""
    monkeypatch.setattr("cloudid_servers.host.host.LANE_WIDTH", 2)
    monkeypatch.setattr("cloudid_servers.host.host.ROAD_WIDTH", 3)
    is_over = threading.Event()

    def call(url: str, token: str) -> HttpRequest:
        return HttpRequest("POST", f"{url}/graph/objects", {"authorization": f"Bearer {token}"})

    def hanging_for_one(request: HttpRequest) -> Scripted:
        hangs = request.headers["authorization"] != "Bearer free"
        if hangs:
            is_over.wait(LONG)
        return Scripted(HttpResponse(200), drop=hangs)

    async def scenario(host: Host) -> None:
        ended: list[bool] = []
        for timeout in (LONG, LONG, 0.2):
            host.start(partial(is_sent, host, call(url, "stuck"), timeout, ended))
            await host.sleep(0.02)
        assert (await host.call_provider(call(url, "free"), LONG)).status == 200
        host.start(partial(is_sent, host, call(url, "stuck as well"), LONG, ended))
        await host.sleep(0.02)
        await is_sent(host, call(url, "free"), 0.2, ended)
        await until(host.sleep, lambda: len(ended) == 2)
        assert ended == [False, False]
        is_over.set()
        await until(host.sleep, lambda: len(ended) == 5)
        assert host._lanes == {}

    with serving(hanging_for_one) as url:
        on(runtime, scenario)


def test_a_thousand_calls_share_few_connections(runtime: str) -> None:
    """However many requests wait for facts, the provider sees a bounded number at a time, and all are answered."""
    now, most = 0, 0
    lock = threading.Lock()

    def counted(request: HttpRequest) -> Scripted:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.002)
        with lock:
            now -= 1
        return Scripted(HttpResponse(200))

    async def scenario(host: Host) -> None:
        async def one() -> int:
            return (await CallProvider(HttpRequest("GET", f"{url}/arm/machine"), LONG)).status

        assert await run(gather([one() for _ in range(1000)]), host) == [200] * 1000

    with serving(counted) as url:
        on(runtime, scenario)
    assert most <= LANE_WIDTH


def test_calls_wait_in_their_lane_and_not_in_the_pool_of_a_library(
    runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits in a pool costs as much as the pool has connections, whenever one of them changes."""
    inside, most = Counter[object](), Counter[object]()
    pools: tuple[type, str, int] = (aiohttp.TCPConnector, "connect", 1)
    if runtime == "trio":
        pools = (httpcore.AsyncConnectionPool, "handle_async_request", trio_host.POOLS)
    pool_class, name, count = pools
    plain = getattr(pool_class, name)

    async def counted(pool: object, *arguments: Any, **options: Any) -> Any:
        inside[pool] += 1
        most[pool] = max(most[pool], inside[pool])
        try:
            return await plain(pool, *arguments, **options)
        finally:
            inside[pool] -= 1

    async def scenario(host: Host) -> None:
        async def one() -> int:
            return (await CallProvider(HttpRequest("GET", f"{url}/arm/machine"), LONG)).status

        assert await run(gather([one() for _ in range(500)]), host) == [200] * 500

    monkeypatch.setattr(pool_class, name, counted)
    with serving(lambda request: Scripted(HttpResponse(200), 0.002)) as url:
        on(runtime, scenario)
    assert 0 < max(most.values()) <= LANE_WIDTH / count


def test_calls_one_after_the_other_share_a_connection(runtime: str) -> None:
    connections = 0

    class Provider(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            nonlocal connections
            connections += 1
            super().setup()

        def do_GET(self) -> None:
            self.send_response_only(204)
            self.end_headers()

    async def scenario(host: Host) -> None:
        for _ in range(5):
            request = HttpRequest("GET", f"http://127.0.0.1:{server.server_port}/arm/machine")
            assert (await host.call_provider(request, LONG)).status == 204

    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        on(runtime, scenario)
        server.shutdown()
        thread.join()
    assert connections == 1


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_a_gateway_that_ends_kept_connections_silently_costs_no_call(runtime: str, method: str) -> None:
    """A call that must not be made twice has a new connection; any other is made again at once."""
    connections, calls = 0, 0

    class Provider(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            nonlocal connections
            connections += 1
            super().setup()
            self.has_answered = False

        def answer(self) -> None:
            nonlocal calls
            self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.has_answered:  # it ends when the next request has come
                self.close_connection = True
                return
            self.has_answered = True
            calls += 1
            self.send_response_only(204)
            self.end_headers()

        do_GET = do_POST = do_PATCH = do_DELETE = answer

    async def scenario(host: Host) -> None:
        url = f"http://127.0.0.1:{server.server_port}/arm/machine"
        for number in range(6):
            request = HttpRequest(method, url, {}, b"", idempotent=number % 2 == 0)
            assert (await host.call_provider(request, LONG)).status == 204

    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        on(runtime, scenario)
        server.shutdown()
        thread.join()
    assert calls == 6


def test_headers_of_an_answer_are_read_byte_by_byte(runtime: str) -> None:
    """As Latin-1, in which every byte stands for a letter: neither UTF-8 nor what is none becomes anything else."""
    headers = {"x-check": "\xc3\xa9 \xe9"}

    async def scenario(host: Host) -> None:
        response = await host.call_provider(HttpRequest("GET", f"{url}/arm/machine"), LONG)
        assert response.headers["x-check"] == headers["x-check"]

    with serving(lambda request: Scripted(HttpResponse(200, headers, b""))) as url:
        on(runtime, scenario)


def test_an_empty_body_has_a_length_where_one_is_expected(runtime: str) -> None:
    """Some servers refuse a POST that does not say how long it is."""
    lengths: dict[str, str | None] = {}

    def note(request: HttpRequest) -> Scripted:
        lengths[request.method] = request.headers.get("Content-Length")
        return Scripted(HttpResponse(200))

    async def scenario(host: Host) -> None:
        for method in ("GET", "PATCH", "POST", "PUT"):
            await host.call_provider(HttpRequest(method, f"{url}/"), LONG)

    with serving(note) as url:
        on(runtime, scenario)
    assert lengths == {"GET": None, "PATCH": "0", "POST": "0", "PUT": "0"}


def test_a_shared_program_that_is_stuck_ends_for_all(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next who asks gets a new one."""
    monkeypatch.setattr("cloudid_servers.host.host.SHARED_SECONDS", 0.1)
    closed: list[str] = []

    async def stuck() -> str:
        try:
            await shared("key", never(closed))
        except TimeIsUp:
            return "time is up"
        return "answered"

    async def quick() -> str:
        return "new"

    async def scenario(host: Host) -> None:
        assert await run(gather([stuck(), stuck()]), host) == ["time is up"] * 2
        assert await run(shared("key", quick()), host) == "new"

    on(runtime, scenario)
    assert closed == ["never"]


def test_the_certificate_of_the_provider_is_checked(runtime: str, tmp_path: Path) -> None:
    """A provider whose certificate no authority has signed is not sent a byte of a request."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    write_certificate(tmp_path, "localhost")
    tls.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        received: list[bytes] = []

        def serve() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection, tls.wrap_socket(connection, server_side=True) as secure:
                    received.append(secure.recv(1000))

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ProviderUnreachable) as failure:
            on(runtime, call(f"https://127.0.0.1:{listener.getsockname()[1]}/"))
        thread.join()
    assert not failure.value.sent
    assert received == []


def test_proxies_of_the_environment_are_not_used(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving(lambda request: Scripted(HttpResponse(200))) as url:
        assert on(runtime, call(f"{url}/")).status == 200


def test_a_platform_token_is_fetched_from_the_metadata_service(runtime: str) -> None:
    asked: list[HttpRequest] = []

    def metadata(request: HttpRequest) -> Scripted:
        asked.append(request)
        return Scripted(HttpResponse(200, {}, b'{"access_token": "t", "expires_on": "1700000000"}'))

    async def scenario(host: Host) -> None:
        token = await host.read_platform_token("https://vault.test/", "an id")
        assert (token.token, token.expires_at) == (Secret("t"), 1_700_000_000.0)

    with serving(metadata) as url:
        on(runtime, scenario, platform=Platform(url))
    [request] = asked
    query = "api-version=2018-02-01&resource=https%3A%2F%2Fvault.test%2F&client_id=an+id"
    assert request.url == f"{url}/metadata/identity/oauth2/token?{query}"


def test_a_platform_that_does_not_answer_has_no_token(runtime: str) -> None:
    async def scenario(host: Host) -> None:
        with pytest.raises(PlatformTokenUnavailable) as unavailable:
            await host.read_platform_token("https://vault.test/", "")
        assert unavailable.value.status == PlatformTokenUnavailable.NO_ANSWER

    on(runtime, scenario, platform=Platform("http://127.0.0.1:1"))


def test_a_federated_token_is_read_anew_from_its_file(runtime: str, tmp_path: Path) -> None:
    file = tmp_path / "token"

    async def scenario(host: Host) -> None:
        for text in ("first", "second"):
            file.write_text(f"{text}\n")
            assert await host.read_federated_token(str(file)) == Secret(text)

    on(runtime, scenario)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff", b"x" * (2**14 + 1)])
def test_a_file_without_a_token_is_a_failure_of_the_platform(runtime: str, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)

    async def scenario(host: Host) -> None:
        with pytest.raises(PlatformTokenUnavailable):
            await host.read_federated_token(str(file))

    on(runtime, scenario)


def test_a_commit_that_a_batch_leaves_is_not_made_for_a_caller_that_was_cancelled(runtime: str) -> None:
    """It is withdrawn while the batch that leaves it is under way."""
    written: list[str] = []
    was_left: list[bool] = []

    async def scenario(host: Host) -> None:
        is_cut_off = host.new_event()

        async def leaving(batch: Sequence[Ticket[str, int]]) -> Sequence[Ticket[str, int]]:
            left = [ticket for ticket in batch if ticket.request == "withdrawn" and not was_left]
            if left:
                was_left.append(True)
                await is_cut_off.wait()
            for ticket in batch:
                if ticket not in left:
                    written.append(ticket.request)
                    ticket.settle(len(written))
            return left

        batches: Batches[str, int] = Batches(host, leaving)

        class Ask(Effect[int], frozen=True):
            request: str

            def perform_on(self, host: Any) -> Any:
                return batches.ask(self.request)

        async def ask(request: str) -> None:
            await Ask(request)

        async def impatient() -> None:
            with suppress(TimeIsUp):
                await within(0.02, ask("withdrawn"))
            is_cut_off.set()

        await run(together(ask("first"), impatient()), host)
        await batches.ask("last")

    on(runtime, scenario)
    assert written == ["first", "last"]
