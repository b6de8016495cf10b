"""The routes below `sys`."""

from __future__ import annotations

from typing import Final

from ..mounts import SYSTEM
from ..routing import Component, RouteTable
from . import (
    applied,
    audit,
    capabilities,
    health,
    internal,
    keys,
    leases,
    metrics,
    mounts,
    policies,
    quotas,
    recent_logins,
    retiring,
    wrapping,
)

MODULES: Final = (
    health,
    metrics,
    keys,
    policies,
    capabilities,
    mounts,
    retiring,
    internal,
    recent_logins,
    leases,
    audit,
    quotas,
    applied,
    wrapping,
)
ROUTES: Final = RouteTable(tuple(row for module in MODULES for row in module.ROUTES))
COMPONENT: Final = Component(kind=SYSTEM.kind, type=SYSTEM.type, routes=ROUTES, doc="Operates the service.")
