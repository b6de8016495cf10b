"""The routes of the authentication method."""

from __future__ import annotations

from typing import Final

from ..errors import Code
from ..messages import Operation
from ..mounts import AUTH
from ..permissions import permissions_route
from ..rotation import routes as rotation
from ..routing import PROVIDER, Answers, Component, Route, RouteTable
from . import config, explain, login, recheck, roles
from .explain import ExplainForm
from .form import LoginForm
from .roles import Role

ROUTES: Final = RouteTable(
    (
        Route(
            path="login",
            operation=Operation.WRITE,
            program=login.log_in,
            answers=Answers(token=True, refusals=(Code.LOGIN_REFUSED, *PROVIDER)),
            form=LoginForm,
            public=True,
            gives_token=True,
            requires_all=True,
            checks_mounts_itself=True,
            role_field="role",
            doc="Turns the signed identity of a machine into a service token.",
        ),
        Route(
            path="explain",
            operation=Operation.WRITE,
            program=explain.explain_login,
            answers=Answers(data=explain.MEMBERS, refusals=PROVIDER),
            form=ExplainForm,
            requires_all=True,
            role_field="role",
            doc="Tells every check of a login and its verdict; needs `sudo`, and never gives a token.",
        ),
        Route(
            path="config",
            operation=Operation.WRITE,
            program=config.write_config,
            form=config.ConfigForm,
            exists=config.config_exists,
            doc="Configures the method.",
        ),
        Route(
            path="config",
            operation=Operation.READ,
            program=config.read_config,
            answers=Answers(data=config.CONFIG_MEMBERS, refusals=(Code.NOT_FOUND,)),
            doc="Reads the stored configuration, `client_secret` included.",
        ),
        Route(
            path="config",
            operation=Operation.DELETE,
            program=config.delete_config,
            doc="Removes the configuration and its credentials.",
        ),
        Route(
            path="role/:name",
            operation=Operation.WRITE,
            program=roles.write_role,
            form=Role,
            exists=roles.role_exists,
            doc="Registers or updates a role.",
        ),
        Route(
            path="role/:name",
            operation=Operation.READ,
            program=roles.read_role,
            answers=Answers(data=roles.MEMBERS),
            doc="Reads a role.",
        ),
        Route(path="role/:name", operation=Operation.DELETE, program=roles.delete_role, doc="Removes a role."),
        Route(path="role", operation=Operation.LIST, program=roles.list_roles, doc="Lists the names of all roles."),
        permissions_route(roles.bound_scopes),
        *rotation.ROUTES,
    )
)
COMPONENT: Final = Component(
    kind=AUTH,
    type="cloud",
    routes=ROUTES,
    doc="Machines log in with the identity that their cloud signed for them.",
    token_terms=roles.token_terms,
    recheck=recheck.recheck,
    client=config.client,
    config=config.Config,
)
