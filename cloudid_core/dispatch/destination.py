"""Destination: what the method and the target of a request say, and the mount and the route that they lead to.

Clients ask for the same few targets again and again, so destinations are remembered. Only those of routes without
captures are, under the one spelling that has neither a query nor an escape: clients cannot fill the memory with what
they make up, and nothing secret gets into it. What is remembered counts for one version of the table of mounts.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from ..caches import Bounded
from ..errors import Code
from ..messages import PREFIX, Request, Target, parse_target
from ..mounts import Mount, MountTable
from ..routing import Catalog, Route, methods_of, reason_of
from ..store import Found


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where a target leads: a route with its captures, or the code that says why there is none.

    `reason` says why a path is left out that an existing service has. `allow` are the methods of the path, where it has
    others than the one that was used.
    """

    target: Target
    version: int
    """Of the table of mounts in which it was found."""
    mount: Mount | None = None
    route: Route | None = None
    captures: Mapping[str, str] = {}
    failure: Code = Code.NO_HANDLER
    reason: str = ""
    allow: str = ""

    def __repr__(self) -> str:
        return f"<Destination of {self.target}>"


def destination_of(
    request: Request, catalog: Catalog, mounts: Found[MountTable], remembered: Bounded[Hashable, Any]
) -> Destination:
    """Where a request leads. `Refused` when its method or target cannot be understood."""
    known = known_destination(request, mounts.version, remembered)
    if known is not None:
        return known
    found = find_destination(parse_target(request), catalog, mounts)
    if found.route is not None and not found.captures and request.target == PREFIX + found.target.path:
        remembered.put((request.method, request.target), found)
    return found


def known_destination(request: Request, version: int, remembered: Bounded[Hashable, Any]) -> Destination | None:
    """Where a request leads in a version of the table of mounts, if that is remembered."""
    known: Destination | None = remembered.peek((request.method, request.target))
    return known if known is not None and known.version == version else None


def find_destination(target: Target, catalog: Catalog, mounts: Found[MountTable]) -> Destination:
    """Find the mount of a path, and in its component's table the route."""
    at = mounts.record.route(target.path)
    if at is None:
        return Destination(target=target, version=mounts.version, reason=reason_of(target.path))
    mount, rest = at
    table = catalog.of(mount).routes
    match = table.find(rest, target.operation)
    if not isinstance(match, Code):
        route, captures = match
        if not (target.is_head and route.has_side_effect):
            return Destination(target=target, version=mounts.version, mount=mount, route=route, captures=captures)
        match = Code.UNSUPPORTED_OPERATION
    allow = methods_of(table.at(rest))
    reason = reason_of(target.path) if match is Code.UNSUPPORTED_PATH else ""
    return Destination(target=target, version=mounts.version, mount=mount, failure=match, reason=reason, allow=allow)
