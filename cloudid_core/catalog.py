"""Everything that can be mounted, and the handler of every kind of background job."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .auth_method import routes as auth_routes
from .background import Handler
from .context import queue
from .issuer import publish
from .issuer import routes as issuer_routes
from .leases import end_intent, end_lease_when_due, end_token, wipe_mount
from .rotation import follow_plan, roll_over
from .rotation.advance import advance
from .routing import Catalog
from .secrets_engine import close_audience
from .secrets_engine import routes as engine_routes
from .system import routes as system_routes
from .token_store import routes as token_routes

CATALOG: Final = Catalog(
    (
        system_routes.COMPONENT,
        token_routes.COMPONENT,
        issuer_routes.COMPONENT,
        auth_routes.COMPONENT,
        engine_routes.COMPONENT,
    )
)
HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        queue.LEASE: end_lease_when_due,
        queue.INTENT: end_intent,
        queue.TOKEN: end_token,
        queue.ROTATION: advance,
        queue.MOUNT: wipe_mount,
        queue.ROTATION_PLAN: follow_plan,
        queue.SIGNING_KEY: roll_over,
        queue.PUBLICATION: publish,
        queue.AUDIENCE: close_audience,
    }
)
