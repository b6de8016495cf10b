"""Everything that can be mounted: the one table of components, and with it of all routes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..auth_method import routes as auth_routes
from ..foundation.components import Component
from ..secrets_engine import routes as engine_routes
from ..system import routes as system_routes
from ..tokens import routes as token_routes

COMPONENTS: Final[Mapping[tuple[str, str], Component]] = MappingProxyType(
    {
        (component.kind, component.type): component
        for component in (
            system_routes.COMPONENT,
            token_routes.COMPONENT,
            auth_routes.COMPONENT,
            engine_routes.COMPONENT,
        )
    }
)
