"""The application: what every server does between reading a request and writing its response."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from msgspec.structs import replace
from structlog.typing import FilteringBoundLogger

from cloudid_core.advice import ADVICE
from cloudid_core.dispatch import Exchange
from cloudid_core.effects import Instant, Program, within
from cloudid_core.errors import Code, Refused, TimeIsUp
from cloudid_core.messages.response import Request, Response, render_refusal
from cloudid_core.routing import Held
from cloudid_core.run import run
from cloudid_core.service import GRACE
from cloudid_core.values import without_tokens

from ..http1 import Head, wire
from ..logs import describe_error
from ..runtime import Deliveries, Periodic
from .host import Host
from .turns import Turns

T = TypeVar("T")

GIVE_BACK_SECONDS: Final = 5.0
"""Seconds that a stopping server waits for responses that are being given back."""

STOP_SECONDS: Final = 5.0
"""Seconds that a stopping server waits for the store, to hand over the background work."""

LOOK_AFTER: Final = 1.0
"""Seconds after a request that the store failed until health checks the store.

Requests within a second share one check.
"""

_NOTHING_HELD: Final = nullcontext()


class Service(Protocol):
    """The methods of `cloudid_core.service.Service` that a host uses."""

    def begin(self, request: Request) -> Exchange: ...

    def work_on(self, exchange: Exchange) -> Program[Response]: ...

    def give_back(self, held: Held) -> Program[None]: ...

    def answer_late(self, exchange: Exchange) -> Program[Response]: ...

    def limit_in_time(self, head: Request) -> Program[int]: ...

    def undelivered(self, response: Response) -> Program[None]: ...

    def tick(self) -> Program[Instant]: ...

    def upkeep(self) -> Program[Instant]: ...

    def stop(self) -> Program[None]: ...


def periodic(name: str, work: Callable[[], Program[Instant]], host: Host, log: FilteringBoundLogger) -> Periodic:
    """Background work on a host. Its failures are logged."""

    async def round_() -> Instant:
        return await run(work(), host)

    def report(error: Exception) -> None:
        log.error("background work failed", work=name, **describe_error(error))

    return Periodic(round_, host, report)


class App:
    """An opened service on a host, with its background work."""

    def __init__(
        self,
        service: Service,
        host: Host,
        log: FilteringBoundLogger,
        trusted_proxies: tuple[str, ...],
        page: Callable[[Request], Response | None] | None = None,
    ) -> None:
        """`page` answers requests for the page, and returns `None` for all others."""
        self.trusted_proxies = trusted_proxies
        self._page = page
        self.is_draining = False
        self.turns = Turns(host)
        self._service = service
        self._host = host
        self._log = log
        self._deliveries = Deliveries(host, self._report_not_given_back)
        self._ticks = periodic("tick", service.tick, host, log)
        self._upkeep = periodic("upkeep", service.upkeep, host, log)

    async def body_limit(self, head: Head, peer: str) -> int:
        """Return the maximum body size for the request with this head. Raises `Refused` if this takes too long."""
        try:
            return await run(self._service.limit_in_time(self._request(head, peer)), self._host)
        except Refused:
            raise
        except Exception as bug:  # noqa: BLE001  # the connection is not to blame
            self._log.error("request failed", **describe_error(bug))
            return 0

    def _request(self, head: Head, peer: str, body: bytes | None = b"", port: int = 0) -> Request:
        address = wire.remote_address(peer, head.headers, self.trusted_proxies)
        if address != peer:
            port = wire.forwarded_port(address, head.headers)
        return Request(head.method, head.target, head.headers, body or b"", address, body is None, True, port)

    def begin(self, head: Head, body: bytes | None, peer: str, port: int = 0) -> Exchange:
        """Start a request. Without a body, the body was longer than `body_limit` and was not read.

        If a caller cancels `answer` after `Exchange.seconds` and `GRACE`, it sends the result of `answer_late` instead.
        """
        return self._service.begin(self._request(head, peer, body, port))

    async def answer(self, exchange: Exchange) -> Response:
        """Return the service's response to a request, without a time limit.

        If several responses are ready in one turn of the event loop, write them together in the next turn: this halves
        the cost, because clients are still awake. Do not wait before `delivering`, because only `delivering` gives back
        an undelivered response.
        """
        if self._page is not None and (shown := self._page(exchange.request)) is not None:
            return await self._recorded(exchange, shown)
        try:
            response = await run(self._service.work_on(exchange), self._host)
        except Exception as bug:  # noqa: BLE001  # the connection is not to blame
            self._log.error("request failed", **describe_error(bug))
            response = render_refusal(Refused(Code.INTERNAL_ERROR))
        except BaseException:
            if exchange.held:
                self._deliveries.give_back(partial(self._give_back, self._service.give_back, exchange.held))
            raise
        if response.wake_at is not None:
            self._ticks.wake_by(response.wake_at)
        if Code.STORE_UNAVAILABLE.wire in response.codes:
            self._upkeep.wake_by(time.time() + LOOK_AFTER)  # it finds out whether the node can still write
        return response

    async def _recorded(self, exchange: Exchange, shown: Response) -> Response:
        """Return the page's response, after counting and logging it like a response of the service."""
        request = exchange.request
        operation = "read" if request.method in ("GET", "HEAD") else "update"
        path = without_tokens(request.target.partition("?")[0])
        answered = replace(exchange.answered(shown), time=time.time(), operation=operation, path=path)
        await self._host.record(answered)
        return shown

    async def answer_late(self, exchange: Exchange) -> Response:
        """Return the response to a request that exceeded its time limit."""
        try:
            return await run(self._service.answer_late(exchange), self._host)
        except Exception as bug:  # noqa: BLE001  # the connection is not to blame
            self._log.error("request failed", **describe_error(bug))
            return render_refusal(Refused(Code.DEADLINE_PASSED))

    async def answer_in_time(self, exchange: Exchange) -> Response:
        """Return the response, or the result of `answer_late` after the time limit.

        For callers without a time limit of their own.
        """
        try:
            return await self._host.in_time(exchange.seconds + GRACE, partial(self.answer, exchange))
        except TimeIsUp:
            return await self.answer_late(exchange)

    @property
    def is_audited(self) -> bool:
        """Return whether audit devices get entries. If so, the responses of one turn wait for each other."""
        return self._host.audit.is_enabled

    def delivering(self, response: Response) -> AbstractContextManager[None]:
        """Write a response within this context.

        If writing fails or is cancelled, what the response contains is given back.
        """
        return self._deliveries.delivering(self._undo(response)) if response.gives else _NOTHING_HELD

    def give_back(self, response: Response) -> None:
        """Start to give back what an undelivered response contains."""
        if response.gives:
            self._deliveries.give_back(self._undo(response))

    def _undo(self, response: Response) -> Callable[[], Coroutine[Any, Any, None]]:
        """Return the work that gives back what a response contains."""
        return partial(self._give_back, self._service.undelivered, response)

    async def _give_back(self, program: Callable[[T], Program[None]], given: T) -> None:
        await run(program(given), self._host)
        self._ticks.wake_by(time.time())

    def _report_not_given_back(self, error: Exception) -> None:
        self._log.error("undelivered answer not given back", **describe_error(error))

    async def finish(self) -> None:
        """Wait until pending responses are delivered or given back, and hand over the background work to another node.

        This takes a few seconds at most. Call it when no more requests are accepted, before the host closes.
        """
        await self._deliveries.settle(GIVE_BACK_SECONDS)
        try:
            await run(within(STOP_SECONDS, self._service.stop()), self._host)
        except Exception as error:  # noqa: BLE001  # another node takes over later
            self._log.warning("background work not handed over", **describe_error(error))

    def refuse(self, refusal: Refused, peer: str) -> Response:
        """Return the response to bytes that are not a valid request. `peer` is the client address."""
        self._host.measures.note_unreadable(refusal.code.wire)
        code, advice = refusal.code, ADVICE[refusal.code]
        self._log.info(
            "refused",
            status=refusal.status,
            code=code.wire,
            remote_address=peer,
            cause=advice.cause,
            fix=advice.fix,
        )
        return render_refusal(refusal)
