"""The host on trio, with httpcore.

httpcore is what httpx makes its calls with. What httpx adds (cookies, redirects, decoding, models of messages) is not
wanted here, and costs more than the call itself.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import httpcore
import trio
from attrs import define

from cloudid_core.effects import HttpRequest, HttpResponse, Program
from cloudid_core.errors import ProviderUnreachable
from cloudid_core.run import run

from ..host import NO_PROXIES, TIMED_OUT, TOO_LARGE, Proxies, host, unreachable, why_unreachable
from ..http_rules import joined
from ..machine import Platform
from ..runtime.on_trio import OnTrio
from ..stores import Store

POOLS: Final = 32
"""Calls are spread over so many pools: at each call, a pool compares all of its connections with each other."""

IDLE_CONNECTIONS: Final = 8
"""Most connections that a pool keeps for later calls."""

IDLE_SECONDS: Final = 5.0
"""How long it keeps them: a server that closes one at the moment of a call makes that call fail."""

HAVE_BODIES: Final = frozenset({"PATCH", "POST", "PUT"})
"""Methods whose requests say how long their body is even if it is empty (RFC 9110, section 8.6)."""

MOST_PIECES: Final = 2**15
"""Most pieces of an answer: to read one costs as much however short it is, and a chunk may hold one byte."""

PIECES_AT_ONCE: Final = 64
"""So many are read before other tasks have their turn: httpcore does not wait for what has come already."""

FAILURES: Final = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
    ValueError,
)
"""Of a call: no connection, no sense in the answer, or no sense in the request."""


@define(eq=False)
class Pool:
    """Connections, and how many calls use them at the moment."""

    connections: httpcore.AsyncConnectionPool
    calls: int = 0


class TrioHost(OnTrio, host.Host):
    """Performs effects on trio. Background work and shared programs live in its nursery."""

    def __init__(
        self,
        store: Store,
        platform: Platform,
        proxies: Proxies,
        pools: Mapping[str | None, Sequence[Pool]],
        one_way: Mapping[str | None, httpcore.AsyncConnectionPool],
        nursery: trio.Nursery,
    ) -> None:
        OnTrio.__init__(self, nursery)
        host.Host.__init__(self, store, platform)
        self._proxies = proxies
        self._pools = pools
        self._one_way = one_way
        """Pools that keep no connection."""

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
            try:
                raise failures[min(failures)]
            finally:
                failures.clear()  # they refer to this frame, which must not refer back to them
        return tuple(answers)

    async def fetch_over(self, request: HttpRequest, timeout: float, *, is_new: bool) -> HttpResponse:
        sent, is_kept, is_answered = False, True, False

        async def trace(event: str, info: dict[str, Any]) -> None:
            """A proxy that is asked for a tunnel has not been sent the request."""
            nonlocal sent, is_kept, is_answered
            if event == "connection.connect_tcp.started":
                is_kept = False
            elif event.endswith("send_request_headers.started") and info["request"].method != b"CONNECT":
                sent = True
            elif event.endswith("receive_response_headers.complete"):
                is_answered = True

        body, pieces = bytearray(), 0
        proxy = self._proxies.proxy_of(request.url)
        try:
            told = {**host.PROVIDER_HEADERS, **request.headers}
            headers = [(name.encode("ascii"), value.encode("ascii")) for name, value in told.items()]
            with trio.move_on_after(max(0.0, timeout)) as scope:
                async with (
                    self.in_lane(request),
                    self._connections(proxy, is_new=is_new) as connections,
                    connections.stream(
                        request.method,
                        request.url.encode("ascii"),
                        headers=headers,
                        content=request.body if request.body or request.method in HAVE_BODIES else None,
                        extensions={"trace": trace},
                    ) as response,
                ):
                    async for chunk in response.aiter_stream():
                        body += chunk
                        pieces += 1
                        if not pieces % PIECES_AT_ONCE:
                            await self.next_turn()
                        if _is_too_much(body, pieces):
                            scope.cancel()  # to leave the loop would leave generators behind
                    if not _is_too_much(body, pieces):
                        return HttpResponse(response.status, joined(response.headers), bytes(body))
        except FAILURES as error:
            failure = host.KeptConnectionEnded if is_kept and sent and not is_answered else ProviderUnreachable
            status = str(error).partition(" ")[0] if isinstance(error, httpcore.ProxyError) else ""
            raise failure(why_unreachable(error, request.url, proxy, status), sent=sent) from None
        reason = TOO_LARGE if _is_too_much(body, pieces) else TIMED_OUT
        raise ProviderUnreachable(unreachable(request.url, reason), sent=sent)

    @asynccontextmanager
    async def _connections(self, proxy: str | None, *, is_new: bool) -> AsyncIterator[httpcore.AsyncConnectionPool]:
        """A pool for a new connection, or the first of those with the fewest calls, so that rare calls find
        an open connection.
        """
        if is_new:
            yield self._one_way[proxy]
            return
        pool = min(self._pools[proxy], key=lambda pool: pool.calls)
        pool.calls += 1
        try:
            yield pool.connections
        finally:
            pool.calls -= 1


def _is_too_much(body: bytearray, pieces: int) -> bool:
    return len(body) > host.PROVIDER_BODY_LIMIT or pieces > MOST_PIECES


@asynccontextmanager
async def open_host(store: Store, platform: Platform, proxies: Proxies = NO_PROXIES) -> AsyncIterator[TrioHost]:
    """A host for as long as the block lasts; then everything in its nursery is cancelled.

    Opens the store; the caller closes it.
    """
    failure: Exception | None = None
    async with AsyncExitStack() as stack:
        tls = ssl.create_default_context()
        pools = {
            proxy: [Pool(await stack.enter_async_context(_connections(proxy, tls))) for _ in range(POOLS)]
            for proxy in {None, *proxies.by_scheme.values()}
        }
        one_way = {proxy: await stack.enter_async_context(_connections(proxy, tls, keeps=0)) for proxy in pools}
        nursery = await stack.enter_async_context(trio.open_nursery())
        opened = TrioHost(store, platform, proxies, pools, one_way, nursery)
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


def _connections(proxy: str | None, tls: ssl.SSLContext, keeps: int = IDLE_CONNECTIONS) -> httpcore.AsyncConnectionPool:
    """Connections that all go through the proxy, if there is one; so many are kept for later calls."""
    return httpcore.AsyncConnectionPool(
        ssl_context=tls,
        proxy=_proxy(proxy, tls) if proxy else None,
        # The pool's own queue costs the number of connections for each request that waits, so lanes keep it empty.
        max_connections=None,
        max_keepalive_connections=keeps,
        keepalive_expiry=IDLE_SECONDS,
    )


def _proxy(url: str, tls: ssl.SSLContext) -> httpcore.Proxy:
    """The proxy at a URL, which may hold a user's name and password."""
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    credentials = (unquote(parts.username or "").encode(), unquote(parts.password or "").encode())
    return httpcore.Proxy(
        address, auth=credentials if any(credentials) else None, ssl_context=tls if parts.scheme == "https" else None
    )
