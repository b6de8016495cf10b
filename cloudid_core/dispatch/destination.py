"""The destination of a request: its operation and path, and the mount and the route that they name.

A login must not read the table of mounts, nor look for its route in it. The targets of such routes follow from the
table, so they are listed once for each version of it: `DirectRoutes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import frozen

from ..errors import Code, Refused
from ..messages import (
    ADDRESSED,
    METHODS,
    PREFIX,
    Operation,
    check_namespace,
    deadline_seconds,
    flag,
    operation_of,
    split_target,
    token_in,
    wrap_ttl_in,
)
from ..mounts import Mount, MountTable
from ..routing import Catalog, Exchange, Route, methods_of, reason_of
from ..settings import Settings
from ..store import Found
from ..values import without_tokens


def read_target(exchange: Exchange) -> None:
    """Read method and target. Raise `Refused` if they cannot be parsed."""
    request = exchange.request
    path, query = split_target(request.target)
    wants_help = request.method == "HELP" or flag(query, "help")
    if flag(query, "scan"):
        raise Refused(Code.UNSUPPORTED_OPERATION)
    exchange.operation, exchange.is_head = (Operation.READ, False) if wants_help else operation_of(request, query)
    exchange.ends_in_slash, exchange.wants_help = path.endswith("/"), wants_help
    exchange.path = path.removesuffix("/")
    exchange.shown_path = without_tokens(exchange.path)
    exchange.query = {name: value for name, value in query.items() if name not in ("list", "help", "scan")}


def find_route(exchange: Exchange, catalog: Catalog, mounts: MountTable) -> None:
    """Find the mount of a path, and the route in the table of its component. Raise `Refused` like `read_target`."""
    read_target(exchange)
    operation, path = exchange.operation, exchange.path
    exchange.mount, exchange.route, exchange.captures = None, None, {}
    at = mounts.route(path)
    if at is None or operation is None:
        exchange.dead_end = Refused(Code.NO_HANDLER, reason_of(path))
        return
    exchange.mount, rest = at
    table = catalog.of(exchange.mount).routes
    match = table.find(rest, operation)
    if not isinstance(match, Code):
        route, captures = match
        if not (exchange.is_head and route.has_side_effect):
            exchange.route, exchange.captures = route, captures
            return
        match = Code.UNSUPPORTED_OPERATION
    reason = reason_of(path) if match is Code.UNSUPPORTED_PATH else ""
    exchange.dead_end = Refused(match, reason, allow=methods_of(table.at(rest)))


def read_head(exchange: Exchange, settings: Settings) -> tuple[str, int, float]:
    """Return the token in the headers, the TTL of the wrapped answer (0: not wrapped), and the time limit.

    Refuse headers and paths that request something impossible.
    """
    if exchange.ends_in_slash and exchange.operation is Operation.WRITE:
        raise Refused(Code.MALFORMED_PATH, "cannot write to a path that ends in a slash")
    headers = exchange.request.headers
    if ADDRESSED.isdisjoint(headers):  # mostly a login: one check is faster than one for each header
        return "", 0, settings.request_deadline
    seconds = deadline_seconds(headers, settings.request_deadline)
    check_namespace(headers)
    return token_in(headers), wrap_ttl_in(headers, settings.max_lease_ttl), seconds


Place: TypeAlias = tuple[Operation, str, str, Mount, Route]
"""Operation, path, the path for logs, mount and route, as an exchange has them."""


@frozen
class DirectRoutes:
    """The table of mounts as it was last read, and its routes whose programs rest on a view."""

    mounts: Found[MountTable]
    expects: Mapping[str, int]
    """`mounts.expected`, which every view of the table starts with."""
    places: Mapping[tuple[str, str], Place]
    """By method and target, in the spelling without a query and without escapes."""

    @classmethod
    def of(cls, mounts: Found[MountTable], catalog: Catalog) -> DirectRoutes:
        """List the direct routes of all mounts. The list contains nothing that clients choose."""
        places: dict[tuple[str, str], Place] = {}
        for mount in mounts.record.live:
            for route in catalog.of(mount).routes.on_views:
                path = f"{mount.path}/{route.path}"
                for method in METHODS[route.operation]:
                    places[method, PREFIX + path] = route.operation, path, without_tokens(path), mount, route
        return cls(mounts, mounts.expected, places)
