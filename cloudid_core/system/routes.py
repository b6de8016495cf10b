"""The routes below `sys`."""

from __future__ import annotations

from typing import Final

from ..components import Component
from ..mounts import SYSTEM
from ..routing import RouteTable
from . import capabilities, health, leases, mounts, policies, remount, visible_mounts

ROUTES: Final = RouteTable(
    (
        *health.ROUTES,
        *policies.ROUTES,
        *capabilities.ROUTES,
        *mounts.ROUTES,
        *remount.ROUTES,
        *visible_mounts.ROUTES,
        *leases.ROUTES,
    )
)
COMPONENT: Final = Component(kind=SYSTEM.kind, type=SYSTEM.type, routes=ROUTES, doc="The service itself.")
