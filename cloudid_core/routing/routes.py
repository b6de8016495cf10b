"""Routing: tables of routes, and the call that a route's program receives.

Each component has one table, and a row is one operation at one path. Dispatch, validation, capabilities and the API
documents are all derived from the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import msgspec
from attrs import frozen
from msgspec.structs import replace

from ..context import Context, Due
from ..deadline import Deadline
from ..effects import ABSENT, Instant, Program
from ..errors import Code, Refused, without_provider_code
from ..forms import INTEGER, NOTHING_GIVEN, SHORT, ParsedFields, Schema, bounded, defaults_of, setting
from ..messages import METHODS, READ, WRITE, Answer, Operation
from ..mounts import Mount, View
from ..store import NO_CHANGES, Changes, Found
from ..tokens import Caller, Token
from ..values import name as parse_name
from .answers import CHOSEN, DONE, ENVELOPE, KEYS, PLAIN, Answers

if TYPE_CHECKING:
    from .exchange import Exchange

F = TypeVar("F")
NOBODY: Final = ""
"""A name that no object can have, because no grammar of names allows it."""


@frozen
class NoFields:
    """The form of a route that takes no fields."""


@frozen(kw_only=True)
class PageForm:
    """Which part of a list is requested."""

    after: str = setting(SHORT, "", "List only keys after this one.")
    limit: int = setting(bounded(INTEGER, -1, 2**31), 0, "Maximum number of keys. 0 or -1: all.")


class Proven(msgspec.Struct):
    """What is known of a login.

    Before its mount has accepted the JWT, nothing is known: every claim could be forged, or come from another tenant.
    """

    principal_id: str = ""
    """Object id of the service principal, in lower case. Empty: the JWT is not accepted."""
    resource_id: str = ""
    """Id of the machine as the JWT has it; empty if it names none."""
    case: object = None
    """All that the login was decided on, without its JWT, once that is known."""
    lacks_role: bool = False
    """The JWT is accepted, but the role of the login does not exist, as far as this node knows."""
    has_invalid_form: bool = False
    """The login was refused because of its form, before its JWT was read."""
    is_verified: bool = False
    """The JWT is not accepted, although its signature was verified."""


class Unwrapping(msgspec.Struct, frozen=True):
    """A wrapped response that a request takes, with the ids of the lease or token in it."""

    token: Found[Token]
    spent: Token
    """What replaces its wrapping token once this request, and no other, has the response."""
    lease_id: str
    token_id: str


class Held(msgspec.Struct):
    """What a request is about to create, noted before the commit that creates it, until the caller has it.

    If a request is closed early, or its response is not delivered, all of it is revoked: see `give_back`.
    """

    lease_id: str = ""
    mount_id: str = ""
    intent_id: str = ""
    """The intent of that mount which the lease replaces."""
    token: Token | None = None
    """A new token. A token that is not stored exists only in the response."""
    unwrapping: Unwrapping | None = None
    wrapping: Token | None = None
    """The token of a wrapped response."""

    def clear(self) -> None:
        """Forget everything."""
        self.lease_id = self.mount_id = self.intent_id = ""
        self.token = self.unwrapping = self.wrapping = None

    def __bool__(self) -> bool:
        has_stored_token = self.token is not None and not self.token.is_batch
        return bool(self.lease_id or has_stored_token or self.unwrapping or self.wrapping is not None)


def may_read_config(caller: Caller | None, mount: Mount | None) -> bool:
    """Return whether a caller may read how a mount authenticates to Azure, and therefore Azure's error codes."""
    if caller is None or mount is None:
        return False
    path = f"sys/retiring/{mount.accessor}" if mount.retired_at is not None else mount.path
    return caller.acl.allows(READ.value, f"{path}/config")


def reason_for(caller: Caller | None, mount: Mount | None, reason: str) -> str:
    """Return a reason for this caller: with Azure's error code only if the caller may read the configuration."""
    return reason if may_read_config(caller, mount) else without_provider_code(reason)


