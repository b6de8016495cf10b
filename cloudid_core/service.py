"""The service: what a host runs. `initialise` once, `open_service` at every start, then `handle` for each request.

    service = await run(open_service(settings), host)
    response = await run(service.handle(request), host)

Before a host reads a long body, it asks `body_limit`.

`tick` and `upkeep` are background work; each answers the instant at which it wants to run again. `stop` comes last.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from attrs import define, field

from .background import Loop, leave, refresh_cluster_view
from .caches import Caches
from .catalog import CATALOG, HANDLERS
from .context import Context, open_keyring, read_keyring
from .delivery import TRIES, give_back
from .dispatch import KEY_SIZE, UNASKED, Exchange, RequestIds, respond, response_entries
from .dispatch.body_limit import body_limit
from .effects import Instant, Now, Program, RandomBytes, Record, record_if_possible, shared, within
from .errors import (
    CloudidError,
    Code,
    EntryDamaged,
    HostFailure,
    RecordFailed,
    Refused,
    StoreFailed,
    TimeIsUp,
    drop_tracebacks,
)
from .health import Node
from .installation import initialise
from .issuer import publish_soon
from .messages import Request, Response, patience, render, render_refusal, with_headers
from .metrics import Numbers
from .mounts import SYSTEM
from .provider import PROVIDER_FAILURES, refresh_ahead, refusal_of
from .quotas import count_failed_login
from .rotation import keep_identities, keep_plans, keep_signing_keys, prove_credentials
from .routing import Held
from .secrets_engine import find_open_audiences
from .settings import Settings
from .store import Records, Sealer
from .system import (
    TROUBLES,
    declare_devices,
    metrics_answer,
    node_numbers,
    note_login,
    note_unaccepted,
    provider_problems,
    stored_rules,
    try_devices_again,
)
from .tokens import Sweep, make_own_token
from .values import Secret

REFRESH_PAUSE: Final = 60.0
GRACE: Final = 0.3
"""Seconds after its deadline during which a request can still report why it was late."""

LATE_SECONDS: Final = 0.4
LET_GO_SECONDS: Final = 0.2
"""How long a late response waits until what its request held is revoked."""

MOST_OWED: Final = 10_000
"""Maximum number of undelivered leases, tokens and wrapped responses that are noted for a later revocation."""

MOST_GIVING_BACK: Final = 256
"""Maximum number of them that are revoked concurrently, in addition to `upkeep`."""

OWED_SECONDS: Final = 20.0
"""How long a round of `upkeep` revokes what closed requests held."""

STATE_SECONDS: Final = 1.0
"""How long a request for the state of this node waits for the store."""

SYSTEM_START: Final = f"/v1/{SYSTEM.path}/"
STATE_TARGETS: Final = frozenset(
    f"{SYSTEM_START}{route.path}" for route in CATALOG.of(SYSTEM).routes.routes if not route.audited
)

CLIENT_ERRORS: Final = frozenset({Code.MALFORMED_REQUEST.status, Code.LOGIN_REFUSED.status, Code.BODY_TOO_LARGE.status})
"""Statuses of refused logins that count toward the throttle.

