"""The conformance suite fails on every wrong host: each is a correct one with a single mistake."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import httpx
import pytest

from cloudid_core import Host, HttpRequest, HttpResponse, MemoryStore
from cloudid_core.effects import ABSENT, Entry
from cloudid_core.errors import Conflict, ProviderUnreachable
from cloudid_core.testing import CHECKS, NotConforming, check_host, shared_store_checks
from cloudid_servers.conformance import served_provider
from tests.pages.blocks import blocks_of
from tests.waiting import PATIENCE, PATIENT

HOST, *_ = blocks_of("docs/how-to/write-a-host.md", "python")
NAMES: Final[dict[str, Any]] = {}
HOUR: Final = 3600.0
exec(HOST.text, NAMES)
Right: Final[Any] = NAMES["MemoryHost"]


class VersionsComeTwice(MemoryStore):
    """The version is the greatest in the table, and one more."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Any) -> int:
        self.revision = max((entry.version for entry in self._entries.values()), default=0)
        return super().commit(expects, puts, deletes)


class VersionIsTime(MemoryStore):
    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Any) -> int:
        self.revision = int(time.time() * 10)
        return super().commit(expects, puts, deletes)


def with_store(store: type[MemoryStore]) -> type[Any]:
    class WrongStore(Right):  # type: ignore[misc]  # a class of the page
        def __init__(self, http: httpx.AsyncClient) -> None:
            super().__init__(http)
            self.store = store()

    return WrongStore


class Torn(Right):  # type: ignore[misc]
    """Puts and deletes are two transactions."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        version = self.store.commit(expects, puts, ())
        await asyncio.sleep(0)
        self.store.commit({}, {}, deletes)
        return int(version)


class HalfWhenCancelled(Right):  # type: ignore[misc]
    """A commit that is cancelled leaves what it has written so far."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        for key, version in expects.items():
            entry: Entry | None = self.store.read(key)
            if version != (entry.version if entry else ABSENT):
                raise Conflict(key)
        for key in puts:
            await asyncio.sleep(0.001)
            self.store.commit({}, {key: puts[key]}, ())
        return int(self.store.commit({}, puts, deletes))


class Seeded(Right):  # type: ignore[misc]
    """Random bytes from a pool that starts over."""

    draws = 0

    async def random_bytes(self, count: int) -> bytes:
        self.draws += 1
        return random.Random(self.draws % 1000).randbytes(count)


class GoesBack(Right):  # type: ignore[misc]
    """The clock goes back 100 s every third second."""

    async def now(self) -> float:
        now = time.time()
        return now - 100 * (int(now) % 3 == 0)


class LateLists(Right):  # type: ignore[misc]
    """Lists are an hour late."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        super().__init__(http)
        self.listed: MemoryStore = self.store.copy()
        self.copied_at = time.time()

    async def list_keys(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        if time.time() > self.copied_at + HOUR:
            self.listed, self.copied_at = self.store.copy(), time.time()
        return tuple(self.listed.list(prefix, after, limit))


ALONE: Final[Mapping[str, tuple[type[Any], str]]] = {
    "the version of a deleted entry comes again": (with_store(VersionsComeTwice), "no_version_comes_twice"),
    "the version is a time": (with_store(VersionIsTime), "no_version_comes_twice"),
    "puts and deletes are two transactions": (Torn, "a_commit_moves_an_entry_at_once"),
    "a cancelled commit leaves half": (HalfWhenCancelled, "a_commit_that_was_cut_off_is_whole_or_nothing"),
    "random bytes come again": (Seeded, "random_bytes_do_not_come_again"),
    "the clock goes back": (GoesBack, "the_clock_never_goes_back"),
    "lists are late": (LateLists, "keys_are_listed_in_order_of_code_points"),
}


async def opened(host: type[Any], work: Callable[[Any, Any], Awaitable[None]]) -> None:
    async with httpx.AsyncClient(**PATIENT) as http:
        await work(host(http), http)


def only(name: str) -> Any:
    return [check for check in CHECKS if check.name == name]


@pytest.mark.parametrize("mistake", ALONE)
def test_a_wrong_host_does_not_conform(mistake: str) -> None:
    wrong, name = ALONE[mistake]

    async def work(host: Host, http: httpx.AsyncClient) -> None:
        with pytest.raises(NotConforming, match=f"^{name}: NotConforming"):
            await check_host(host, only(name))

    asyncio.run(opened(wrong, work))


class Cached(Right):  # type: ignore[misc]
    """What `read_entries` has answered is cached until an own commit."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        super().__init__(http)
        self.cache: dict[str, Entry] = {}

    async def read_entries(self, keys: tuple[str, ...]) -> Mapping[str, Entry]:
        for key, entry in self.store.read_all(keys).items():
            self.cache.setdefault(key, entry)
        return {key: self.cache[key] for key in keys if key in self.cache}


