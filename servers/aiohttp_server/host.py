"""The host on asyncio, with aiohttp's client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
from yarl import URL

from cloudid_core.effects import HttpRequest, HttpResponse, Program
from cloudid_core.errors import ProviderUnreachable
from cloudid_core.run import run

from ..host import NO_PROXIES, TOO_LARGE, Proxies, host, unreachable, why_unreachable
from ..http_rules import joined
from ..machine import Platform
from ..runtime.on_asyncio import OnAsyncio
from ..stores import Store


class AiohttpHost(OnAsyncio, host.Host):
    """Performs effects on asyncio. Background work and shared programs are tasks of its own."""

    def __init__(
        self,
        store: Store,
        platform: Platform,
        proxies: Proxies,
        session: aiohttp.ClientSession,
        one_way: aiohttp.ClientSession,
    ) -> None:
        OnAsyncio.__init__(self)
        host.Host.__init__(self, store, platform)
        self._proxies = proxies
        self._session = session
        self._one_way = one_way
        """Keeps no connection."""

    async def aclose(self) -> None:
        """Cancel what runs in the background, and wait until it has ended."""
        await self.end_tasks()
        self.abandon()

    async def together(self, programs: tuple[Program[Any], ...]) -> tuple[Any, ...]:
        answers: list[Any] = [None] * len(programs)
        failures: dict[int, Exception] = {}
        tasks: list[asyncio.Task[None]] = []

        async def attempt(place: int, program: Program[Any]) -> None:
            try:
                answers[place] = await run(program, self)
            except Exception as failure:  # noqa: BLE001  # raised below, without a group around it
                failures[place] = failure
                for other in tasks:
                    if other is not asyncio.current_task():
                        other.cancel()

        try:
            async with asyncio.TaskGroup() as group:
                for place, program in enumerate(programs):
                    if not failures:  # tasks of an eager factory run before they are here
                        tasks.append(group.create_task(attempt(place, program)))
        finally:
            for program in programs:  # a task that is cancelled early never starts its program
                program.close()
        if failures:
            try:
                raise failures[min(failures)]
            finally:
                failures.clear()  # they refer to this frame, which must not refer back to them
        return tuple(answers)

    async def fetch_over(self, request: HttpRequest, timeout: float, *, is_new: bool) -> HttpResponse:
        progress = SimpleNamespace(sent=False, is_kept=False, is_answered=False)
        session = self._one_way if is_new else self._session
        proxy = self._proxies.proxy_of(request.url)
        try:
            async with (
                asyncio.timeout(max(0.0, timeout)),
                self.in_lane(request),
                session.request(
                    request.method,
                    URL(request.url, encoded=True),
                    headers=request.headers,
                    data=request.body or None,
                    allow_redirects=False,
                    proxy=proxy,
                    trace_request_ctx=progress,
                ) as response,
            ):
                progress.is_answered = True
                body = bytearray()
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > host.PROVIDER_BODY_LIMIT:
                        raise ProviderUnreachable(unreachable(request.url, TOO_LARGE), sent=True)
                return HttpResponse(response.status, joined(response.raw_headers), bytes(body))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            has_ended = progress.is_kept and progress.sent and not progress.is_answered
            failure = ProviderUnreachable
            if has_ended and not isinstance(error, TimeoutError):
                failure = host.KeptConnectionEnded
            status = str(error.status) if isinstance(error, aiohttp.ClientHttpProxyError) else ""
            raise failure(why_unreachable(error, request.url, proxy, status), sent=progress.sent) from None


@asynccontextmanager
async def open_host(store: Store, platform: Platform, proxies: Proxies = NO_PROXIES) -> AsyncIterator[AiohttpHost]:
    """A host for as long as the block lasts; then all its tasks are cancelled.

    Opens the store; the caller closes it.
    """
    async with _session(keeps=True) as session, _session(keeps=False) as one_way:
        opened = AiohttpHost(store, platform, proxies, session, one_way)
        try:
            await store.open(opened)
            yield opened
        finally:
            opened.audit.close()
            await opened.aclose()


def _session(*, keeps: bool) -> aiohttp.ClientSession:
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_note_sent)
    trace.on_connection_reuseconn.append(_note_kept)
    trace.on_connection_create_start.append(_note_new)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=not keeps),  # lanes limit the calls
        timeout=aiohttp.ClientTimeout(),  # each call has a time-out around everything that it does
        headers=host.PROVIDER_HEADERS,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trace_configs=[trace],
        trust_env=False,
    )


async def _note_sent(_: object, context: Any, __: object) -> None:
    context.trace_request_ctx.sent = True


async def _note_kept(_: object, context: Any, __: object) -> None:
    context.trace_request_ctx.is_kept = True


async def _note_new(_: object, context: Any, __: object) -> None:
    context.trace_request_ctx.is_kept = False
