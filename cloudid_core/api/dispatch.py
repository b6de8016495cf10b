"""Dispatch: from a request to the program of its route, in the order that clients can observe.

Parse the request, identify the caller, check the policies, and only then say whether the path exists: without a good
token all paths answer alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import asdict, replace

from ..audit.device import Entries
from ..audit.entry import Exchange
from ..effects import Instant, Program, Record
from ..errors import Code, Refused
from ..events import Problem, RequestAnswered, RequestReceived
from ..foundation.components import Catalog
from ..foundation.context import Context
from ..foundation.deadline import Deadline
from ..mounts.table import Mount, MountTable, mount_table
from ..policies.document import DENY
from ..quotas.rate_limit import count_request
from ..tokens.authenticate import authenticate
from ..tokens.issue import accessor_of
from ..tokens.record import Caller
from ..values.names import name
from ..wrapping.wrap import wrap, wrapping_token
from .fields import NOTHING_GIVEN, ParsedFields, parse, require, spellings_of
from .help import help_about
from .request import ParsedRequest, deadline_seconds, parse_request
from .response import Answer, Request, Response, render
from .routing import Call, NoFields, Operation, PageForm, Route, RouteTable, methods_of

CREATE: Final = "create"


class Match(msgspec.Struct, frozen=True):
    """Where a path leads: a route with its captures, or the code that says why there is none.

    `allow` are the methods of the path, where it has others than the one that was used.
    """

    mount: Mount | None
    route: Route | None = None
    captures: Mapping[str, str] = {}
    failure: Code = Code.NO_HANDLER
    allow: str = ""


class RequestFacts(msgspec.Struct, kw_only=True):
    """What is known of a request so far, for the event about its answer."""

    request_id: str
    time: Instant
    remote_address: str
    operation: str = ""
    path: str = ""
    mount: str = ""
    mount_accessor: str = ""
    role: str = ""
    token_id: str = ""
    display_name: str = ""
    accessor: str = ""
    lease_id: str = ""
    exchange: Exchange | None = None
    """The request as audit devices see it, if any is enabled."""
    new_token_id: str = ""
    """The service token that this request has made, by its id."""

    def answered(self, response: Response, audit: Entries | None = None) -> RequestAnswered:
        """The event of the answer."""
        members = asdict(self)
        del members["exchange"], members["new_token_id"]
        problem = Problem.of(response.failure) if response.failure else None
        return RequestAnswered(**members, status=response.status, codes=response.codes, problem=problem, audit=audit)


async def respond(context: Context, catalog: Catalog, request: Request, facts: RequestFacts) -> Response:
    """The response to a request. Raises `Refused` where there is none. `facts` learns what becomes known."""
    mounts = (await mount_table(context.records)).record
    if mounts.takers:
        facts.exchange = Exchange(
            devices=mounts.devices,
            takers=mounts.takers,
            request_id=facts.request_id,
            remote_address=facts.remote_address,
        )
    ask = parse_request(request, context.settings)
    facts.operation, facts.path = ask.operation.value, ask.path
    now = facts.time
    deadline = Deadline(now + deadline_seconds(request.headers, context.settings.request_deadline))
    match = match_route(catalog, mounts, ask)
    if facts.exchange is not None:
        facts.exchange.found(ask, match.mount)
        if match.route is not None and not match.route.audited:
            facts.exchange = None
    if match.mount is not None:
        facts.mount, facts.mount_accessor = match.mount.path, match.mount.accessor
    if match.route is not None:
        facts.role = role_in(match.route, match.captures, ask.body)
    await count_request(context, ask.path, facts.role, request.remote_address, now)

    async def identify() -> Caller:
        caller = await authenticate(context, mounts, ask.token, request.remote_address, now)
        facts.token_id, facts.display_name = caller.token.id, caller.token.display_name
        if facts.exchange is not None:
            facts.exchange.called_by(caller, accessor_of(context, caller.token))
        return caller

    if ask.wants_help:
        return render(await explain(catalog, match, ask.path, identify), request_id=facts.request_id, mount_type="")
    caller: Caller | None = None
    if match.route is None or not match.route.public:
        caller = await identify()
    elif match.route.optional_token and ask.token:
        with suppress(Refused):
            caller = await identify()
    if match.route is None or match.mount is None:
        authorise(caller, ask, ask.operation.value)
        raise Refused(match.failure, allow=match.allow)
    wrapping = await wrapping_token(context, ask.path, ask.wrap_ttl, deadline.at) if ask.wrap_ttl else None
    make_call = partial(
        Call,
        context=context,
        mount=match.mount,
        captures=match.captures,
        body=ask.body,
        caller=caller,
        shown_token=ask.token,
        wrapping=wrapping.token if wrapping else None,
        remote_address=request.remote_address,
        deadline=deadline,
        now=now,
        request_id=facts.request_id,
        trail=facts.exchange.trail if facts.exchange is not None else None,
    )
    if not (match.route.public or match.route.any_token):
        capability = await needed_capability(match.route, make_call(given=NOTHING_GIVEN))
        authorise(caller, ask, capability, match.route.form)
    call = make_call(given=read_form(match.route, ask.body))
    await Record(received(call, ask, facts.exchange))
    answer = await match.route.program(call)
    facts.accessor, facts.lease_id = answer.auth.accessor if answer.auth else "", answer.lease_id
    facts.new_token_id = answer.new_token
    if ask.operation is Operation.LIST and not match.route.pages:
        answer = page_of(answer, ask.body)
    if found := warnings(match.route, call, ask):
        answer = replace(answer, warnings=(*answer.warnings, *found))
    if caller is not None and caller.last_use:
        answer = replace(answer, wake_at=now)
    response = render(answer, request_id=facts.request_id, mount_type=match.mount.shown_type)
    if wrapping is not None and answer.can_be_wrapped:
        answer = await wrap(context, answer, response.body, wrapping)
        response = replace(render(answer, request_id="", mount_type=""), request_id=facts.request_id)
    if facts.exchange is not None:
        facts.exchange.answer = answer
    return response


def match_route(catalog: Catalog, mounts: MountTable, ask: ParsedRequest) -> Match:
    """Find the mount of a path, and in its component's table the route."""
    found = mounts.route(ask.path)
    if found is None:
        return Match(None)
    mount, rest = found
    table = catalog.of(mount).routes
    match = table.find(rest, ask.operation)
    if isinstance(match, Code):
        return Match(mount, failure=match, allow=methods_of(table.at(rest)))
    route, captures = match
    if ask.is_head and route.has_side_effect:
        return Match(mount, failure=Code.UNSUPPORTED_OPERATION, allow=methods_of(table.at(rest)))
    return Match(mount, route, captures)


