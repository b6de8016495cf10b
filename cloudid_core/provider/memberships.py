"""Memberships: the groups, directory roles and app roles of a service principal.

They end with the service principal. Each kind is a row that defines how it is added and removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Final

import msgspec
from attrs import frozen

from ..effects import Program
from ..errors import ProviderProblem
from ..forms import Json
from ..values import fold
from .client import Client, pages
from .groups import add_member, remove_member
from .objects import Id, address, delete, directory_call, find_by_id, literal, select
from .propagation import FreshObject
from .responses import is_absent, unless

_ROLES: Final = "roleManagement/directory/roleDefinitions"
_ROLE_ASSIGNMENTS: Final = "roleManagement/directory/roleAssignments"
_Link = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_-]{1,128}\Z")]


class DirectoryRole(msgspec.Struct, rename="camel", frozen=True):
    """A role definition of Microsoft Entra ID."""

    id: Id
    display_name: str


class AppRole(msgspec.Struct, rename="camel", frozen=True):
    """An app role of an API. `value` is its name in tokens."""

    id: Id
    value: str | None = None
    is_enabled: bool = True
    allowed_member_types: tuple[str, ...] = ()


class Api(msgspec.Struct, rename="camel", frozen=True):
    """The service principal of an API, and its app roles."""

    id: Id
    display_name: str | None = None
    app_roles: tuple[AppRole, ...] = ()


class _RoleAssignment(msgspec.Struct, rename="camel"):
    id: _Link
    role_definition_id: str


class _AppRoleAssignment(msgspec.Struct, rename="camel"):
    id: _Link
    resource_id: str
    app_role_id: str


async def directory_role(client: Client, role_id: str) -> DirectoryRole | None:
    return await find_by_id(client, _ROLES, role_id, DirectoryRole)


async def directory_roles_by_name(client: Client, name: str) -> list[DirectoryRole]:
    return await select(client, _ROLES, f"displayName eq {literal(name)}", DirectoryRole)


async def api(client: Client, object_id: str) -> Api | None:
    return await find_by_id(client, "servicePrincipals", object_id, Api)


async def apis_by_name(client: Client, name: str) -> list[Api]:
    return await select(client, "servicePrincipals", f"displayName eq {literal(name)}", Api)


async def add_directory_role(client: Client, role_id: str, principal_id: str) -> None:
    """Assign a role in the whole tenant. Does nothing if it is already assigned."""
    body: dict[str, Json] = {"roleDefinitionId": role_id, "principalId": principal_id, "directoryScopeId": "/"}
    target = address(client, *_ROLE_ASSIGNMENTS.split("/"))
    await _assign(client, target, body, partial(_role_assignments, client, role_id, principal_id))


async def remove_directory_role(client: Client, role_id: str, principal_id: str) -> bool:
    """Remove the assignments of a role to a principal. Return `False` if there is none."""
    found = await _role_assignments(client, role_id, principal_id)
    return any([await delete(client, address(client, *_ROLE_ASSIGNMENTS.split("/"), each)) for each in found])


async def add_app_role(client: Client, pair: str, principal_id: str) -> None:
    """Assign an app role, given as `api/role` by their ids. Does nothing if it is already assigned."""
    resource, _, role = pair.partition("/")
    body: dict[str, Json] = {"principalId": principal_id, "resourceId": resource, "appRoleId": role}
    assigned = partial(_app_role_assignments, client, pair, principal_id)
    await _assign(client, _assigned_to(client, pair), body, assigned)


async def remove_app_role(client: Client, pair: str, principal_id: str) -> bool:
    """Remove the assignments of an app role to a principal. Return `False` if there is none."""
    found = await _app_role_assignments(client, pair, principal_id)
    return any([await delete(client, _assigned_to(client, pair, each)) for each in found])


async def _assign(
    client: Client, target: str, body: dict[str, Json], assigned: Callable[[], Program[list[str]]]
) -> None:
    try:
        await client.call(directory_call(client, "POST", target, body))
    except ProviderProblem as problem:
        # What the directory says of an assignment that is there, it also says of other mistakes.
        if problem.status not in (400, 409) or not await assigned():
            raise


async def _role_assignments(client: Client, role_id: str, principal_id: str) -> list[str]:
    found = await select(client, _ROLE_ASSIGNMENTS, f"principalId eq {literal(principal_id)}", _RoleAssignment)
    return [each.id for each in found if fold(each.role_definition_id) == fold(role_id)]


async def _app_role_assignments(client: Client, pair: str, principal_id: str) -> list[str]:
    listing = address(client, "servicePrincipals", principal_id, "appRoleAssignments")
    found = await unless(is_absent, pages(client, listing, client.cloud.directory_scope, _AppRoleAssignment), None)
    return [each.id for each in found or () if fold(f"{each.resource_id}/{each.app_role_id}") == fold(pair)]


def _assigned_to(client: Client, pair: str, *assignment: str) -> str:
    return address(client, "servicePrincipals", pair.partition("/")[0], "appRoleAssignedTo", *assignment)


@frozen(kw_only=True)
class Membership:
    """A kind of membership. `family` defines which errors of a new principal are retried."""

    what: str
    family: FreshObject
    add: Callable[[Client, str, str], Program[None]]
    remove: Callable[[Client, str, str], Program[bool]]


MEMBERSHIPS: Final[Mapping[str, Membership]] = {
    "groups": Membership(what="membership", family=FreshObject.MEMBERSHIP, add=add_member, remove=remove_member),
    "directory_roles": Membership(
        what="directory role", family=FreshObject.DIRECTORY_ROLE, add=add_directory_role, remove=remove_directory_role
    ),
    "app_roles": Membership(
        what="app role", family=FreshObject.DIRECTORY_ROLE, add=add_app_role, remove=remove_app_role
    ),
}
"""The kinds by the field of `Provisioned` that lists their ids. The id of an app role is `api/role`."""
