"""Routing: how a request finds its handler."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from attrs import Factory, evolve, field, frozen

from cloudid_core.effects import HttpResponse

from .requests import Call, Caller, Refusal


class Throttled(Protocol):
    """What routing needs of a world."""

    def throttle(self, service: str, call: Call) -> None:
        """Count the request; `Refusal` 429 if there are too many."""


W = TypeVar("W", bound=Throttled)


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
class Route(Generic[W]):
    """A row of a service's table. `{name}` matches (part of) a segment, `{name...}` the rest; case is ignored."""

    method: str
    template: str
    handler: Callable[[W, Call], HttpResponse]
    writes: bool = False
    pattern: re.Pattern[str] = field(init=False, repr=False, default=Factory(lambda s: _pattern(s.template), True))


@frozen
class Service(Generic[W]):
    """One of the services that share the simulator's address."""

    name: str
    prefix: str
    routes: tuple[Route[W], ...] = field(repr=False)
    authenticate: Callable[[W, Call], Caller] = field(repr=False)
    """Says who calls, before anything else happens; raises a `Refusal`."""
    render_error: Callable[[W, Refusal], HttpResponse] = field(repr=False)
    """Writes an error in the service's own format."""

    def answer(self, world: W, call: Call) -> HttpResponse:
        possible = (route for route in self.routes if route.method == call.method)
        chosen = next(((route, match) for route in possible if (match := route.pattern.fullmatch(call.path))), None)
        try:
            if chosen is not None:
                call = evolve(call, names=chosen[1].groupdict(), writes=chosen[0].writes)
            call = evolve(call, caller=self.authenticate(world, call))
            world.throttle(self.name, call)
            if chosen is not None:
                return chosen[0].handler(world, call)
            allowed = ", ".join(sorted({route.method for route in self.routes if route.pattern.fullmatch(call.path)}))
            if not allowed:
                raise Refusal(404, "NotFound", "There is nothing at this path.")
            raise Refusal(405, "MethodNotAllowed", f"Only {allowed} is possible here.", {"allow": allowed})
        except Refusal as refusal:
            return self.render_error(world, refusal)
