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
            "create",
            Operation.WRITE,
            create.create,
            "Creates a child of the caller's token.",
            answers=GIVES_TOKEN,
            form=CreateForm,
        ),
        Route(
            "create-orphan",
            Operation.WRITE,
            create.create_orphan,
            "Creates a token without a parent.",
            answers=GIVES_TOKEN,
            form=CreateForm,
        ),
        Route(
            "create/:role",
            Operation.WRITE,
            create.create_for_role,
            "Creates a token under the rules of a role.",
            answers=GIVES_TOKEN,
            form=CreateForm,
        ),
        Route(
            "lookup-self",
            Operation.READ,
            look_up.look_up_self,
            "Tells what the service knows of the caller's token.",
            answers=TELLS,
        ),
        Route("lookup-self", Operation.WRITE, look_up.look_up_self, "As the read.", answers=TELLS),
        Route(
            "lookup",
            Operation.READ,
            look_up.look_up,
            "Tells what the service knows of a token; without one, of the caller's.",
            form=TokenForm,
            answers=TELLS,
        ),
        Route("lookup", Operation.WRITE, look_up.look_up, "As the read.", form=TokenForm, answers=TELLS),
        Route(
            "lookup-accessor",
            Operation.WRITE,
            look_up.look_up_accessor,
            "Tells what the service knows of the token with an accessor.",
            form=AccessorForm,
            requires_all=True,
            answers=TELLS,
        ),
        Route(
            "renew-self",
            Operation.WRITE,
            renewal.renew_self,
            "Gives the caller's token more time.",
            answers=GIVES_TOKEN,
            form=IncrementForm,
        ),
        Route(
            "renew",
            Operation.WRITE,
            renewal.renew,
            "Gives a token more time.",
            answers=GIVES_TOKEN,
            form=RenewForm,
            requires_all=True,
        ),
        Route(
            "renew-accessor",
            Operation.WRITE,
            renewal.renew_accessor,
            "Gives the token with an accessor more time.",
            answers=GIVES_TOKEN,
            form=RenewAccessorForm,
            requires_all=True,
        ),
        Route("revoke-self", Operation.WRITE, revocation.revoke_self, "Ends the caller's token."),
        Route(
            "revoke",
            Operation.WRITE,
            revocation.revoke,
            "Ends a token with its children and leases.",
            form=RevokeForm,
            requires_all=True,
        ),
        Route(
            "revoke-accessor",
            Operation.WRITE,
            revocation.revoke_accessor,
            "Ends the token with an accessor, with its children and leases.",
            form=AccessorForm,
            requires_all=True,
        ),
        Route(
            "revoke-orphan",
            Operation.WRITE,
            revocation.revoke_orphan,
            "Ends a token and its leases; its children become orphans.",
            form=RevokeForm,
            requires_all=True,
        ),
        Route(
            "accessors",
            Operation.LIST,
            look_up.list_accessors,
            "Lists the accessors of all service tokens.",
            form=PageForm,
            pages=True,
        ),
        Route(
            "roles/:name",
            Operation.WRITE,
            roles.write_role,
            "Registers or updates a role that tokens are created with.",
            form=TokenRole,
            exists=roles.role_exists,
        ),
        Route("roles/:name", Operation.READ, roles.read_role, "Reads a role.", answers=Answers(data=roles.MEMBERS)),
        Route("roles/:name", Operation.DELETE, roles.delete_role, "Removes a role."),
        Route("roles", Operation.LIST, roles.list_roles, "Lists the names of all roles."),
        Route(
            "tidy",
            Operation.WRITE,
            tidy.tidy,
            "Asks for dead tokens to be removed soon.",
            answers=Answers(accepted=schemas.NULL),
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
