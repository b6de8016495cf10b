"""A service on a host of the embedder's own, with its background work, on asyncio or trio."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
)
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from cloudid_core import Host, Request, Response, Service, run
from cloudid_core.effects import Instant, Program, within
from cloudid_core.errors import Code, Refused
from cloudid_core.messages.response import render_refusal

from ..runtime import Deliveries, Periodic, Runtime
from ..runtime.on_asyncio import OnAsyncio
from .opened import Opened

OpenHost: TypeAlias = Callable[[], AbstractAsyncContextManager[Host]]
OpenService: TypeAlias = Callable[[], Program[Service]]

BODY_TIMEOUT: Final = 30.0
WRITE_TIMEOUT: Final = 30.0
END_SECONDS: Final = 5.0
"""Seconds that the end waits for answers under way, and then for the store."""

_NOTHING_GIVEN: Final = nullcontext()
_LOG: Final = logging.getLogger("cloudid")
"""Of the standard library: an embedder configures it, and structlog may be missing."""


class Hosted(Opened):
    """Runs a service on any host, with its background work."""

    def __init__(self, service: Service, host: Host, runtime: Runtime) -> None:
        super().__init__(runtime, BODY_TIMEOUT, WRITE_TIMEOUT)
        self._service = service
        self._host = host
        self._deliveries = Deliveries(runtime, partial(report, "an answer that was not delivered was not given back"))
        self._ticks = Periodic(partial(self._round, service.tick), runtime, partial(report, "tick failed"))
        self._upkeep = Periodic(partial(self._round, service.upkeep), runtime, partial(report, "upkeep failed"))

    async def _round(self, work: Callable[[], Program[Instant]]) -> Instant:
        return await run(work(), self._host)

    async def body_limit(self, head: Request) -> int:
        try:
            return await run(self._service.body_limit(head), self._host)
        except Exception as bug:  # noqa: BLE001  # of the host, as below
            report("request failed", bug)
            return 0

    async def handle(self, head: Request, body: bytes | None) -> Response:
        request = replace(head, body=body or b"", body_is_cut=body is None)
        try:
            response = await run(self._service.handle(request), self._host)
        except Exception as bug:  # noqa: BLE001  # of the host: the server and its other requests are not to blame
            report("request failed", bug)
            return render_refusal(Refused(Code.INTERNAL_ERROR))
        if response.wake_at is not None:
            self._ticks.wake_by(response.wake_at)
        return response

    def refuse(self, refusal: Refused, peer: str) -> Response:
        return render_refusal(refusal)

    def delivering(self, response: Response) -> AbstractContextManager[None]:
        if not response.gives:
            return _NOTHING_GIVEN
        return self._deliveries.delivering(partial(self._give_back, response))

    async def _give_back(self, response: Response) -> None:
        await run(self._service.undelivered(response), self._host)
        self._ticks.wake_by(time.time())

    async def settle(self) -> None:
        """Wait for a moment until all answers are delivered or given back."""
        await self._deliveries.settle(END_SECONDS)


@asynccontextmanager
async def hosted(open_host: OpenHost, open_service: OpenService) -> AsyncIterator[Hosted]:
    """Open a host and a service on it, and work in the background until the block ends.

    At the end, what no client received is given back, then a round under way is cancelled, and the background work is
    handed over to other nodes.
    """
    async with open_host() as host:
        service = await run(open_service(), host)
        try:
            async with _open_runtime() as runtime:
                opened = Hosted(service, host, runtime)
                try:
                    yield opened
                finally:
                    await opened.settle()
        finally:
            try:
                await run(within(END_SECONDS, service.stop()), host)
            except Exception as error:  # noqa: BLE001  # another node takes over later
                report("background work was not handed over", error)


def report(event: str, error: Exception) -> None:
    """Log a failure without its text, which may hold a secret. The core has recorded what it knows of it."""
    _LOG.error("%s: %s", event, type(error).__name__)


async def _run_or_report(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        await work()
    except Exception as error:  # noqa: BLE001  # one task must not end the server
        report("background task failed", error)


class _Unmeasured:
    """Logs failures of tasks, and measures nothing. The hosts of our servers do both in their own way."""

    start_task: Callable[[Callable[[], Coroutine[Any, Any, None]]], None]

    def note_batch(self, size: int, seconds: float) -> None:
        """Measure nothing."""

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.start_task(partial(_run_or_report, work))


class _OnAsyncio(_Unmeasured, OnAsyncio):
    """Runs tasks on asyncio beside a host of an embedder."""


@asynccontextmanager
async def _open_runtime() -> AsyncIterator[Runtime]:
    """Open the runtime of the event loop that runs. Everything that it started is cancelled at the end."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        async with _on_trio() as runtime:
            yield runtime
        return
    on_asyncio = _OnAsyncio()
    try:
        yield on_asyncio
    finally:
        await on_asyncio.end_tasks()


@asynccontextmanager
async def _on_trio() -> AsyncIterator[Runtime]:
    """Open a runtime in a nursery of its own. trio is imported only where it runs already."""
    import trio

    from ..runtime.on_trio import OnTrio

    class OnTrioHere(_Unmeasured, OnTrio):
        """Runs tasks on trio beside a host of an embedder."""

    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield OnTrioHere(nursery)
        except Exception as error:  # noqa: BLE001  # raised below, without a group around it
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
