"""Roles of the directory, and app roles of APIs, that principals have. They end with their principal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cloudid_core.effects import HttpResponse

from ..engine.behaviour import Replica
from ..engine.filters import Filterable
from ..engine.requests import Call, Json
from ..engine.routing import Route
from ..engine.shapes import Shape
from ..world.objects import APP_ROLES, DIRECTORY_ROLES, DirectoryRole, Grant, Principal
from ..world.world import World
from .conventions import (
    ROOT,
    answer,
    bad_request,
    find_for_write,
    list_objects,
    missing,
    no_content,
    read_body,
    read_object,
    require,
)

ROLE_BODY: Final[Shape] = {"roleDefinitionId": (str,), "principalId": (str,), "directoryScopeId": (str,)}
APP_ROLE_BODY: Final[Shape] = {"principalId": (str,), "resourceId": (str,), "appRoleId": (str,)}
DEFINITIONS: Final = Filterable(equals={"id": "id", "displayName": "display_name"})
ASSIGNMENTS: Final = Filterable(equals={"principalId": "principal_id", "roleDefinitionId": "role_id"})
NO_FILTER: Final = Filterable(equals={})


def show_definition(role: DirectoryRole) -> Json:
    return {"id": role.id, "displayName": role.display_name, "isBuiltIn": True, "isEnabled": True}


def show_assignment(grant: Grant) -> Json:
    return {
        "id": grant.id,
        "roleDefinitionId": grant.role_id,
        "principalId": grant.principal_id,
        "directoryScopeId": "/",
    }


def show_app_role_assignment(grant: Grant) -> Json:
    return {
        "id": grant.id,
        "appRoleId": grant.role_id,
        "principalId": grant.principal_id,
        "principalType": "ServicePrincipal",
        "resourceId": grant.resource_id,
    }


def list_definitions(world: World, call: Call) -> HttpResponse:
    return list_objects(world, call, DIRECTORY_ROLES.values(), DEFINITIONS, show_definition)


def read_definition(world: World, call: Call) -> HttpResponse:
    return answer(world, show_definition(require(DIRECTORY_ROLES.get(call.names["id"].lower()), call.names["id"])))


def list_assignments(world: World, call: Call) -> HttpResponse:
    found = [grant for grant in world.directory.grants.all(Replica.LISTS) if not grant.resource_id]
    return list_objects(world, call, found, ASSIGNMENTS, show_assignment)


def assign(world: World, call: Call) -> HttpResponse:
    body = read_body(call, ROLE_BODY)
    if body.get("directoryScopeId") != "/":
        raise bad_request("The directory scope is not supported.")
    role = require(DIRECTORY_ROLES.get(body.get("roleDefinitionId", "").lower()), body.get("roleDefinitionId", ""))
    principal = find_for_write(world.directory.principals, body.get("principalId", ""))
    return _grant(
        world,
        call,
        Grant(id="", principal_id=principal.id, role_id=role.id),
        "A conflicting object with one or more of the specified property values is present in the directory.",
        show_assignment,
    )


def list_app_role_assignments(world: World, call: Call) -> HttpResponse:
    principal = read_object(world.directory.principals, call)
    grants = world.directory.grants.all(Replica.LISTS)
    found = [grant for grant in grants if grant.resource_id and grant.principal_id == principal.id]
    return list_objects(world, call, found, NO_FILTER, show_app_role_assignment)


def assign_app_role(world: World, call: Call) -> HttpResponse:
    body, resource = read_body(call, APP_ROLE_BODY), read_object(world.directory.principals, call)
    role_id = body.get("appRoleId", "").lower()
    if body.get("resourceId", "").lower() != resource.id or role_id not in {role["id"] for role in app_roles(resource)}:
        raise bad_request("Permission being assigned was not found on application.")
    principal = world.directory.principals.get(body.get("principalId", "").lower(), Replica.WRITES)
    if principal is None or world.directory.principals.get(principal.id) is None:
        raise bad_request("Not a valid reference update.")
    return _grant(
        world,
        call,
        Grant(id="", principal_id=principal.id, role_id=role_id, resource_id=resource.id),
        "Permission being assigned already exists on the object.",
        show_app_role_assignment,
    )


def end(world: World, call: Call) -> HttpResponse:
    grant = world.directory.grants.get(call.names["grant"])
    if grant is None or grant.resource_id != call.names.get("id", "").lower():
        raise missing(call.names["grant"])
    world.directory.end_grant(grant)
    return no_content(world)


def _grant(world: World, call: Call, grant: Grant, taken: str, show: Callable[[Grant], Json]) -> HttpResponse:
    if any(each.content == grant.content for each in world.directory.grants.all()):
        raise bad_request(taken)
    return answer(world, show(world.directory.add_grant(grant, by=call.caller.client_id)), 201)


def app_roles(principal: Principal) -> list[Json]:
    """The roles that a principal gives to applications, where it is an API's."""
    return [
        {"id": role_id, "value": value, "displayName": value, "isEnabled": True, "allowedMemberTypes": ["Application"]}
        for role_id, value in APP_ROLES.get(principal.display_name, {}).items()
    ]


ROLES: Final = f"{ROOT}/roleManagement/directory"
PRINCIPAL: Final = f"{ROOT}/servicePrincipals/{{id}}"

ROUTES: Final = (
    Route("GET", f"{ROLES}/roleDefinitions", list_definitions),
    Route("GET", f"{ROLES}/roleDefinitions/{{id}}", read_definition),
    Route("GET", f"{ROLES}/roleAssignments", list_assignments),
    Route("POST", f"{ROLES}/roleAssignments", assign, writes=True),
    Route("DELETE", f"{ROLES}/roleAssignments/{{grant}}", end, writes=True),
    Route("GET", f"{PRINCIPAL}/appRoleAssignments", list_app_role_assignments),
    Route("POST", f"{PRINCIPAL}/appRoleAssignedTo", assign_app_role, writes=True),
    Route("DELETE", f"{PRINCIPAL}/appRoleAssignedTo/{{grant}}", end, writes=True),
)
