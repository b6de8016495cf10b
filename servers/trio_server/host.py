"""The host on trio, with httpx."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import cycle
from typing import Any, Final, TypeVar

import httpx
import trio

from cloudid_core.effects import HttpRequest, HttpResponse, Program
from cloudid_core.errors import ProviderUnreachable, TimeIsUp
from cloudid_core.run import run

from ..common import host, runtime
from ..common.platform_identity import Platform
from ..common.proxies import NO_PROXIES, Proxies
from ..stores import Store

T = TypeVar("T")
A = TypeVar("A")


POOLS: Final = 8
"""Calls take turns in so many pools: at each call, a pool of httpx compares all of its connections with each other."""


class TrioHost(host.Host):
    """Performs effects on trio. Background work and shared programs live in its nursery."""

    def __init__(
        self,
        store: Store,
        platform: Platform,
        proxies: Proxies,
        clients: Mapping[str | None, Iterator[httpx.AsyncClient]],
        nursery: trio.Nursery,
    ) -> None:
        super().__init__(store, platform)
        self._proxies = proxies
        self._clients = clients
        self._nursery = nursery

    def new_event(self) -> runtime.Event:
        return trio.Event()

    def new_semaphore(self, count: int) -> trio.Semaphore:
        return trio.Semaphore(count)

    async def next_turn(self) -> None:
        await trio.lowlevel.cancel_shielded_checkpoint()

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._nursery.start_soon(work)

    async def in_thread(self, work: Callable[[A], T], argument: A) -> T:
        return await trio.to_thread.run_sync(work, argument)

    async def wait(self, event: runtime.Event, seconds: float) -> None:
        with trio.move_on_after(max(0.0, seconds)):
            await event.wait()

    async def wait_readable(self, fd: int, seconds: float) -> bool:
        with trio.move_on_after(max(0.0, seconds)):
            await trio.lowlevel.wait_readable(fd)
            return True
        return False

    async def wait_writable(self, fd: int, seconds: float) -> bool:
        with trio.move_on_after(max(0.0, seconds)):
            await trio.lowlevel.wait_writable(fd)
            return True
        return False

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(max(0.0, seconds))

    async def together(self, programs: tuple[Program[Any], ...]) -> tuple[Any, ...]:
        answers: list[Any] = [None] * len(programs)
        failures: dict[int, Exception] = {}

        async def attempt(place: int, program: Program[Any]) -> None:
            try:
                answers[place] = await run(program, self)
            except Exception as failure:  # noqa: BLE001  # raised below, without a group around it
                failures[place] = failure
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for place, program in enumerate(programs):
                nursery.start_soon(attempt, place, program)
        if failures:
            raise failures[min(failures)]
        return tuple(answers)

    async def within(self, seconds: float, program: Program[Any]) -> Any:
        with trio.move_on_after(max(0.0, seconds)):
            return await run(program, self)
        raise TimeIsUp("the program took too long")

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        sent = False

        async def trace(event: str, _: object) -> None:
            nonlocal sent
            sent = sent or event.endswith("send_request_headers.started")

        body = bytearray()
        try:
            with trio.move_on_after(max(0.0, timeout)) as scope:
                async with (
                    self.in_lane(request),
                    next(self._clients[self._proxies.proxy_of(request.url)]).stream(
                        request.method,
                        request.url,
                        headers=dict(request.headers),
                        content=request.body,
                        extensions={"trace": trace},
                    ) as response,
                ):
                    async for chunk in response.aiter_raw():
                        body += chunk
                        if len(body) > host.PROVIDER_BODY_LIMIT:
                            scope.cancel()  # to leave the loop would leave generators behind
                    if len(body) <= host.PROVIDER_BODY_LIMIT:
                        return HttpResponse(response.status_code, dict(response.headers), bytes(body))
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise ProviderUnreachable(type(error).__name__, sent=sent) from None
        reason = "the answer is too large" if len(body) > host.PROVIDER_BODY_LIMIT else "no answer in time"
        raise ProviderUnreachable(reason, sent=sent)


@asynccontextmanager
async def open_host(store: Store, platform: Platform, proxies: Proxies = NO_PROXIES) -> AsyncIterator[TrioHost]:
    """A host for as long as the block lasts; then everything in its nursery is cancelled.

    Opens the store; the caller closes it.
    """
    failure: Exception | None = None
    async with AsyncExitStack() as stack:
        tls = ssl.create_default_context()
        clients = {
            proxy: cycle([await stack.enter_async_context(_client(proxy, tls)) for _ in range(POOLS)])
            for proxy in {None, *proxies.by_scheme.values()}
        }
        nursery = await stack.enter_async_context(trio.open_nursery())
        opened = TrioHost(store, platform, proxies, clients, nursery)
        try:
            await store.open(opened)
            yield opened
        except Exception as error:  # noqa: BLE001  # raised below, without a group around it
            failure = error
        opened.audit.close()
        nursery.cancel_scope.cancel()
    opened.abandon()
    if failure is not None:
        raise failure


def _client(proxy: str | None, tls: ssl.SSLContext) -> httpx.AsyncClient:
    """A client whose calls all go through the proxy, if there is one."""
    return httpx.AsyncClient(
        headers=host.PROVIDER_HEADERS,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        verify=tls,
        trust_env=False,
        follow_redirects=False,
        timeout=None,
        # The pool's own queue costs the number of connections for each request that waits, so lanes keep it empty.
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=host.LANE_WIDTH),
        proxy=proxy,
    )
