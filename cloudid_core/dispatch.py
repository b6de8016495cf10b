"""Dispatch: from a request to the program of its route, in the order that clients can observe.

Understand the request, find who calls, ask the policies, and only then say whether the path exists: without a good
token every path answers alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from .context import Context, Deadline
from .effects import Now, Record
from .errors import Code, RecordFailed, Refused
from .fields import Given, parse, require
from .leases.revocation import end_lease
from .messages import Request, Response, dress
from .mounts import Mount, MountTable, mount_table
from .parsing import Ask, deadline_seconds, understand
from .routing import Call, Operation, Route
from .tokens.authenticate import authenticate
from .tokens.record import Caller

CREATE: Final = "create"
NOTHING_GIVEN: Final = Given({}, {}, ())


class Place(msgspec.Struct, frozen=True):
    """Where a path leads: a route with its captures, or the code that says why there is none."""

    mount: Mount | None
    route: Route | None = None
    captures: Mapping[str, str] = {}
    failure: Code = Code.NO_HANDLER


async def respond(context: Context, request: Request, request_id: str) -> Response:
    """The response to a request; `Refused` where there is none."""
    ask = understand(request, context.settings)
    now = await Now()
    deadline = Deadline(now + deadline_seconds(request.headers, context.settings.request_deadline))
    mounts = (await mount_table(context)).record
    place = locate(context, mounts, ask)
    caller: Caller | None = None
    if place.route is None or not place.route.public:
        caller = await authenticate(context, mounts, ask.token, request.remote_address, now)
    if place.route is None or place.mount is None:
        authorise(caller, ask, ask.operation.value)
        raise Refused(place.failure)
    make_call = partial(
        Call,
        context=context,
        mount=place.mount,
        captures=place.captures,
        body=ask.body,
        caller=caller,
        remote_address=request.remote_address,
        deadline=deadline,
        now=now,
        request_id=request_id,
    )
    if not place.route.public:
        creates = place.route.exists is not None and not await place.route.exists(make_call(given=NOTHING_GIVEN))
        authorise(caller, ask, CREATE if creates else ask.operation.value)
    call = make_call(given=read_form(place.route, ask.body))
    await Record(event("request", call, ask))
    answer = await place.route.program(call)
    try:
        await Record(event("response", call, ask))
    except RecordFailed:
        if answer.holds:
            await end_lease(context, answer.holds, await Now())
        raise
    if told := warnings(place.route, call, ask):
        answer = replace(answer, warnings=(*answer.warnings, *told))
    if caller is not None and caller.last_use:
        answer = replace(answer, visit_at=now)
    return dress(answer, request_id=request_id, mount_type=place.mount.type)


def locate(context: Context, mounts: MountTable, ask: Ask) -> Place:
    """Find the mount of a path, and in its component's table the route."""
    found = mounts.route(ask.path)
    if found is None:
        return Place(None)
    mount, rest = found
    match = context.components[mount.kind, mount.type].routes.find(rest, ask.operation)
    if isinstance(match, Code):
        return Place(mount, failure=match)
    route, captures = match
    if ask.is_head and route.has_side_effect:
        return Place(mount, failure=Code.UNSUPPORTED_OPERATION)
    return Place(mount, route, captures)


def authorise(caller: Caller | None, ask: Ask, capability: str) -> None:
    """Refuse what the caller's policies do not allow; that protected paths need `sudo` besides is theirs to know."""
    if caller is None or not caller.acl.allows(capability, ask.path, ask.body):
        raise Refused(Code.PERMISSION_DENIED)


def read_form(route: Route, body: Mapping[str, Any]) -> Given:
    """The fields of the route's form that a request gave."""
    given = parse(route.form, body)
    if route.requires_all:
        require(route.form, given)
    return given


def warnings(route: Route, call: Call, ask: Ask) -> tuple[str, ...]:
    """What a misspelt or overruled field of a write is told; it must not vanish in silence."""
    if ask.operation is not Operation.WRITE:
        return ()
    overruled = sorted(name for name, value in call.captures.items() if ask.body.get(name, value) != value)
    unknown = [name for name in call.given.ignored if name not in call.captures]
    told = []
    if unknown and not route.takes_anything:
        told.append(f"Endpoint ignored these unrecognized parameters: [{' '.join(unknown)}]")
    if overruled:
        told.append(
            "Endpoint replaced the value of these parameters with the values captured from the endpoint's path: "
            f"[{' '.join(overruled)}]"
        )
    return tuple(told)


def event(kind: str, call: Call, ask: Ask) -> dict[str, Any]:
    """What the audit log learns of a request or of its answer; no field's value is in it."""
    token = call.caller.token if call.caller else None
    return {
        "type": kind,
        "time": call.now,
        "request_id": call.request_id,
        "operation": ask.operation.value,
        "path": ask.path,
        "mount_accessor": call.mount.accessor,
        "remote_address": call.remote_address,
        "token_id": token.id if token else "",
        "display_name": token.display_name if token else "",
        "policies": token.policies if token else (),
    }
