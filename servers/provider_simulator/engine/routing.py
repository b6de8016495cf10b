"""Routing: how a request finds its handler, and how what the handler gives back becomes the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from attrs import Factory, evolve, field, frozen

from cloudid_core.effects import HttpResponse

from .requests import ANONYMOUS, Call, Caller, Json, Refusal, json_response


@frozen
class Created:
    """What a handler gives back that made something: 201 and its JSON."""

    shown: Json


def _pattern(template: str) -> re.Pattern[str]:
    """`{name}` is any text without a slash, `{name...}` any text."""
    names = re.compile(r"\\\{(\w+)(\\\.\\\.\\\.)?\\\}")
    pattern = names.sub(lambda name: f"(?P<{name[1]}>{'.+' if name[2] else '[^/]+'})", re.escape(template))
    return re.compile(pattern, re.IGNORECASE)


@frozen
class Route:
    """A row of a service's table. `{name}` matches (part of) a segment, `{name...}` the rest; case is ignored.

    The handler gives back JSON (200), `Created` (201), `None` (204), or the response itself.
    """

    method: str
    template: str
    handler: Callable[[Any, Call], Any]
    writes: bool = False
    pattern: re.Pattern[str] = field(init=False, repr=False, default=Factory(lambda s: _pattern(s.template), True))


@frozen
class Service:
    """One of the services that share the simulator's address."""

    name: str
    prefix: str
    routes: tuple[Route, ...] = field(repr=False)
    authenticate: Callable[[Any, Call], Caller] = field(repr=False, default=lambda world, call: ANONYMOUS)
    """Says who calls, before anything else happens; raises a `Refusal`. By default anybody may."""
    headers: Callable[[Any, Call], Mapping[str, str]] = field(repr=False, default=lambda world, call: {})
    """The headers of every answer."""
    body_headers: Mapping[str, str] = field(repr=False, factory=dict[str, str])
    """The headers of answers with a body, besides those."""
    error_headers: Mapping[str, str] = field(repr=False, factory=dict[str, str])
    """The headers of errors, besides those."""
    dress: Callable[[Any, Call, int, Any], tuple[Any, Mapping[str, str]]] = field(
        repr=False, default=lambda world, call, status, shown: (shown, {})
    )
    """What is sent instead of the JSON that a handler gave back, and with which headers."""
    error: Callable[[Any, Refusal, Mapping[str, str]], Json] = field(
        repr=False, default=lambda world, refusal, _: {"error": {"code": refusal.code, "message": refusal.message}}
    )
    """An error in the service's own format, given the headers of its answer."""

    def refuse(self, world: Any, call: Call, refusal: Refusal) -> HttpResponse:
        headers = self.headers(world, call)
        shown = self.error(world, refusal, headers)
        more = {**self.body_headers, **self.error_headers, **refusal.headers}
        return json_response(refusal.status, shown, {**headers, **more})

    def answer(self, world: Any, call: Call) -> HttpResponse:
        """What a request gets. The world's `throttle` counts it, and raises a `Refusal` if there are too many."""
        possible = (route for route in self.routes if route.method == call.method)
        chosen = next(((route, match) for route in possible if (match := route.pattern.fullmatch(call.path))), None)
        try:
            if chosen is not None:
                call = evolve(call, names=chosen[1].groupdict(), writes=chosen[0].writes)
            call = evolve(call, caller=self.authenticate(world, call))
            world.throttle(self.name, call)
            if chosen is None:
                found = (route.method for route in self.routes if route.pattern.fullmatch(call.path))
                if allowed := ", ".join(sorted(set(found))):
                    raise Refusal(405, "MethodNotAllowed", f"Only {allowed} is possible here.", {"allow": allowed})
                raise Refusal(404, "NotFound", "There is nothing at this path.")
            given = chosen[0].handler(world, call)
        except Refusal as refusal:
            return self.refuse(world, call, refusal)
        if isinstance(given, HttpResponse):
            return given
        if given is None:
            return HttpResponse(204, self.headers(world, call))
        status, shown = (201, given.shown) if isinstance(given, Created) else (200, given)
        dressed, headers = self.dress(world, call, status, shown)
        return json_response(status, dressed, {**self.headers(world, call), **self.body_headers, **headers})
