"""The routes below `sys`."""

from __future__ import annotations

from typing import Final

from ..mounts import SYSTEM
from ..routing import Component, RouteTable
from . import (
    applied,
    audit,
    audited_headers,
    capabilities,
    health,
    keys,
    leases,
    metrics,
    mounts,
    policies,
    quotas,
    recent_logins,
    remount,
    retiring,
    specifications,
    ui_mounts,
    wrapping,
)

ROUTES: Final = RouteTable(
    (
        *health.ROUTES,
        *metrics.ROUTES,
        *keys.ROUTES,
        *policies.ROUTES,
        *capabilities.ROUTES,
        *mounts.ROUTES,
        *remount.ROUTES,
        *retiring.ROUTES,
        *ui_mounts.ROUTES,
        *recent_logins.ROUTES,
        *specifications.ROUTES,
        *leases.ROUTES,
        *audit.ROUTES,
        *audited_headers.ROUTES,
        *quotas.ROUTES,
        *applied.ROUTES,
        *wrapping.ROUTES,
    )
)
COMPONENT: Final = Component(kind=SYSTEM.kind, type=SYSTEM.type, routes=ROUTES, doc="The service itself.")