class Call(msgspec.Struct):
    """The argument of a route's program: the exchange that found the route, and what only such an exchange has."""

    context: Context
    exchange: Exchange
    given: ParsedFields = NOTHING_GIVEN
    """The fields of the route's form that were given."""
    count_role: Callable[[], None] | None = None
    """Counts a login against the quota of its role, once the mount has accepted its token; `None` without a quota."""
    wrapping: Token | None = None
    """The wrapping token for the response, if it is to be wrapped. It is not in the store yet."""

    @property
    def mount(self) -> Mount:
        return self.exchange.mount  # type: ignore[return-value]  # a call has found its route

    @property
    def view(self) -> View:
        """What the request rests on."""
        return self.exchange.view  # type: ignore[return-value]  # as above

    @property
    def captures(self) -> Mapping[str, str]:
        return self.exchange.captures

    @property
    def body(self) -> Mapping[str, Any]:
        return self.exchange.body

    @property
    def caller(self) -> Caller | None:
        return self.exchange.caller

    @property
    def remote_address(self) -> str:
        return self.exchange.request.remote_address

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the request, with names in lower case."""
        return self.exchange.request.headers

    @property
    def now(self) -> Instant:
        return self.exchange.time

    @property
    def deadline(self) -> Deadline:
        return self.exchange.deadline

    @property
    def request_id(self) -> str:
        return self.exchange.request_id

    @property
    def operation(self) -> Operation | None:
        return self.exchange.operation

    @property
    def proven(self) -> Proven:
        """Takes whom a login's JWT is about."""
        return self.exchange.proven

    @property
    def held(self) -> Held:
        """Takes what the program is about to create."""
        return self.exchange.held

    def __repr__(self) -> str:
        return f"<Call {self.request_id} at {self.mount.path}>"

    def form(self, form: type[F]) -> F:
        """Return the given fields as an instance of the route's form, with defaults for all others."""
        if self.given.values:
            return form(**self.given.values)
        fields: F = defaults_of(form)  # type: ignore[arg-type]  # every class is hashable
        return fields

    def tied_to_wrapping(self, *, lease_id: str = "", token_id: str = "") -> Changes:
        """Make a new lease or token end with the wrapping token, if there will be one, and note that token as held.

        This is part of its commit. If the commit is definitely not made, nothing is `held` any more.
        """
        if self.wrapping is None:
            return NO_CHANGES
        token = self.held.wrapping = replace(self.wrapping, has_dependants=True)
        index_keys = token.dependant_keys(lease_id, token_id)
        return Changes({token.key: ABSENT}, {token.key: token, **dict.fromkeys(index_keys, Due())})

    @property
    def token(self) -> Caller:
        """Return the caller's token. Routes that need a token always have one."""
        if self.caller is None:
            raise Refused(Code.PERMISSION_DENIED)
        return self.caller


@frozen(eq=False, slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class Route:
    """A row. `path` is relative to the mount:

    `:name` captures one segment, `*rest` everything up to the segments that follow it.
    """

    path: str
    operation: Operation
    program: Callable[[Call], Program[Answer]]
    doc: str
    form: type = NoFields
    exists: Callable[[Call], Program[bool]] | None = None
    """Returns whether the object exists, if create and update need different capabilities."""
    public: bool = False
    """Needs no token. The program knows the caller only with `optional_token`."""
    optional_token: bool = False
    """A valid token is used, and any other is ignored."""
    gives_token: bool = False
    """Each of its responses contains a token, so a request without a token can have it wrapped too."""
    any_token: bool = False
    """Needs a valid token, but no policy: the program decides."""
    requires_all: bool = False
    """The form's required fields must be in the request itself."""
    takes_anything: bool = False
    """Unknown fields are allowed."""
    pages: bool = False
    """A list whose program applies `after` and `limit` itself."""
    role_field: str = ""
    """The field that names a role, if the path does not."""
    audited: bool = True
    """Its requests are audited."""
    rests_on_view: bool = False
    """The program may use what this node last read, including the table of mounts: see `View`."""
    names_provider_codes: bool = False
    """A refusal includes Azure's error code, for a caller who may read the mount's configuration."""
    has_side_effect: bool = False
    """A read that changes something, and therefore does not support HEAD."""
    answers: Answers = attrs.field(
        default=attrs.Factory(lambda route: KEYS if route.operation is Operation.LIST else DONE, takes_self=True)
    )
    """What it returns. By default a list returns its keys, and any other route returns nothing."""

    @cached_property
    def changes(self) -> bool:
        """Return whether it writes or deletes."""
        return self.operation in (Operation.WRITE, Operation.DELETE)

    @cached_property
    def is_plain(self) -> bool:
        """Return whether its responses have no envelope, so that they cannot be wrapped."""
        return self.answers.shape in (PLAIN, CHOSEN)

    @cached_property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.split("/"))

    def match(self, segments: list[str]) -> Mapping[str, str] | None:
        """Return the captures if a path matches this route, otherwise `None`."""
        captures: dict[str, str] = {}
        for number, pattern in enumerate(self.segments):
            if pattern.startswith("*"):
                tail = self.segments[number + 1 :]
                end = len(segments) - len(tail)
                if tail and (end <= number or tuple(segments[end:]) != tail):
                    return None
                captures[pattern[1:]] = "/".join(segments[number:end])
                return captures
            if number >= len(segments):
                return None
            if pattern.startswith(":"):
                captures[pattern[1:]] = segments[number]
            elif pattern != segments[number]:
                return None
        return captures if len(segments) == len(self.segments) else None


