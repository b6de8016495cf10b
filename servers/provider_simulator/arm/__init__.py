"""The resource manager: subscriptions, resources, role definitions and role assignments, below `/arm`."""

from typing import Final

from ..engine.routing import Service
from . import authorization, hierarchy, resources
from .conventions import FAILURE_CAUSE, authenticate, headers

ARM: Final = Service(
    name="arm",
    prefix="/arm/",
    authenticate=authenticate,
    headers=headers,
    error_headers=FAILURE_CAUSE,
    routes=(*authorization.ROUTES, *hierarchy.ROUTES, *resources.ROUTES),
)
