"""Dispatch: from a request to the program of its route, in the order that clients can observe.

Parse the request, identify the caller, check the policies, and only then say whether the path exists: without a good
token all paths answer alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..audit.device import Entries
from ..audit.entry import Exchange
from ..effects import Instant, Record
from ..errors import Code, Refused
from ..events import Problem, RequestAnswered, RequestReceived
from ..foundation.components import Catalog
from ..foundation.context import Context
from ..foundation.deadline import Deadline
from ..mounts.table import MountTable, mount_table
from ..policies.document import DENY
from ..quotas.rate_limit import count_request, known_quotas, read_quotas
from ..tokens.authenticate import authenticate
from ..tokens.issue import accessor_of
from ..tokens.record import Caller
from ..values.names import name
from ..wrapping.wrap import wrap, wrapping_token
from .destination import Destination, destination_of
from .fields import NOTHING_GIVEN, ParsedFields, parse, require, spellings_of
from .help import help_about
from .request import ParsedRequest, deadline_seconds, parse_request
from .response import Answer, Request, Response, render
from .routing import Call, NoFields, Operation, PageForm, Route, RouteTable

CREATE: Final = "create"


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

    def found(self, ask: ParsedRequest, destination: Destination) -> None:
        """The request was understood, and this is where it leads."""
        mount, route = destination.mount, destination.route
        self.operation, self.path = ask.operation.value, ask.shown_path
        if mount is not None:
            self.mount, self.mount_accessor = mount.path, mount.accessor
        if route is not None:
            self.role = role_in(route, destination.captures, ask.body)
        if self.exchange is not None:
            self.exchange.found(ask, mount)
            if route is not None and not route.audited:
                self.exchange = None

    def gives(self, answer: Answer) -> None:
        """The program has answered."""
        self.accessor, self.lease_id = answer.auth.accessor if answer.auth else "", answer.lease_id

    def answered(self, response: Response, audit: Entries | None = None) -> RequestAnswered:
        """The event of the answer."""
        return RequestAnswered(
            request_id=self.request_id,
            time=self.time,
            status=response.status,
            operation=self.operation,
            path=self.path,
            mount=self.mount,
            mount_accessor=self.mount_accessor,
            role=self.role,
            remote_address=self.remote_address,
            token_id=self.token_id,
            display_name=self.display_name,
            codes=response.codes,
            accessor=self.accessor,
            lease_id=self.lease_id,
            problem=Problem.of(response.failure) if response.failure else None,
            audit=audit,
        )


async def respond(context: Context, catalog: Catalog, request: Request, facts: RequestFacts) -> Response:
    """The response to a request. Raises `Refused` where there is none. `facts` learns what becomes known."""
    table = await mount_table(context.records)
    mounts = table.record
    if mounts.takers:
        facts.exchange = Exchange(
            devices=mounts.devices,
            takers=mounts.takers,
            request_id=facts.request_id,
            remote_address=facts.remote_address,
            headers=request.headers,
            audited_headers=mounts.audited_headers,
        )
    found = destination_of(request, catalog, table, context.caches.destinations)
    mount, route = found.mount, found.route
    ask = parse_request(request, found.target, context.settings)
    facts.found(ask, found)
    deadline = Deadline(facts.time + deadline_seconds(request.headers, context.settings.request_deadline))
    quotas = known_quotas(context, facts.time) or await read_quotas(context, facts.time)
    count_request(context, quotas, ask.path, facts.role, facts.remote_address, facts.time)
    if found.target.wants_help:
        answer = await explain(context, catalog, mounts, found, ask, facts)
        return render(answer, request_id=facts.request_id, mount_type="")
    caller: Caller | None = None
    if route is None or not route.public:
        caller = await identify(context, mounts, ask, facts)
    elif route.optional_token and ask.token:
        with suppress(Refused):
            caller = await identify(context, mounts, ask, facts)
    if route is None or mount is None:
        authorise(caller, ask, facts.operation)
        raise Refused(found.failure, allow=found.allow)
    wrapping = await wrapping_token(context, ask.path, ask.wrap_ttl, deadline.at) if ask.wrap_ttl else None
    call = Call(
        context=context,
        mount=mount,
        captures=found.captures,
        given=NOTHING_GIVEN,
        body=ask.body,
        caller=caller,
        shown_token=ask.token,
        wrapping=wrapping.token if wrapping else None,
        remote_address=facts.remote_address,
        deadline=deadline,
        now=facts.time,
        request_id=facts.request_id,
        trail=facts.exchange.trail if facts.exchange is not None else None,
    )
    if not (route.public or route.any_token):
        capability = await needed_capability(route, call) if route.exists else facts.operation
        authorise(caller, ask, capability, route.form)
    if ask.body or route.requires_all:
        call = replace(call, given=read_form(route, ask.body))
    await Record(received(call, facts))
    answer = complete(await route.program(call), route, call, ask)
    facts.gives(answer)
    response = render(answer, request_id=facts.request_id, mount_type=mount.shown_type)
    if wrapping is not None and answer.can_be_wrapped:
        answer = await wrap(context, answer, response.body, wrapping)
        response = replace(render(answer, request_id="", mount_type=""), request_id=facts.request_id)
    facts.new_token_id = answer.new_token
    if facts.exchange is not None:
        facts.exchange.answer = answer
    return response


async def identify(context: Context, mounts: MountTable, ask: ParsedRequest, facts: RequestFacts) -> Caller:
    """Who sent the request; `PERMISSION_DENIED` without a good token."""
    caller = await authenticate(context, mounts, ask.token, facts.remote_address, facts.time)
    facts.token_id, facts.display_name = caller.token.id, caller.token.display_name
    if facts.exchange is not None:
        facts.exchange.called_by(caller, accessor_of(context, caller.token))
    return caller


async def needed_capability(route: Route, call: Call) -> str:
    """The capability that the policies must grant. A name that cannot exist is a matter for the program."""
    try:
        exists = route.exists is None or await route.exists(call)
    except Refused:
        exists = False
    return route.operation.value if exists else CREATE


def authorise(caller: Caller | None, ask: ParsedRequest, capability: str, form: type = NoFields) -> None:
    """Refuse what the caller's policies do not allow, `sudo` for protected paths included."""
    if caller is None or not caller.acl.allows(capability, ask.path, ask.body, ask.wrap_ttl, spellings_of(form)):
        raise Refused(Code.PERMISSION_DENIED)


