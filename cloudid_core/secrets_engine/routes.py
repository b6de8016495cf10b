"""The routes of the secrets engine."""

from __future__ import annotations

from typing import Final

from ..errors import Code
from ..forms import schemas
from ..messages import Operation
from ..mounts import SECRET
from ..permissions import permissions_route
from ..rotation import routes as rotation
from ..routing import LEFT, PROVIDER, Answers, Component, Route, RouteTable
from . import access_tokens, config, credentials, reconcile, roles, static_roles
from .config import ConfigForm, DeleteForm
from .roles import Role
from .static_roles import StaticRole

ROUTES: Final = RouteTable(
    (
        Route(
            path="config",
            operation=Operation.WRITE,
            program=config.write_config,
            answers=Answers(nothing=True, refusals=(Code.LEASES_ALIVE, *PROVIDER)),
            form=ConfigForm,
            exists=config.config_exists,
            names_provider_codes=True,
            doc="Configures the engine.",
        ),
        Route(
            path="config",
            operation=Operation.READ,
            program=config.read_config,
            answers=Answers(data=config.CONFIG_MEMBERS),
            doc="Reads the stored configuration, without its client secret.",
        ),
        Route(
            path="config",
            operation=Operation.DELETE,
            program=config.delete_config,
            answers=Answers(nothing=True, refusals=(Code.LEASES_ALIVE,)),
            form=DeleteForm,
            doc="Removes the configuration and its credentials.",
        ),
        Route(
            path="ceiling",
            operation=Operation.READ,
            program=roles.stopped_by_ceiling,
            answers=Answers(data=schemas.members(stopped=schemas.each(schemas.LIST), count=schemas.INTEGER)),
            doc="Lists the roles that give nothing under the present ceiling, and why.",
        ),
        Route(
            path="roles/:name",
            operation=Operation.WRITE,
            program=roles.write_role,
            answers=Answers(nothing=True, refusals=PROVIDER),
            form=Role,
            exists=roles.role_exists,
            doc="Registers or updates a role; what it refers to must exist.",
        ),
        Route(
            path="roles/:name",
            operation=Operation.READ,
            program=roles.read_role,
            answers=Answers(data=roles.MEMBERS),
            doc="Reads a role.",
        ),
        Route(
            path="roles/:name",
            operation=Operation.DELETE,
            program=roles.delete_role,
            answers=Answers(nothing=True, accepted=LEFT, refusals=(Code.NOT_FOUND, *PROVIDER)),
            form=roles.DeleteRoleForm,
            doc="Removes a role; its leases live on, unless they are to end too.",
        ),
        Route(path="roles", operation=Operation.LIST, program=roles.list_roles, doc="Lists the names of all roles."),
        Route(
            path="creds/:name",
            operation=Operation.READ,
            program=credentials.generate_credentials,
            answers=Answers(
                data=schemas.members(client_id=schemas.TEXT, client_secret=schemas.TEXT),
                lease=True,
                refusals=(Code.ROLE_CHANGE_PENDING, *PROVIDER),
            ),
            has_side_effect=True,
            doc="Gives the client id and secret of a service principal, under a lease.",
        ),
        *(
            Route(
                path="token/:name",
                operation=operation,
                program=access_tokens.give_access_token,
                form=access_tokens.TokenForm,
                answers=Answers(data=access_tokens.MEMBERS, refusals=(Code.ROLE_CHANGE_PENDING, *PROVIDER)),
                has_side_effect=True,
                doc="Gives an access token of the role's application, without a lease: nobody can call it back.",
            )
            for operation in (Operation.READ, Operation.WRITE)
        ),
        Route(
            path="reconcile",
            operation=Operation.READ,
            program=reconcile.report,
            answers=Answers(data=reconcile.MEMBERS, refusals=PROVIDER),
            doc="Lists objects at the provider that no record lists, and objects in records that are gone.",
        ),
        Route(
            path="reconcile",
            operation=Operation.WRITE,
            program=reconcile.repair,
            answers=Answers(data=reconcile.REPAIRED, accepted=reconcile.REPAIRED, refusals=PROVIDER),
            form=reconcile.RepairForm,
            doc="Removes objects that no record lists, and ends leases whose objects are gone.",
        ),
        permissions_route(roles.granted_scopes),
        *rotation.ROUTES,
        Route(
            path="static-roles/:name",
            operation=Operation.WRITE,
            program=static_roles.write_static_role,
            answers=Answers(nothing=True, refusals=PROVIDER),
            form=StaticRole,
            exists=static_roles.static_role_exists,
            doc="Registers or updates a static role: an application, and one proof of it that is rotated.",
        ),
        Route(
            path="static-roles/:name",
            operation=Operation.READ,
            program=static_roles.read_static_role,
            answers=Answers(data=static_roles.MEMBERS),
            doc="Reads a static role, and how its rotation stands.",
        ),
        Route(
            path="static-roles/:name",
            operation=Operation.DELETE,
            program=static_roles.delete_static_role,
            answers=Answers(nothing=True, refusals=(Code.NOT_FOUND, Code.ROLE_CHANGE_PENDING)),
            form=static_roles.DeleteForm,
            doc="Removes a static role; its secret works until its end, unless it is to be removed too.",
        ),
        Route(
            path="static-roles",
            operation=Operation.LIST,
            program=static_roles.list_static_roles,
            doc="Lists the names of all static roles.",
        ),
        Route(
            path="static-creds/:name",
            operation=Operation.READ,
            program=static_roles.read_credentials,
            answers=Answers(data=static_roles.CREDENTIALS),
            doc="Gives the client id and secret of a static role with the `proof` `secret`, without a lease.",
        ),
        Route(
            path="static-creds/:name/token",
            operation=Operation.WRITE,
            program=access_tokens.give_static_token,
            form=access_tokens.TokenForm,
            answers=Answers(data=access_tokens.MEMBERS, refusals=PROVIDER),
            doc="Gives an access token of the static role's application, without a lease: nobody can call it back.",
        ),
        Route(
            path="rotate-role/:name",
            operation=Operation.WRITE,
            program=static_roles.rotate_static_role,
            answers=Answers(nothing=True, accepted=schemas.members(rotation=schemas.TEXT), refusals=PROVIDER),
            form=rotation.RotateForm,
            names_provider_codes=True,
            doc="Replaces what the application of a static role proves itself with.",
        ),
    )
)
COMPONENT: Final = Component(
    kind=SECRET,
    type="cloud",
    routes=ROUTES,
    doc="Service principals on request, under a lease.",
    lease_terms=roles.lease_terms,
    client=config.client,
    release=static_roles.release,
    count_kept=static_roles.count_kept,
    target=static_roles.target,
    config=config.Config,
    static_role=StaticRole,
    may_rotate=static_roles.may_rotate,
)
