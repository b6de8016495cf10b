"""Requests that are read as dispatch reads them, without a service."""

from __future__ import annotations

from cloudid_core import Request, Settings
from cloudid_core.catalog import CATALOG
from cloudid_core.dispatch.destination import find_route, read_head, read_target
from cloudid_core.messages.request import body_of
from cloudid_core.mounts import MountTable
from cloudid_core.routing.exchange import Exchange


def exchange_of(request: Request) -> Exchange:
    """The beginning of an exchange."""
    return Exchange(request=request, request_id="")


def asked(request: Request) -> Exchange:
    """What method and target ask for."""
    exchange = exchange_of(request)
    read_target(exchange)
    return exchange


def read(request: Request, settings: Settings) -> Exchange:
    """All that can be read of a request without looking anything up."""
    exchange = asked(request)
    exchange.token, exchange.wrap_ttl, _ = read_head(exchange, settings)
    exchange.body = body_of(request, exchange.operation, exchange.query, settings)
    return exchange


def routed(request: Request, mounts: MountTable) -> Exchange:
    """Where a request leads under a table of mounts."""
    exchange = exchange_of(request)
    find_route(exchange, CATALOG, mounts)
    return exchange