def route(
    path: str,
    operation: Operation,
    answers: Answers | Schema | None = None,
    *,
    shape: str = ENVELOPE,
    refusals: tuple[Code, ...] = (),
    doc: str = "",
    **more: Any,
) -> Callable[[Callable[[Call], Program[Answer]]], Route]:
    """Make a program a row. Its description is the first paragraph of its docstring, or `doc`.

    `answers`: the schema of `data`, or everything that it returns; the default is as in `Route`.
    """
    if isinstance(answers, Answers):
        more["answers"] = answers
    elif answers is not None or refusals:
        more["answers"] = Answers(data=answers, shape=shape, nothing=answers is None, refusals=refusals)

    def row_of(program: Callable[[Call], Program[Answer]]) -> Route:
        said = doc or " ".join((program.__doc__ or "").partition("\n\n")[0].split())
        return Route(path, operation, program, said, **more)

    return row_of


def methods_of(routes: Iterable[Route]) -> str:
    """Return the `Allow` header of a path with these routes (RFC 9110 section 10.2.1)."""
    methods = {
        method
        for route in routes
        for method in METHODS[route.operation]
        if not (method == "HEAD" and route.has_side_effect)
    }
    return ", ".join(sorted(methods))


@frozen(slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class RouteTable:
    """The rows of one component."""

    routes: tuple[Route, ...]

    @cached_property
    def fixed(self) -> Mapping[tuple[str, Operation], Route]:
        return {(route.path, route.operation): route for route in self.routes if ":" not in route.path}

    @cached_property
    def on_views(self) -> tuple[Route, ...]:
        """The rows whose programs rest on a view."""
        return tuple(route for route in self.routes if route.rests_on_view)

    @cached_property
    def kept(self) -> frozenset[str]:
        """The patterns of objects that a write creates and a deletion deletes."""
        deleted = {route.path for route in self.routes if route.operation is Operation.DELETE}
        return frozenset(route.path for route in self.routes if route.operation is WRITE and route.path in deleted)

    def find(self, path: str, operation: Operation) -> tuple[Route, Mapping[str, str]] | Code:
        """Return the row for a path and an operation with its captures, or why there is none.

        Specific rows take precedence.
        """
        route = self.fixed.get((path, operation))
        if route is not None and "*" not in route.path:
            return route, {}
        segments = path.split("/")
        known = False
        for candidate in self.routes:
            captures = candidate.match(segments)
            if captures is None:
                continue
            if candidate.operation is operation:
                return candidate, captures
            known = True
        return Code.UNSUPPORTED_OPERATION if known else Code.UNSUPPORTED_PATH

    def at(self, path: str) -> tuple[Route, ...]:
        """Return the rows for a path, one for each operation."""
        found = [self.find(path, operation) for operation in Operation]
        return tuple(row[0] for row in found if not isinstance(row, Code))


def captured(call: Call, capture: str, parse: Callable[[str], str]) -> str:
    """Return a captured name in its normal form. Refuse an invalid name in a write with `NAME_INVALID`.

    In other operations, an invalid name becomes `NOBODY`, so the object is not found, like any object that was never
    written.
    """
    try:
        return parse(call.captures[capture])
    except ValueError as error:
        if call.operation is Operation.WRITE:
            raise Refused(Code.NAME_INVALID, str(error)) from None
        return NOBODY


def capture_name(call: Call, capture: str = "name") -> str:
    """Return a captured name in lower case, like `captured`."""
    return captured(call, capture, parse_name)


def name_as_written(call: Call) -> str:
    """Return a captured name in its original spelling, like `captured`."""
    return call.captures["name"] if capture_name(call) else NOBODY
