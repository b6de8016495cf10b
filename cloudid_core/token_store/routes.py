"""The routes below `auth/token`."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ..messages import WRITE
from ..mounts import TOKEN
from ..routing import Component, RouteTable
from . import create, existing, roles

ROUTES: Final = RouteTable(
    (
        create.create,
        create.create_orphan,
        create.create_for_role,
        existing.look_up_self,
        evolve(existing.look_up_self, operation=WRITE, doc="Like the read."),
        existing.look_up,
        evolve(existing.look_up, operation=WRITE, doc="Like the read."),
        existing.look_up_accessor,
        existing.renew_self,
        existing.renew,
        existing.renew_accessor,
        existing.revoke_self,
        existing.revoke,
        existing.revoke_accessor,
        existing.revoke_orphan,
        existing.list_accessors,
        *roles.ROLES.routes("Creates or updates a role for creating tokens."),
        existing.tidy,
    )
)
COMPONENT: Final = Component(
    kind=TOKEN.kind,
    type=TOKEN.type,
    routes=ROUTES,
    doc="Creates, renews, revokes and looks up tokens.",
    token_terms=roles.token_terms,
)
