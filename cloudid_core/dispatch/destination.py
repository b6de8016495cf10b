"""Destination: what the method and the target of a request say, and the mount and the route that they lead to.

A login must not read the table of mounts, nor look for its route in it. The targets of such routes follow from the
table, so they are listed once for each version of it: `DirectRoutes`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from attrs import frozen

from ..errors import Code
from ..messages import METHODS, PREFIX, Request, Target, parse_target
from ..mounts import Mount, MountTable
from ..routing import Catalog, Route, methods_of, reason_of
from ..store import Found


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where a target leads: a route with its captures, or the code that says why there is none.

    `reason` says why a path is left out that an existing service has. `allow` are the methods of the path, where it has
    others than the one that was used.
    """

    target: Target
    mount: Mount | None = None
    route: Route | None = None
    captures: Mapping[str, str] = {}
    failure: Code = Code.NO_HANDLER
    reason: str = ""
    allow: str = ""

    def __repr__(self) -> str:
        return f"<Destination of {self.target}>"


def destination_of(request: Request, catalog: Catalog, mounts: MountTable) -> Destination:
    """Where a request leads. `Refused` when its method or target cannot be understood."""
    return find_destination(parse_target(request), catalog, mounts)


def find_destination(target: Target, catalog: Catalog, mounts: MountTable) -> Destination:
    """Find the mount of a path, and in its component's table the route."""
    at = mounts.route(target.path)
    if at is None:
        return Destination(target=target, reason=reason_of(target.path))
    mount, rest = at
    table = catalog.of(mount).routes
    match = table.find(rest, target.operation)
    if not isinstance(match, Code):
        route, captures = match
        if not (target.is_head and route.has_side_effect):
            return Destination(target=target, mount=mount, route=route, captures=captures)
        match = Code.UNSUPPORTED_OPERATION
    allow = methods_of(table.at(rest))
    reason = reason_of(target.path) if match is Code.UNSUPPORTED_PATH else ""
    return Destination(target=target, mount=mount, failure=match, reason=reason, allow=allow)


@frozen
class DirectRoutes:
    """The table of mounts as it was read last, and where requests lead in it whose programs rest on a view."""

    mounts: Found[MountTable]
    expects: Mapping[str, int]
    """What a view of the table expects."""
    destinations: Mapping[tuple[str, str], Destination]
    """By method and target, in the one spelling that has neither a query nor an escape."""

    @classmethod
    def of(cls, mounts: Found[MountTable], catalog: Catalog) -> DirectRoutes:
        """List the direct routes of all mounts. Nothing that clients make up gets into it."""
        requests = [
            Request(method, f"{PREFIX}{mount.path}/{route.path}")
            for mount in mounts.record.live
            for route in catalog.of(mount).routes.on_views
            for method in METHODS[route.operation]
        ]
        found = [(request, destination_of(request, catalog, mounts.record)) for request in requests]
        return cls(mounts, mounts.expected, {(each.method, each.target): destination for each, destination in found})