Quotas and failures of store and Azure have other statuses.
"""

T = TypeVar("T")

__all__ = ["Service", "initialise", "open_service"]


async def open_service(settings: Settings) -> Service:
    """Open the service over an initialised store. Fails like `open_keyring`."""
    caches = Caches(settings)
    records = Records(Sealer(await open_keyring(settings)), caches.records, partial(read_keyring, settings))
    node = Node((await RandomBytes(8)).hex(), settings.node_name, await Now())
    node.watch = partial(provider_problems, caches)
    context = Context(settings, records, caches, CATALOG, node)
    await keep_signing_keys(context)
    await declare_devices(context, settings.audit_devices)
    await keep_identities(context)
    return Service(context, RequestIds(await RandomBytes(KEY_SIZE)))


class Service:
    """An open service, with its settings and caches. All other state is in the store."""

    def __init__(self, context: Context, request_ids: RequestIds) -> None:
        self.context = context
        self._request_ids = request_ids
        self._background = Loop(context, context.node.id, HANDLERS, Sweep().run, publish_soon)
        self._refresh_at: Instant = 0.0
        self._audiences_are_listed = False
        self._look_at: Instant = 0.0
        self._owed: dict[int, Held] = context.node.owed
        """What no caller received, by identity, until it is revoked. `upkeep` starts with the first."""
        self._giving_back = 0
        """How many of them a caller or its host is currently revoking."""
        self._prove_at: Instant = 0.0

    async def handle(self, request: Request) -> Response:
        """Answer a request, at most one second after its deadline, whatever happens.

        Only a bug in cloudid results in a 500.
        """
        exchange = self.begin(request)
        try:
            try:
                return await within(exchange.seconds + GRACE, self.work_on(exchange))
            except TimeIsUp:
                return await self.answer_late(exchange)
        except GeneratorExit:  # the host has cancelled it
            self._owe(exchange.held)
            raise

    def begin(self, request: Request) -> Exchange:
        """Start `handle`, for a host that manages the time of its requests itself.

        The host runs `work_on`, closes it `GRACE` after `Exchange.seconds`, and then runs `answer_late`.
        """
        folded = request if request.is_folded else request.folded
        seconds = patience(folded.headers, self.context.settings.request_deadline)
        exchange = Exchange(request=folded, request_id=self._request_ids.next(), seconds=seconds)
        if folded.target.startswith(SYSTEM_START) and folded.target.partition("?")[0] in STATE_TARGETS:
            exchange.tells_state, exchange.seconds = True, min(seconds, STATE_SECONDS)
        return exchange

    async def answer_late(self, exchange: Exchange) -> Response:
        """Return the response to a request that did not finish in time or was abandoned.

        Takes at most `LATE_SECONDS`.
        """
        exchange.is_late = True
        limit = self.context.settings.request_deadline
        if exchange.tells_state:
            limit = min(limit, STATE_SECONDS)
        exchange.is_cut_short = exchange.given_up is not None or exchange.seconds < limit
        try:
            return await within(LATE_SECONDS, self._answer_late(exchange))
        except TimeIsUp:
            if exchange.trail is not None and not exchange.is_cut_short:
                self.context.node.last_record_failed = True
            return render_refusal(_end_of(exchange), None, exchange.request_id)

    async def _answer_late(self, exchange: Exchange) -> Response:
        if exchange.tells_state:
            return await self.work_on(exchange)
        await self._let_go(exchange)
        return await self._refused(_end_of(exchange), None, exchange)

    async def work_on(self, exchange: Exchange) -> Response:
        """Return the response to a request, however long it takes."""
        exchange.time = await Now()
        refusal: Refused
        failure: Exception | None = None
        try:
            response = exchange.response = await respond(self.context, CATALOG, exchange)
            try:
                entries = response_entries(exchange) if exchange.trail is not None else None
                answered = exchange.answered(response, entries)
                await Record(answered)
            except RecordFailed:
                await give_back(self.context, exchange.held, tries=TRIES)
                raise
            note_login(self.context.caches, answered, exchange.proven)
            if exchange.trail is not None:
                self.context.node.last_record_failed = False
            return with_headers(response, exchange.headers) if exchange.headers else response
        except EntryDamaged as damaged:
            refusal, failure = damaged, damaged
        except Refused as refused:
            self.context.node.is_sealed_out |= refused.code is Code.SEALED
            if refused.code is Code.COMMIT_UNRESOLVED:
                self.context.node.written_at = 0.0  # as below
            refusal = self._slowed(refused, exchange)
        except PROVIDER_FAILURES as unanswered:
            refusal = refusal_of(unanswered, names_code=exchange.may_know_provider_codes)
            failure = unanswered
        except RecordFailed as unrecorded:
            self.context.node.last_record_failed = True
            refusal, failure = Refused(Code.AUDIT_UNAVAILABLE), unrecorded
        except HostFailure as unavailable:
            self.context.node.written_at = 0.0  # the next round writes, so that health knows whether commits succeed
            refusal, failure = Refused(Code.STORE_UNAVAILABLE), unavailable
        except Exception as bug:  # noqa: BLE001  # its text may hold a secret: no event has it
            refusal, failure = Refused(Code.INTERNAL_ERROR), bug
        await self._let_go(exchange)
        return await self._refused(refusal, failure, exchange)

    def numbers(self, now: Instant) -> Numbers:
        """Return this node's own metrics, for a host that combines them with those of other processes."""
        return node_numbers(self.context, now)

    async def metrics(self, output: str) -> Response:
        """Return all metrics, as `prometheus` or `json`, for a host that serves them without a token."""
        return render(await metrics_answer(self.context, output), request_id="", mount_type="")

    async def body_limit(self, head: Request) -> int:
        """Return the maximum size of a request's body, which depends only on its head.

        It is largest with a valid token. Hosts call this before they read more than `UNASKED` bytes of a body,
        and pass on a longer body truncated. It never raises: if the store does not answer in time, it returns
        `UNASKED`, and `handle` reports the failure.
        """
        try:
            return await self.limit_in_time(head)
        except Refused:
            return UNASKED

    async def limit_in_time(self, head: Request) -> int:
        """Return `body_limit`, or refuse with `DEADLINE_PASSED`, for a host that then answers without `handle`."""
        folded = head.folded
        seconds = patience(folded.headers, self.context.settings.request_deadline)
        try:
            return await within(seconds, body_limit(self.context, CATALOG, folded, await Now()))
        except TimeIsUp:
            raise Refused(Code.DEADLINE_PASSED) from None
        except CloudidError:  # `handle` says what is wrong
            return UNASKED

    def _slowed(self, refusal: Refused, exchange: Exchange) -> Refused:
        """Count a login without an accepted token, whatever was wrong with it, and delay its source."""
        if exchange.is_login and not exchange.proven.principal_id and refusal.status in CLIENT_ERRORS:
            try:
                count_failed_login(self.context, exchange.request.remote_address, exchange.time)
            except Refused as throttled:
                return throttled
        return refusal

    async def _let_go(self, exchange: Exchange) -> None:
        """Start to revoke what a request held, and wait a moment for it. If that is too short, `upkeep` continues."""
        if exchange.held:
            with suppress(CloudidError):
                await within(LET_GO_SECONDS, self._give_back_for_all(exchange))

    async def _give_back_for_all(self, exchange: Exchange) -> None:
        """Revoke for all waiting callers. This continues if the caller that waits is cancelled."""
        await shared(f"give back {exchange.request_id}", self.give_back(exchange.held))

    def _owe(self, held: Held) -> None:
        """Note for `upkeep` what no caller received. If there is too much, the oldest is left to expire."""
        if held:
            self._owed[id(held)] = held
            if len(self._owed) > MOST_OWED:
                del self._owed[next(iter(self._owed))]

    async def _refused(self, refusal: Refused, failure: Exception | None, exchange: Exchange) -> Response:
        """Return the response to a refusal after recording its event.

        If recording fails, the response says only that.
        """
        response = render_refusal(refusal, failure, exchange.request_id)
        if exchange.is_login:
            exchange.hide_role(refusal.code)
        try:
            answered = exchange.answered(response, response_entries(exchange, refusal.problems))
            drop_tracebacks(refusal, failure)  # the event has all that is needed of them
            await Record(answered)
            if exchange.trail is not None:
                self.context.node.last_record_failed = False
        except RecordFailed as unrecorded:
            self.context.node.last_record_failed = True
            response = render_refusal(Refused(Code.AUDIT_UNAVAILABLE), unrecorded, exchange.request_id)
            if exchange.is_login:
                exchange.hide_role(Code.AUDIT_UNAVAILABLE)
            answered = exchange.answered(response)
            drop_tracebacks(unrecorded)
            await record_if_possible(answered)  # the log may take it
        note_login(self.context.caches, answered, exchange.proven)
        if exchange.is_login and exchange.is_executed and not exchange.proven.principal_id:
            note_unaccepted(self.context.caches, answered, exchange.proven)
        return with_headers(response, exchange.headers) if exchange.headers else response

    async def give_back(self, held: Held) -> None:
        """Revoke what no caller received.

        After a few tries, or while many others are being revoked, it is left to `upkeep`. Nothing else of the request
        stays in memory.
        """
        self._owe(held)
        if self._giving_back >= MOST_GIVING_BACK:
            return
        self._giving_back += 1
        try:
            await give_back(self.context, held, tries=TRIES)
            self._owed.pop(id(held), None)
        finally:
            self._giving_back -= 1

    async def undelivered(self, response: Response) -> None:
        """Revoke what an undeliverable response held, like `give_back`."""
        if isinstance(response.held, Held):
            await self.give_back(response.held)

    def leads(self) -> Program[bool]:
        """Return whether this node does the background work of all nodes."""
        return self._background.leads()

    def make_token(self, name: str, policies: tuple[str, ...], seconds: int) -> Program[Secret]:
        """Create a token for the host's own requests to the service. It is not stored, and expires."""
        return make_own_token(self.context, name, policies, seconds)

    async def tick(self) -> Instant:
        """Do the scheduled background work. Return when to call again."""
        return await self._told("tick", self._background.run())

    async def upkeep(self) -> Instant:
        """Maintain this node, and return the instant of the next round.

        Read the state of the store and the other nodes, revoke what closed requests held, refresh this node's caches,
        keys and plans, and check stored entries.
        """
        return await self._told("upkeep", self._keep_up())

    async def _told(self, work: str, round_: Program[Instant]) -> Instant:
        """Run a round of background work. Health reports its failures if there are several in a row."""
        try:
            again = await round_
        except Exception as failure:
            self.context.node.note_outcome(work, failure)
            raise
        self.context.node.note_outcome(work)
        return again

    async def _give_back_owed(self) -> None:
        with suppress(TimeIsUp):
            await within(OWED_SECONDS, self._try_each_owed())

    async def _try_each_owed(self) -> None:
        """Try once to revoke each item that closed requests held. An item that fails moves to the end."""
        for name in tuple(self._owed):
            held = self._owed.pop(name, None)
            if held:
                self._owed[name] = held
                with suppress(CloudidError):
                    await give_back(self.context, held, tries=1)
                    self._owed.pop(name, None)

    async def _keep_up(self) -> Instant:
        steps = Steps()
        again = await steps.take(refresh_cluster_view(self.context))  # first, since health rests on it
        await steps.take(self._give_back_owed())
        await steps.take(try_devices_again(self.context))
        now = await Now()
        was_set_back = now + REFRESH_PAUSE < self._refresh_at
        if was_set_back:
            self.context.node.count_again_at = 0.0
            await steps.take(keep_signing_keys(self.context))
        if was_set_back or now >= self._refresh_at:
            await steps.take(self._refresh())
        if was_set_back or await Now() >= self._prove_at:
            self._prove_at = await steps.take(prove_credentials(self.context)) or self._prove_at
        if was_set_back or await Now() >= self._look_at:
            rules = (*stored_rules.RULES, *TROUBLES)
            self._look_at = await steps.take(stored_rules.look(self.context, rules)) or self._look_at
        steps.raise_first()
        return again or now

    async def _refresh(self) -> None:
        """Refresh plans, identities, caches and keys. If one of them fails, all are retried soon."""
        steps = Steps()
        await steps.take(keep_plans(self.context))
        await steps.take(keep_identities(self.context))
        await steps.take(self._list_audiences())
        await steps.take(refresh_ahead(self.context.settings, self.context.caches))
        await steps.take(self.context.records.learn_keys())
        steps.raise_first()
        self._refresh_at = await Now() + REFRESH_PAUSE

    async def _list_audiences(self) -> None:
        if not self._audiences_are_listed:
            await find_open_audiences(self.context)
            self._audiences_are_listed = True

    async def stop(self) -> None:
        """Stop the node's background work, so that another node takes it over immediately.

        Also remove the node from the list, and revoke what closed requests held, because no other node knows of it.
        Requests can still be answered afterwards. Without this call, the other nodes wait until this node's leadership
        expires.
        """
        await self._background.stop()
        await leave(self.context)
        await self._give_back_owed()


@define
class Steps:
    """Independent steps: if one fails, for example because of a damaged entry, the others still run.

    Only a store that does not answer ends them all, because each would wait for it again.
    """

    failures: list[CloudidError] = field(factory=list)

    async def take(self, step: Program[T]) -> T | None:
        """Return the result of a step, or `None` if it fails."""
        try:
            return await step
        except StoreFailed:
            raise
        except CloudidError as failure:
            self.failures.append(failure)
            return None

    def raise_first(self) -> None:
        """Raise the first failure, if there is one."""
        if self.failures:
            raise self.failures[0]


def _end_of(exchange: Exchange) -> Refused:
    """Why the work on a request has ended."""
    return exchange.given_up or Refused(Code.DEADLINE_PASSED)
