"""The routes below `auth/token`."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ..messages import WRITE
from ..mounts import TOKEN
from ..routing import Component, RouteTable
from . import create, look_up, renewal, revocation, roles

ROUTES: Final = RouteTable(
    (
        create.create,
        create.create_orphan,
        create.create_for_role,
        look_up.look_up_self,
        evolve(look_up.look_up_self, operation=WRITE, doc="As the read."),
        look_up.look_up,
        evolve(look_up.look_up, operation=WRITE, doc="As the read."),
        look_up.look_up_accessor,
        renewal.renew_self,
        renewal.renew,
        renewal.renew_accessor,
        revocation.revoke_self,
        revocation.revoke,
        revocation.revoke_accessor,
        revocation.revoke_orphan,
        look_up.list_accessors,
        *roles.ROLES.routes("Registers or updates a role that tokens are created with."),
        revocation.tidy,
    )
)
COMPONENT: Final = Component(
    kind=TOKEN.kind,
    type=TOKEN.type,
    routes=ROUTES,
    doc="Tokens that are made with tokens, and what is done with any token.",
    token_terms=roles.token_terms,
)
