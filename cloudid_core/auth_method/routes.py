"""The routes of the authentication method."""

from __future__ import annotations

from typing import Final

from ..errors import Code
from ..messages import WRITE
from ..mounts import AUTH
from ..permissions import permissions_route
from ..rotation import release_former
from ..rotation import routes as rotation
from ..routing import PROVIDER, Answers, Component, Route, RouteTable
from . import config, explain, login, recheck, roles
from .form import LoginForm

ROUTES: Final = RouteTable(
    (
        Route(
            path="login",
            operation=WRITE,
            program=login.log_in,
            answers=Answers(token=True, refusals=(Code.LOGIN_REFUSED, *PROVIDER)),
            form=LoginForm,
            public=True,
            gives_token=True,
            requires_all=True,
            rests_on_view=True,
            role_field="role",
            doc="Logs in with the signed token of a machine, and returns a service token.",
        ),
        explain.explain_login,
        config.write_config,
        config.read_config,
        config.delete_config,
        *roles.ROLES.routes("Creates or updates a role."),
        permissions_route(roles.bound_scopes),
        *rotation.ROUTES,
    )
)
COMPONENT: Final = Component(
    kind=AUTH,
    type="cloud",
    routes=ROUTES,
    doc="Machines log in with the tokens of their managed identities.",
    token_terms=roles.token_terms,
    recheck=recheck.recheck,
    client=config.client,
    release=release_former,
    config=config.Config,
)
