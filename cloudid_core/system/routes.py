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
    keys,
    leases,
    metrics,
    mounts,
    policies,
    quotas,
    recent_logins,
    retiring,
    specifications,
    ui_mounts,
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
    ui_mounts,
    recent_logins,
    specifications,
    leases,
    audit,
    quotas,
    applied,
    wrapping,
)
ROUTES: Final = RouteTable(tuple(row for module in MODULES for row in module.ROUTES))
COMPONENT: Final = Component(kind=SYSTEM.kind, type=SYSTEM.type, routes=ROUTES, doc="The service itself.")
