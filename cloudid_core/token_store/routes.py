"""The routes below `auth/token`."""

from __future__ import annotations

from typing import Final

from ..forms import schemas
from ..messages import Operation
from ..mounts import TOKEN
from ..routing import Answers, Component, PageForm, Route, RouteTable
from . import create, look_up, renewal, revocation, roles, tidy
from .create_request import CreateForm
from .look_up import AccessorForm, TokenForm
from .renewal import IncrementForm, RenewAccessorForm, RenewForm
from .revocation import RevokeForm
from .roles import TokenRole

GIVES_TOKEN: Final = Answers(token=True)
TELLS: Final = Answers(data=look_up.MEMBERS)
ROUTES: Final = RouteTable(
    (
        Route(
            path="create",
            operation=Operation.WRITE,
            program=create.create,
            answers=GIVES_TOKEN,
            form=CreateForm,
            doc="Creates a child of the caller's token.",
        ),
        Route(
            path="create-orphan",
            operation=Operation.WRITE,
            program=create.create_orphan,
            answers=GIVES_TOKEN,
            form=CreateForm,
            doc="Creates a token without a parent.",
        ),
        Route(
            path="create/:role",
            operation=Operation.WRITE,
            program=create.create_for_role,
            answers=GIVES_TOKEN,
            form=CreateForm,
            doc="Creates a token under the rules of a role.",
        ),
        Route(
            path="lookup-self",
            operation=Operation.READ,
            program=look_up.look_up_self,
            answers=TELLS,
            doc="Tells what the service knows of the caller's token.",
        ),
        Route(
            path="lookup-self",
            operation=Operation.WRITE,
            program=look_up.look_up_self,
            answers=TELLS,
            doc="As the read.",
        ),
        Route(
            path="lookup",
            operation=Operation.READ,
            program=look_up.look_up,
            form=TokenForm,
            answers=TELLS,
            doc="Tells what the service knows of a token; without one, of the caller's.",
        ),
        Route(
            path="lookup",
            operation=Operation.WRITE,
            program=look_up.look_up,
            form=TokenForm,
            answers=TELLS,
            doc="As the read.",
        ),
        Route(
            path="lookup-accessor",
            operation=Operation.WRITE,
            program=look_up.look_up_accessor,
            form=AccessorForm,
            requires_all=True,
            answers=TELLS,
            doc="Tells what the service knows of the token with an accessor.",
        ),
        Route(
            path="renew-self",
            operation=Operation.WRITE,
            program=renewal.renew_self,
            answers=GIVES_TOKEN,
            form=IncrementForm,
            doc="Gives the caller's token more time.",
        ),
        Route(
            path="renew",
            operation=Operation.WRITE,
            program=renewal.renew,
            answers=GIVES_TOKEN,
            form=RenewForm,
            requires_all=True,
            doc="Gives a token more time.",
        ),
        Route(
            path="renew-accessor",
            operation=Operation.WRITE,
            program=renewal.renew_accessor,
            answers=GIVES_TOKEN,
            form=RenewAccessorForm,
            requires_all=True,
            doc="Gives the token with an accessor more time.",
        ),
        Route(
            path="revoke-self",
            operation=Operation.WRITE,
            program=revocation.revoke_self,
            doc="Ends the caller's token.",
        ),
        Route(
            path="revoke",
            operation=Operation.WRITE,
            program=revocation.revoke,
            form=RevokeForm,
            requires_all=True,
            doc="Ends a token with its children and leases.",
        ),
        Route(
            path="revoke-accessor",
            operation=Operation.WRITE,
            program=revocation.revoke_accessor,
            form=AccessorForm,
            requires_all=True,
            doc="Ends the token with an accessor, with its children and leases.",
        ),
        Route(
            path="revoke-orphan",
            operation=Operation.WRITE,
            program=revocation.revoke_orphan,
            form=RevokeForm,
            requires_all=True,
            doc="Ends a token and its leases; its children become orphans.",
        ),
        Route(
            path="accessors",
            operation=Operation.LIST,
            program=look_up.list_accessors,
            form=PageForm,
            pages=True,
            doc="Lists the accessors of all service tokens.",
        ),
        Route(
            path="roles/:name",
            operation=Operation.WRITE,
            program=roles.write_role,
            form=TokenRole,
            exists=roles.role_exists,
            doc="Registers or updates a role that tokens are created with.",
        ),
        Route(
            path="roles/:name",
            operation=Operation.READ,
            program=roles.read_role,
            answers=Answers(data=roles.MEMBERS),
            doc="Reads a role.",
        ),
        Route(path="roles/:name", operation=Operation.DELETE, program=roles.delete_role, doc="Removes a role."),
        Route(path="roles", operation=Operation.LIST, program=roles.list_roles, doc="Lists the names of all roles."),
        Route(
            path="tidy",
            operation=Operation.WRITE,
            program=tidy.tidy,
            answers=Answers(accepted=schemas.NULL),
            doc="Asks for dead tokens to be removed soon.",
        ),
    )
)
COMPONENT: Final = Component(
    kind=TOKEN.kind,
    type=TOKEN.type,
    routes=ROUTES,
    doc="Tokens that are made with tokens, and what is done with any token.",
    token_terms=roles.token_terms,
)
