"""Dispatch: from a request to the program of its route, in the order that clients can observe.

Count the request, parse it, identify the caller, check the policies, and only then say whether the path exists: without
a valid token all paths answer alike. `docs/reference/order-of-checks.md` has every step.

Each request reads the table of mounts, which has the mounts by path and the enabled audit devices. Only a route that
rests on a view uses the table that was read last, so a login reads nothing from the store. Its outcome is returned only
if none of the entries that it used has changed. Otherwise the request starts again on a fresh view.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from attrs import evolve
from msgspec.structs import replace

from ..applied import PATH as APPLIED
from ..applied import tracked
from ..audit import AuditContext
from ..context import Context
from ..deadline import Deadline
from ..effects import Record
from ..errors import Code, Conflict, HostFailure, RecordFailed, Refused, StoreFailed
from ..forms import (
    ParsedFields,
    ignored,
    parse,
    require,
    require_known_bounds,
    spellings_of,
    without_not_offered,
)
from ..messages import (
    WRITE,
    Answer,
    Operation,
    Response,
    body_of,
    countable_path,
    rate_limit_headers,
    render,
    token_in,
)
from ..mounts import SYSTEM, MountTable, View, last_mount_table, mount_table
from ..policies import DENY
from ..provider import PROVIDER_FAILURES
from ..quotas import (
    QUOTA_PATHS,
    Quotas,
    RateLimit,
    known_quotas,
    last_quotas,
    may_look_at_operator,
    read_quotas,
    take_request,
)
from ..routing import (
    LEFT_OUT_HEADERS,
    Call,
    Catalog,
    Exchange,
    NoFields,
    PageForm,
    Route,
    RouteTable,
    help_about,
    help_about_mount,
    role_in,
)
from ..store import Retries, keys
from ..tokens import Caller, Issue, accessor_of, acl_of, principal_of
from ..tokens.authenticate import authenticate
from ..values import fold
from ..wrapping import check_waiting, wrap, wrapping_token
from .audit_entry import request_entries
from .body_limit import UNASKED, check_body
from .destination import DirectRoutes, find_route, read_head

CREATE: Final = "create"
UPDATE: Final = WRITE.value


async def respond(context: Context, catalog: Catalog, exchange: Exchange) -> Response:
    """Return the response to a request, or raise `Refused`. Fill in `exchange` on the way."""
    if exchange.is_late:
        return await respond_without_store(StoreFailed("it did not answer in time"), context, catalog, exchange)
    direct: DirectRoutes | None = context.caches.direct_routes.peek(keys.MOUNTS)
    view = retries = None
    if direct is not None:
        place = direct.places.get((exchange.request.method, exchange.request.target))
        if place is not None:
            exchange.operation, exchange.path, exchange.shown_path, exchange.mount, exchange.route = place
            view = View(direct.mounts, direct.expects, False)
    while True:
        try:
            view = view or await read_view(context, catalog)
        except (HostFailure, Refused) as failure:  # refused: the key ring can no longer be opened
            return await respond_without_store(failure, context, catalog, exchange)
        try:
            return await respond_by(view, context, catalog, exchange)
        except Conflict:
            if not exchange.rests_on_view:
                raise
        except (Refused, RecordFailed, *PROVIDER_FAILURES):
            if not exchange.rests_on_view or await context.records.are_at(view.expects):
                raise
        if view.is_fresh:  # otherwise the view was cached, and reading it again needs no pause
            retries = retries or Retries(Deadline(exchange.time + exchange.seconds))
            await retries.pause()
        exchange.start_again()
        view = None


async def read_view(context: Context, catalog: Catalog) -> View:
    """Read the table of mounts, which every request needs."""
    mounts = await mount_table(context.records)
    context.node.last_read_failed = False
    direct: DirectRoutes | None = context.caches.direct_routes.peek(keys.MOUNTS)
    if direct is None or direct.mounts.version != mounts.version:
        context.caches.direct_routes.put(keys.MOUNTS, DirectRoutes.of(mounts, catalog))
    return View(mounts, mounts.expected)


async def respond_without_store(
    failure: HostFailure | Refused, context: Context, catalog: Catalog, exchange: Exchange
) -> Response:
    """Return the state of this node, with the mounts as they were last read. For other requests, raise `failure`."""
    if not exchange.is_cut_short:
        context.node.last_read_failed = True
    table = last_mount_table(context.records)
    if table is None:
        raise failure
    find_route(exchange, catalog, table.record)
    if exchange.route is None or exchange.route.audited:
        raise failure
    return await respond_by(View(table, table.expected), context, catalog, exchange)


async def respond_by(view: View, context: Context, catalog: Catalog, exchange: Exchange) -> Response:
    """Return the response to a request under this view."""
    mounts, request, settings = view.mounts.record, exchange.request, context.settings
    exchange.view = view
    if exchange.trail is None or exchange.trail.version != view.mounts.version:
        exchange.trail = audit_context(view) if mounts.entry_devices else None
    quotas = last_quotas(context) if exchange.is_late else known_quotas(context, exchange.time)
    if quotas is None:
        quotas = await read_quotas(context, exchange.time)
    if exchange.route is None:  # otherwise it is a direct route
        locate(exchange, catalog, mounts, context, quotas)
    route = exchange.route
    if route is not None and not route.audited:
        exchange.trail = None
    if limit := quotas.rate_limit_of(exchange.path):
        await count_if_not_from_operator(context, mounts, quotas, limit, exchange)
    token, wrap_ttl, seconds = read_head(exchange, settings)
    if request.body_is_cut or len(request.body) > UNASKED:
        await check_body(context, mounts, route, request, exchange.time)
    exchange.body = body_of(request, exchange.operation, exchange.query, settings)
    exchange.token, exchange.wrap_ttl, exchange.deadline = token, wrap_ttl, Deadline(exchange.time + seconds)
    if route is not None:
        exchange.role = role_in(route, exchange.captures, exchange.body)
    if exchange.wants_help:
        answer = await explain(context, catalog, mounts, exchange)
        return render(answer, request_id=exchange.request_id, mount_type="")
    if route is None:
        await identify(context, mounts, exchange)
        authorise(exchange, exchange.capability)
        raise exchange.dead_end or Refused(Code.NO_HANDLER)
    if not route.public:
        await identify(context, mounts, exchange)
    elif route.optional_token or (wrap_ttl and not route.gives_token):
        await identify_if_possible(route, context, mounts, exchange)
    return await execute(Call(context, exchange), route, quotas, catalog)


def locate(exchange: Exchange, catalog: Catalog, mounts: MountTable, context: Context, quotas: Quotas) -> None:
    """Find the route of a request. A request that cannot be parsed counts by the readable part of its path."""
    try:
        find_route(exchange, catalog, mounts)
    except Refused:
        if limit := quotas.rate_limit_of(countable_path(exchange.request.target)):
            count_request(context, quotas, limit, exchange)
        raise


async def count_if_not_from_operator(
    context: Context, mounts: MountTable, quotas: Quotas, limit: RateLimit, exchange: Exchange
) -> None:
    """Count a request. Ignore a refusal if the request is from an operator who may change the quotas."""
    try:
        count_request(context, quotas, limit, exchange)
    except Refused:
        if not await is_from_operator(context, mounts, exchange):
            raise


def audit_context(view: View) -> AuditContext:
    """Return the audit devices of this view, for the entries of a request."""
    mounts = view.mounts.record
    return AuditContext(mounts.used_devices, mounts.entry_devices, mounts.recorded_headers, view.mounts.version)


def count_request(context: Context, quotas: Quotas, limit: RateLimit, exchange: Exchange) -> None:
    """Count a request against a quota, once. Refuse with `RATE_LIMIT_EXCEEDED` if its source has sent too many."""
    if limit in exchange.counted_by:
        return
    taken = take_request(context, limit, exchange.request.remote_address, exchange.time)
    if quotas.config.enable_rate_limit_response_headers:
        exchange.headers = rate_limit_headers(taken.limit, taken.remaining, taken.full_in)
    if taken.wait:
        raise Refused(Code.RATE_LIMIT_EXCEEDED, retry_after=taken.wait)
    exchange.counted_by += (limit,)


async def is_from_operator(context: Context, mounts: MountTable, exchange: Exchange) -> bool:
    """Return whether a request that a quota refuses is about quotas, with a token that may send it.

    Without this, an operator who wrote quotas that refuse everything could not remove them.
    """
    if exchange.is_late or not fold(exchange.path).startswith(QUOTA_PATHS):
        return False
    request, now = exchange.request, exchange.time
    token = token_in(request.headers)
    if not token or not may_look_at_operator(context, request.remote_address, now):
        return False
    acl = await acl_of(context, mounts, token, request.remote_address, now)
    return acl is not None and acl.allows(exchange.capability, exchange.path)


async def identify(context: Context, mounts: MountTable, exchange: Exchange) -> Caller:
    """Return the caller. Refuse with `PERMISSION_DENIED` without a valid token."""
    if not exchange.token:
        refuse_by_header(exchange.request.headers)
    caller = await authenticate(context, mounts, exchange.token, exchange.request.remote_address, exchange.time)
    exchange.caller = caller
    if exchange.trail is not None:
        exchange.caller_accessor = accessor_of(context, caller.token)
    return caller


def refuse_by_header(headers: Mapping[str, str]) -> None:
    """Refuse a request without a token whose headers authenticate the caller in an unsupported way."""
    for name, reason in LEFT_OUT_HEADERS.items():
        if headers.get(name):
            raise Refused(Code.PERMISSION_DENIED, reason)


async def identify_if_possible(route: Route, context: Context, mounts: MountTable, exchange: Exchange) -> None:
    """Identify the caller of a public route, if its token is valid. Without a valid token, nothing is wrapped.

    A route that is not audited returns the state of this node, even if the store cannot be read to check the token.
    """
    if exchange.token and not exchange.is_late:
        try:
            await identify(context, mounts, exchange)
            return
        except Refused:
            pass
        except HostFailure:
            if route.audited:
                raise
            context.node.last_read_failed = True
    if exchange.wrap_ttl:
        raise Refused(Code.WRAPPING_NOT_ALLOWED)


async def execute(call: Call, route: Route, quotas: Quotas, catalog: Catalog) -> Response:
    """Authorise the caller, run the program of the route, and wrap its answer if the request asks for it."""
    exchange = call.exchange
    if not (route.public or route.any_token):
        capability = await needed_capability(route, call) if route.exists else exchange.capability
        authorise(exchange, capability, route.form)
        route = tracking(call, route, catalog)
    if exchange.role and (limit := quotas.rate_limit_of(exchange.path, exchange.role)):
        count = partial(count_request, call.context, quotas, limit, exchange)
        if route.gives_token:
            call.count_role = count  # before the token is accepted, the quota would show which roles have one
        else:
            count()
    if exchange.body or route.requires_all:
        call.given = read_form(route, exchange.body)
    wrapping = await wrapping_of(call, route) if exchange.wrap_ttl else None
    if exchange.trail is not None and not exchange.trail.is_received:
        await Record(exchange.received(request_entries(exchange)))
        exchange.trail.is_received = True
    exchange.is_executed = True
    answer = exchange.unwrapped = complete(await route.program(call), route, call)
    held = exchange.held
    response = render(answer, request_id=exchange.request_id, mount_type=call.mount.shown_type, held=held)
    if wrapping is not None and answer.can_be_wrapped:
        answer = await wrap(call.context, answer, response.body, wrapping, held)
        response = render(answer, request_id="", mount_type="", held=held)
        response = replace(response, request_id=exchange.request_id)
    exchange.answer = answer
    return response


async def wrapping_of(call: Call, route: Route) -> Issue | None:
    """Create the wrapping token for the answer. `None`: the request is a HEAD, whose response has no body."""
    if route.is_plain:
        raise Refused(Code.WRAPPING_NOT_ALLOWED)
    exchange = call.exchange
    if exchange.is_head:
        return None
    wrapped_by, wrapped_for = "", ""
    if exchange.caller is not None:
        wrapped_by, wrapped_for = exchange.caller.token.id, await counted_principal(call, exchange.caller)
        await check_waiting(call.context, wrapped_by, wrapped_for, call.now)
    wrapping = await wrapping_token(
        call.context, exchange.path, exchange.wrap_ttl, call.deadline.at, wrapped_by, wrapped_for
    )
    call.wrapping = wrapping.token
    return wrapping


async def counted_principal(call: Call, caller: Caller) -> str:
    """Return the principal whose wrapped answers are counted together. Empty: a root token, which has no limit."""
    if caller.token.is_root:
        return ""
    mounts = await mount_table(call.context.records)
    return await principal_of(call.context, mounts.record, caller.token, call.now)


async def needed_capability(route: Route, call: Call) -> str:
    """Return the capability that the policies must grant. An invalid name is left to the program to refuse."""
    try:
        exists = route.exists is None or await route.exists(call)
    except Refused:
        exists = False
    return route.operation.value if exists else CREATE


def tracking(call: Call, route: Route, catalog: Catalog) -> Route:
    """Return the route. If it creates or deletes an object, its program also records which folder created it."""
    track = tracked(call, route, catalog.of(call.mount).routes, call.exchange.path)
    if track is None:
        return route
    if track.folder_id and not call.token.acl.allows(UPDATE, f"{SYSTEM.path}/{APPLIED}/{track.folder_id}"):
        raise Refused(Code.PERMISSION_DENIED)
    return evolve(route, program=track.answer)


def authorise(exchange: Exchange, capability: str, form: type = NoFields) -> None:
    """Refuse a request that the caller's policies do not allow. Protected paths also need `sudo`."""
    caller = exchange.caller
    if caller is None or not caller.acl.allows(
        capability, exchange.path, exchange.body, exchange.wrap_ttl, spellings_of(form)
    ):
        raise Refused(Code.PERMISSION_DENIED)


