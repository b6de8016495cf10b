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
        evolve(existing.look_up_self, operation=WRITE, doc="As the read."),
        existing.look_up,
        evolve(existing.look_up, operation=WRITE, doc="As the read."),
        existing.look_up_accessor,
        existing.renew_self,
        existing.renew,
        existing.renew_accessor,
        existing.revoke_self,
        existing.revoke,
        existing.revoke_accessor,
        existing.revoke_orphan,
        existing.list_accessors,
        *roles.ROLES.routes("Registers or updates a role that tokens are created with."),
        existing.tidy,
    )
)
COMPONENT: Final = Component(
    kind=TOKEN.kind,
    type=TOKEN.type,
    routes=ROUTES,
    doc="Tokens that are made with tokens, and what is done with any token.",
    token_terms=roles.token_terms,
)
