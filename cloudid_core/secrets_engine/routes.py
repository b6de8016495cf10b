"""The routes of the secrets engine."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ..messages import WRITE
from ..mounts import SECRET
from ..permissions import permissions_route
from ..rotation import routes as rotation
from ..routing import Component, RouteTable
from . import access_tokens, config, credentials, reconcile, roles, static_roles, stopped

ROUTES: Final = RouteTable(
    (
        config.write_config,
        config.read_config,
        config.delete_config,
        stopped.stopped_by_ceiling,
        roles.write_role,
        roles.read_role,
        roles.delete_role,
        roles.list_roles,
        credentials.generate_credentials,
        access_tokens.give_access_token,
        evolve(access_tokens.give_access_token, operation=WRITE),
        reconcile.report,
        reconcile.repair,
        permissions_route(roles.granted_scopes),
        *rotation.ROUTES,
        static_roles.write_static_role,
        static_roles.read_static_role,
        static_roles.delete_static_role,
        static_roles.list_static_roles,
        static_roles.read_credentials,
        access_tokens.give_static_token,
        static_roles.rotate_static_role,
    )
)
COMPONENT: Final = Component(
    kind=SECRET,
    type="cloud",
    routes=ROUTES,
    doc="Issues Azure service principals on request, under a lease.",
    lease_terms=roles.lease_terms,
    client=config.client,
    release=static_roles.release,
    count_kept=static_roles.count_kept,
    count_stopped=stopped.count_stopped,
    target=static_roles.target,
    config=config.Config,
    static_role=static_roles.StaticRole,
    may_rotate=static_roles.may_rotate,
)