async def explain(context: Context, catalog: Catalog, mounts: MountTable, exchange: Exchange) -> Answer:
    """Return the help for a path, if the caller has any capability there. No program of a route runs.

    The help for the path of a mount lists the paths in it, if the caller has any capability below it.
    """
    path, mount = exchange.path, exchange.mount
    table = catalog.of(mount).routes if mount else RouteTable(())
    if mount is not None and path.removesuffix("/") == mount.path:
        if not (await identify(context, mounts, exchange)).acl.reaches(mount.path):
            raise Refused(Code.PERMISSION_DENIED)
        return Answer(data=help_about_mount(table.routes), plain=True)
    rows = table.at(path.removeprefix(mount.path).removeprefix("/")) if mount else ()
    if not any(row.public for row in rows):
        acl = (await identify(context, mounts, exchange)).acl
        granted = acl.capabilities(path) | acl.capabilities(f"{path}/")
        if not (granted - DENY or any(row.any_token for row in rows)):
            raise Refused(Code.PERMISSION_DENIED)
    if not rows:
        raise exchange.dead_end or Refused(Code.NO_HANDLER)
    return Answer(data=help_about(rows), plain=True)


def complete(answer: Answer, route: Route, call: Call) -> Answer:
    """Add to a program's answer what all routes have in common: pages of lists, warnings, the end of a spent token."""
    if route.operation is Operation.LIST:
        answer = page_of(answer, route, call.body)
    if route.changes and (call.given.ignored or call.captures):
        answer = replace(answer, warnings=(*answer.warnings, *warnings(route, call)))
    if call.caller is not None and call.caller.last_use:
        answer = replace(answer, wake_at=call.now)
    return answer