class Lagging(Right):  # type: ignore[misc]
    """Reads come from a snapshot of up to an hour, which own commits renew."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        super().__init__(http)
        self.snapshot: MemoryStore = self.store.copy()
        self.taken_at = 0.0

    async def read_entry(self, key: str) -> Entry | None:
        if time.time() > self.taken_at + HOUR:
            self.snapshot, self.taken_at = self.store.copy(), time.time()
        return self.snapshot.read(key)

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        self.taken_at = 0.0
        return int(await super().commit(expects, puts, deletes))


class SameSeed(Right):  # type: ignore[misc]
    """Random bytes from a constant seed: the fresh prefixes of the checks are not."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        super().__init__(http)
        self.random, self.draws = random.Random(1), 0

    async def random_bytes(self, count: int) -> bytes:
        self.draws += 1
        return bytes(self.random.randbytes(count))


SHARED: Final = (
    (Cached, "what_was_read_before_is_read_again"),
    (Lagging, "what_was_read_before_is_read_again"),
    (SameSeed, "random_bytes_of_two_hosts_differ"),
)


@pytest.mark.parametrize("wrong, name", SHARED)
def test_a_wrong_host_does_not_share_its_store(wrong: type[Any], name: str) -> None:
    async def work(host: Any, http: httpx.AsyncClient) -> None:
        other = wrong(http)
        other.store = host.store
        [check] = [each for each in shared_store_checks(other) if each.name == name]
        with pytest.raises(NotConforming, match=f"^{name}: NotConforming"):
            await check_host(host, [check])

    asyncio.run(opened(wrong, work))


class SentTwice(Right):  # type: ignore[misc]
    """A request is sent again when its connection breaks, whatever it is."""

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        try:
            answer: HttpResponse = await super().call_provider(request, timeout)
        except ProviderUnreachable as failure:
            if not failure.sent:
                raise
            answer = await super().call_provider(request, timeout)
        return answer


class TimeoutPerRead(Right):  # type: ignore[misc]
    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        try:
            answer = await self.http.request(
                request.method, request.url, headers=request.headers, content=request.body, timeout=timeout
            )
        except httpx.HTTPError as error:
            raise ProviderUnreachable("no", sent=not isinstance(error, httpx.ConnectError)) from None
        return HttpResponse(answer.status_code, dict(answer.headers), answer.content)


class AnHourOff(Right):  # type: ignore[misc]
    async def now(self) -> float:
        return time.time() + HOUR


TRICKLES: Final = "an_answer_that_trickles_ends_at_the_timeout"
CALLS: Final[Mapping[str, tuple[type[Any], dict[str, Any], str]]] = {
    "a POST is sent twice": (SentTwice, {}, "a_call_that_may_not_be_repeated_is_sent_once"),
    "certificates are not checked": (Right, {"verify": False}, "a_certificate_that_is_not_trusted_is_refused"),
    "the timeout is that of a read": (TimeoutPerRead, {}, TRICKLES),
    "cookies are kept": (Right, {}, "no_cookie_is_kept"),
    "proxies of the environment are used": (Right, {"trust_env": True}, "a_body_comes_back_as_bytes"),
    "redirects are followed": (Right, {"follow_redirects": True}, "a_redirect_is_not_followed"),
    "the clock is an hour off": (AnHourOff, {}, "the_clock_is_that_of_others"),
}
OTHER_FAILURES: Final = {TRICKLES: "TimeIsUp", "a_body_comes_back_as_bytes": "ProviderUnreachable"}
"""Of checks that end otherwise than with `NotConforming`."""


NOTICED: Final = frozenset(
    [name for _, name in ALONE.values()] + [name for _, name in SHARED] + [name for *_, name in CALLS.values()]
)
"""The checks that notice one of these hosts."""


@pytest.mark.parametrize("mistake", CALLS)
def test_a_wrong_host_does_not_call_as_it_must(mistake: str) -> None:
    wrong, options, name = CALLS[mistake]
    failure = OTHER_FAILURES.get(name, "NotConforming")

    async def work() -> None:
        with served_provider() as provider:
            [check] = [each for each in provider.checks if each.name == name]
            async with httpx.AsyncClient(**{"trust_env": False, **options}) as http:
                with pytest.raises(NotConforming, match=f"^{name}: {failure}: "):
                    await check_host(wrong(http), [check], limit=10 if failure == "TimeIsUp" else PATIENCE)

    asyncio.run(work())


def test_the_environment_is_as_before_when_the_provider_has_ended() -> None:
    before = dict(os.environ)
    with served_provider():
        assert dict(os.environ) != before
    assert dict(os.environ) == before
