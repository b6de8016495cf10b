"""The application: what both servers do with a request between reading it and writing the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Final, Protocol

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
from ..runtime import Periodic
from .host import Host
from .turns import Turns

GIVE_BACK_SECONDS: Final = 5.0
"""How long the end of a server waits for answers that are being given back."""

STOP_SECONDS: Final = 5.0
"""How long the end of a server waits for the store, to hand over the background work."""

LOOK_AFTER: Final = 1.0
"""Seconds from a request that the store failed to the look that health rests on: one look for all of a second."""

_NOTHING_HELD: Final = nullcontext()


class Service(Protocol):
    """What `cloudid_core.service.Service` offers to a host."""

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
    """Background work on a host, whose failures are logged."""

    async def round_() -> Instant:
        return await run(work(), host)

    def report(error: Exception) -> None:
        log.error("background work failed", work=name, **describe_error(error))

    return Periodic(round_, host, report)


class App:
    """One opened service on one host, and its background work."""

    def __init__(
        self,
        service: Service,
        host: Host,
        log: FilteringBoundLogger,
        trusted_proxies: tuple[str, ...],
        page: Callable[[Request], Response | None] | None = None,
    ) -> None:
        """`page`: answers what is asked of the page for people, and `None` to all else."""
        self.trusted_proxies = trusted_proxies
        self._page = page
        self.is_draining = False
        self.turns = Turns(host)
        self._service = service
        self._host = host
        self._log = log
        self._undelivered = 0
        self._nothing_undelivered = host.new_event()
        self._ticks = periodic("tick", service.tick, host, log)
        self._upkeep = periodic("upkeep", service.upkeep, host, log)

    async def body_limit(self, head: Head, peer: str) -> int:
        """How many bytes the body of the request with this head may have. Raises `Refused` if that takes too long."""
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
        """The beginning of a request. No body: it is longer than `body_limit`, and was not read.

        A caller that cancels `answer` once `Exchange.seconds` and `GRACE` are over sends `answer_late` in its place.
        """
        return self._service.begin(self._request(head, peer, body, port))

    async def answer(self, exchange: Exchange) -> Response:
        """The service's answer to a request, however long that takes.

        Answers that are ready in one turn of the loop are best written right after each other, in the next one: to
        write to a client that is awake costs half as much as to wake it up. But only `delivering` gives back what an
        answer gives, so nothing may wait before that.
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
                self._start_giving_back(partial(self._service.give_back, exchange.held))
            raise
        if response.wake_at is not None:
            self._ticks.wake_by(response.wake_at)
        if Code.STORE_UNAVAILABLE.wire in response.codes:
            self._upkeep.wake_by(time.time() + LOOK_AFTER)  # it finds out whether the node can still write
        return response

    async def _recorded(self, exchange: Exchange, shown: Response) -> Response:
        """The page's answer, once the log and the metrics have it as they have those of the service."""
        request = exchange.request
        operation = "read" if request.method in ("GET", "HEAD") else "update"
        path = without_tokens(request.target.partition("?")[0])
        answered = replace(exchange.answered(shown), time=time.time(), operation=operation, path=path)
        await self._host.record(answered)
        return shown

    async def answer_late(self, exchange: Exchange) -> Response:
        """The answer to a request whose time is over."""
        try:
            return await run(self._service.answer_late(exchange), self._host)
        except Exception as bug:  # noqa: BLE001  # the connection is not to blame
            self._log.error("request failed", **describe_error(bug))
            return render_refusal(Refused(Code.DEADLINE_PASSED))

    async def answer_in_time(self, exchange: Exchange) -> Response:
        """The one or the other, for a caller that looks at no time itself."""
        try:
            return await self._host.in_time(exchange.seconds + GRACE, partial(self.answer, exchange))
        except TimeIsUp:
            return await self.answer_late(exchange)

    @property
    def is_audited(self) -> bool:
        """Whether audit devices get entries: they let the answers of a turn wait for each other."""
        return self._host.audit.is_enabled

    def delivering(self, response: Response) -> AbstractContextManager[None]:
        """Around the writing of an answer: what it gives is given back if writing fails or is cancelled."""
        return self._delivering(response) if response.gives else _NOTHING_HELD

    @contextmanager
    def _delivering(self, response: Response) -> Iterator[None]:
        self._undelivered += 1
        try:
            yield
        except BaseException:
            self.give_back(response)
            raise
        finally:
            self._settle_one()

    def give_back(self, response: Response) -> None:
        """Start to give back what an answer gives that could not be delivered."""
        if response.gives:
            self._start_giving_back(partial(self._service.undelivered, response))

    def _start_giving_back(self, program: Callable[[], Program[None]]) -> None:
        self._undelivered += 1
        try:
            self._host.start(partial(self._give_back, program))
        except RuntimeError:  # the host is closed: as in a crash, the background of another start finds what is left
            self._settle_one()

    async def _give_back(self, program: Callable[[], Program[None]]) -> None:
        try:
            await run(program(), self._host)
            self._ticks.wake_by(time.time())
        except Exception as error:  # noqa: BLE001  # the client is gone
            self._log.error("undelivered answer not given back", **describe_error(error))
        finally:
            self._settle_one()

    def _settle_one(self) -> None:
        self._undelivered -= 1
        if not self._undelivered:
            self._nothing_undelivered.set()

    async def finish(self) -> None:
        """Wait until answers under way are delivered or given back, and hand over the background work to another node.

        Takes some seconds at most. Call it when no request is accepted any more, before the host closes.
        """
        ends_at = time.monotonic() + GIVE_BACK_SECONDS
        while self._undelivered and (left := ends_at - time.monotonic()) > 0:
            self._nothing_undelivered = self._host.new_event()
            await self._host.wait(self._nothing_undelivered, left)
        try:
            await run(within(STOP_SECONDS, self._service.stop()), self._host)
        except Exception as error:  # noqa: BLE001  # another node takes over later
            self._log.warning("background work not handed over", **describe_error(error))

    def refuse(self, refusal: Refused, peer: str) -> Response:
        """The answer to what cannot be read as a request; `peer` is the address that it comes from."""
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