def page_of(answer: Answer, route: Route, body: Mapping[str, Any]) -> Answer:
    """Return the part of a list that `after` and `limit` select, or all. Refuse with `NOT_FOUND` if it is empty."""
    data = answer.data or {}
    keys = data.get("keys", ())
    if not route.pages:
        form = PageForm(**parse(PageForm, body).values)
        keys = [key for key in keys if key > form.after][: form.limit if form.limit > 0 else None]
    if not keys:
        raise Refused(Code.NOT_FOUND)
    return replace(answer, data={**data, "keys": keys})


def read_form(route: Route, body: Mapping[str, Any]) -> ParsedFields:
    """Parse the fields of the route's form that a request has."""
    given = parse(route.form, body)
    if given.ignored and not route.takes_anything:
        given = without_not_offered(given, body)
        if route.operation is Operation.WRITE:
            require_known_bounds(route.form, given.ignored, body)
    if route.requires_all:
        require(route.form, given)
    return given


def warnings(route: Route, call: Call) -> tuple[str, ...]:
    """Return warnings about unknown and overridden fields, so that no misspelled field is ignored silently."""
    overruled = sorted(name for name, value in call.captures.items() if call.body.get(name, value) != value)
    unknown = [name for name in call.given.ignored if name not in call.captures]
    found = []
    if unknown and not route.takes_anything:
        found.append(ignored(unknown))
    if overruled:
        found.append(
            "Endpoint replaced the value of these parameters with the values captured from the endpoint's path: "
            f"[{' '.join(overruled)}]"
        )
    return tuple(found)
