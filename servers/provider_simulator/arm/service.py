"""The resource manager: its routes."""

from __future__ import annotations

from typing import Final

from ..engine.routing import Service
from . import authorization, hierarchy, providers, resources
from .conventions import authenticate, render_error

ARM: Final = Service(
    name="arm",
    prefix="/arm/",
    authenticate=authenticate,
    render_error=render_error,
    routes=(*authorization.ROUTES, *hierarchy.ROUTES, *providers.ROUTES, *resources.ROUTES),
)
