"""The limit of a body: how long it may be, by the head of its request.

Only a valid token makes a long body worth reading. Hosts read `UNASKED` bytes of any body, and ask before they read
more.
"""

from __future__ import annotations

from typing import Final

from ..context import Context
from ..effects import Instant
from ..errors import Code, Refused
from ..messages import Request, token_in
from ..mounts import MountTable, mount_table
from ..routing import Catalog, Exchange, Route
from ..tokens import is_known
from .destination import find_route

PUBLIC: Final = 32 * 1024
"""Longest body in bytes for a route that needs no token."""

WITHOUT_TOKEN: Final = 64 * 1024
"""Maximum size of a body in bytes for any other route, without a valid token."""

UNASKED: Final = PUBLIC
"""How many bytes of a body a host may read before it asks."""


async def body_limit(context: Context, catalog: Catalog, head: Request, now: Instant) -> int:
    """Return the maximum size of the body of a request with this head. Raise `Refused` if the head cannot be parsed."""
    table = await mount_table(context.records)
    exchange = Exchange(request=head, request_id="")
    find_route(exchange, catalog, table.record)
    return await _limit(context, table.record, exchange.route, head, now)


async def check_body(context: Context, mounts: MountTable, route: Route | None, request: Request, now: Instant) -> None:
    """`BODY_TOO_LARGE` when the body of a request to this route is too long."""
    if request.body_is_cut or len(request.body) > await _limit(context, mounts, route, request, now):
        raise Refused(Code.BODY_TOO_LARGE)


async def _limit(context: Context, mounts: MountTable, route: Route | None, head: Request, now: Instant) -> int:
    token, longest = token_in(head.headers), context.settings.body_limit
    if token and await is_known(context, mounts, token, head.remote_address, now):
        return longest
    return min(longest, PUBLIC if route is not None and route.public else WITHOUT_TOKEN)