async def needed_capability(route: Route, call: Call) -> str:
    """The capability that the policies must grant. A name that cannot exist is a matter for the program."""
    if route.exists is None:
        return route.operation.value
    try:
        exists = await route.exists(call)
    except Refused:
        exists = False
    return route.operation.value if exists else CREATE


def authorise(caller: Caller | None, ask: ParsedRequest, capability: str, form: type = NoFields) -> None:
    """Refuse what the caller's policies do not allow, `sudo` for protected paths included."""
    if caller is None or not caller.acl.allows(capability, ask.path, ask.body, ask.wrap_ttl, spellings_of(form)):
        raise Refused(Code.PERMISSION_DENIED)


async def explain(catalog: Catalog, match: Match, path: str, identify: Callable[[], Program[Caller]]) -> Answer:
    """Help about a path, for callers who may do anything there; no program of a route runs."""
    table = catalog.of(match.mount).routes if match.mount else RouteTable(())
    rows = table.at(path.removeprefix(match.mount.path).removeprefix("/")) if match.mount else ()
    if not any(row.public for row in rows):
        acl = (await identify()).acl
        granted = acl.capabilities(path) | acl.capabilities(f"{path}/")
        if not (granted - DENY or any(row.any_token for row in rows)):
            raise Refused(Code.PERMISSION_DENIED)
    if not rows:
        raise Refused(match.failure)
    return Answer(data=help_about(rows), plain=True)


def page_of(answer: Answer, body: Mapping[str, Any]) -> Answer:
    """The part of a list that `after` and `limit` ask for; `NOT_FOUND` when it is empty."""
    form = PageForm(**parse(PageForm, body).values)
    if answer.data is None or "keys" not in answer.data or not (form.after or form.limit > 0):
        return answer
    keys = [key for key in answer.data["keys"] if key > form.after][: form.limit if form.limit > 0 else None]
    if not keys:
        raise Refused(Code.NOT_FOUND)
    return replace(answer, data={**answer.data, "keys": keys})


def read_form(route: Route, body: Mapping[str, Any]) -> ParsedFields:
    """The fields of the route's form that a request gave."""
    given = parse(route.form, body)
    if route.requires_all:
        require(route.form, given)
    return given


def warnings(route: Route, call: Call, ask: ParsedRequest) -> tuple[str, ...]:
    """The warnings about unknown and overruled fields of a write: a misspelt field must not vanish in silence."""
    if ask.operation is not Operation.WRITE:
        return ()
    overruled = sorted(name for name, value in call.captures.items() if ask.body.get(name, value) != value)
    unknown = [name for name in call.given.ignored if name not in call.captures]
    found = []
    if unknown and not route.takes_anything:
        found.append(f"Endpoint ignored these unrecognized parameters: [{' '.join(unknown)}]")
    if overruled:
        found.append(
            "Endpoint replaced the value of these parameters with the values captured from the endpoint's path: "
            f"[{' '.join(overruled)}]"
        )
    return tuple(found)


def role_in(route: Route, captures: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """The role that a request names, if it is a valid name: any other text could be a secret."""
    named = body.get(route.role_field) if route.role_field else captures.get("name")
    if not named:  # most requests name none, and an exception costs more than all of this
        return ""
    try:
        return name(named)
    except ValueError:
        return ""


def received(call: Call, ask: ParsedRequest, exchange: Exchange | None) -> RequestReceived:
    token = call.caller.token if call.caller else None
    return RequestReceived(
        request_id=call.request_id,
        time=call.now,
        operation=ask.operation.value,
        path=ask.path,
        mount_accessor=call.mount.accessor,
        remote_address=call.remote_address,
        token_id=token.id if token else "",
        display_name=token.display_name if token else "",
        policies=token.policies if token else (),
        audit=exchange.received() if exchange is not None else None,
    )