async def explain(
    context: Context,
    catalog: Catalog,
    mounts: MountTable,
    found: Destination,
    ask: ParsedRequest,
    facts: RequestFacts,
) -> Answer:
    """Help about a path, for callers who may do anything there; no program of a route runs."""
    path, mount = ask.path, found.mount
    table = catalog.of(mount).routes if mount else RouteTable(())
    rows = table.at(path.removeprefix(mount.path).removeprefix("/")) if mount else ()
    if not any(row.public for row in rows):
        acl = (await identify(context, mounts, ask, facts)).acl
        granted = acl.capabilities(path) | acl.capabilities(f"{path}/")
        if not (granted - DENY or any(row.any_token for row in rows)):
            raise Refused(Code.PERMISSION_DENIED)
    if not rows:
        raise Refused(found.failure)
    return Answer(data=help_about(rows), plain=True)


def complete(answer: Answer, route: Route, call: Call, ask: ParsedRequest) -> Answer:
    """The answer of a program, with what every route answers: pages of lists, warnings, the end of a spent token."""
    if ask.operation is Operation.LIST:
        answer = page_of(answer, route, ask.body)
    if ask.operation is Operation.WRITE and (found := warnings(route, call)):
        answer = replace(answer, warnings=(*answer.warnings, *found))
    if call.caller is not None and call.caller.last_use:
        answer = replace(answer, wake_at=call.now)
    return answer


def page_of(answer: Answer, route: Route, body: Mapping[str, Any]) -> Answer:
    """The part of a list that `after` and `limit` ask for, all of it without them; `NOT_FOUND` when it is empty."""
    data = answer.data or {}
    keys = data.get("keys", ())
    if not route.pages:
        form = PageForm(**parse(PageForm, body).values)
        keys = [key for key in keys if key > form.after][: form.limit if form.limit > 0 else None]
    if not keys:
        raise Refused(Code.NOT_FOUND)
    return replace(answer, data={**data, "keys": keys})


def read_form(route: Route, body: Mapping[str, Any]) -> ParsedFields:
    """The fields of the route's form that a request gave."""
    given = parse(route.form, body)
    if route.requires_all:
        require(route.form, given)
    return given


def warnings(route: Route, call: Call) -> tuple[str, ...]:
    """The warnings about unknown and overruled fields of a write: a misspelt field must not vanish in silence."""
    if not call.captures and not call.given.ignored:
        return ()
    overruled = sorted(name for name, value in call.captures.items() if call.body.get(name, value) != value)
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


def received(call: Call, facts: RequestFacts) -> RequestReceived:
    """The event before a request is executed."""
    token = call.caller.token if call.caller else None
    return RequestReceived(
        request_id=facts.request_id,
        time=facts.time,
        operation=facts.operation,
        path=facts.path,
        mount_accessor=facts.mount_accessor,
        remote_address=facts.remote_address,
        token_id=facts.token_id,
        display_name=facts.display_name,
        policies=token.policies if token else (),
        audit=facts.exchange.received() if facts.exchange is not None else None,
    )
