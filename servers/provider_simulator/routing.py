"""Routing: how a request finds its handler, and what a handler may answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from attrs import Factory, evolve, field, frozen

from cloudid_core.effects import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from .world import World

Json: TypeAlias = dict[str, Any]

MAX_FIELDS: Final = 100
ENCODED_SLASH: Final = "%2F"


@frozen
class Answer:
    """What became of a request: the response, and what a fault does to it on its way back."""

    response: HttpResponse
    delay: float = 0.0
    """Seconds after which the response arrives. The work was done at once."""
    drop: bool = False
    """Whether the connection breaks instead."""


class Refusal(Exception):
    """A request that is answered with an error, which each host words in its own way."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message
        self.headers = dict(headers or {})


def json_response(status: int, value: Any, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(
        status, {"content-type": "application/json; charset=utf-8", **(headers or {})}, json.dumps(value).encode()
    )


def empty_response(status: int = 204) -> HttpResponse:
    return HttpResponse(status)


@frozen
class Caller:
    """Whoever sent a request, as its token says."""

    object_id: str = ""
    client_id: str = ""


ANYBODY: Final = Caller()


@frozen
class Call:
    """A request as a handler sees it: decoded, with the names that its route found in the path."""

    method: str
    path: str
    query: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    names: Mapping[str, str] = field(factory=dict)
    writes: bool = False
    """Whether its route changes something, for which its caller needs more rights."""
    caller: Caller = ANYBODY

    @classmethod
    def of(cls, request: HttpRequest) -> Call:
        """A slash that is encoded within a segment stays encoded: it never becomes structure."""
        url = urlsplit(request.url)
        return cls(
            method=request.method.upper(),
            path="/".join(unquote(part).replace("/", ENCODED_SLASH) for part in url.path.split("/")),
            query=_pairs(url.query),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=request.body,
        )

    def form(self) -> Mapping[str, str]:
        return _pairs(self.body.decode("ascii", "replace"))

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise Refusal(400, "BadRequest", "The body is not JSON.") from None


def _pairs(encoded: str) -> Mapping[str, str]:
    """Pairs of a query or form. Too many are cut off: nobody sends a hundred."""
    return dict(parse_qsl("&".join(encoded.split("&", MAX_FIELDS)[:MAX_FIELDS]), keep_blank_values=True))


Handler: TypeAlias = Callable[["World", Call], HttpResponse]


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+(?:\.\.\.)?)\}", template)
    for index, part in enumerate(parts):
        if index % 2 == 0:
            parts[index] = re.escape(part)
        else:
            name = part.removesuffix("...")
            parts[index] = f"(?P<{name}>.+)" if part.endswith("...") else f"(?P<{name}>[^/]+)"
    return re.compile("".join(parts), re.IGNORECASE)


@frozen
class Route:
    """A row of a host's table. `{name}` stands for (part of) a segment, `{name...}` for the rest; case is ignored."""

    method: str
    template: str
    handler: Handler
    writes: bool = False
    pattern: re.Pattern[str] = field(init=False, repr=False, default=Factory(lambda s: _pattern(s.template), True))


@frozen
class Family:
    """One of the hosts that share the address."""

    name: str
    prefix: str
    routes: tuple[Route, ...] = field(repr=False)
    admit: Callable[[World, Call], Caller] = field(repr=False)
    """What is checked before anything else; raises a `Refusal`."""
    word: Callable[[World, Refusal], HttpResponse] = field(repr=False)
    """How the host words an error."""

    def answer(self, world: World, call: Call) -> HttpResponse:
        possible = (route for route in self.routes if route.method == call.method)
        chosen = next(((route, match) for route in possible if (match := route.pattern.fullmatch(call.path))), None)
        try:
            if chosen is not None:
                call = evolve(call, names=chosen[1].groupdict(), writes=chosen[0].writes)
            call = evolve(call, caller=self.admit(world, call))
            world.throttle(self.name, call)
            if chosen is not None:
                return chosen[0].handler(world, call)
            allowed = ", ".join(sorted({route.method for route in self.routes if route.pattern.fullmatch(call.path)}))
            if not allowed:
                raise Refusal(404, "NotFound", "There is nothing at this path.")
            raise Refusal(405, "MethodNotAllowed", f"Only {allowed} is possible here.", {"allow": allowed})
        except Refusal as refusal:
            return self.word(world, refusal)


def page(items: Sequence[Any], call: Call, base_url: str, size: int) -> tuple[Sequence[Any], str | None]:
    """One page of a list, and the URL of the next, if any."""
    token = call.query.get("$skiptoken", "0")
    if not re.fullmatch(r"[0-9]{1,9}", token):
        raise Refusal(400, "BadRequest", "The skip token is not one of ours.")
    start = int(token)
    end = start + size
    following = urlencode({**call.query, "$skiptoken": end})
    return items[start:end], f"{base_url}{quote(call.path)}?{following}" if end < len(items) else None
