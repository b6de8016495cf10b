"""The directory's API: its routes."""

from __future__ import annotations

from typing import Final

from ..engine.routing import Service
from . import applications, deleted_items, directory_objects, federation, grants, groups, service_principals
from .conventions import authenticate, render_error

GRAPH: Final = Service(
    name="graph",
    prefix="/graph/",
    authenticate=authenticate,
    render_error=render_error,
    routes=(
        *applications.ROUTES,
        *federation.ROUTES,
        *service_principals.ROUTES,
        *groups.ROUTES,
        *grants.ROUTES,
        *directory_objects.ROUTES,
        *deleted_items.ROUTES,
    ),
)
