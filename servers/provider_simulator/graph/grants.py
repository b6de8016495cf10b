"""Roles of the directory, and app roles of APIs, that principals have. They end with their principal."""

from __future__ import annotations

from typing import Final

from ..engine.behaviour import Replica
from ..engine.filters import Filterable
from ..engine.requests import Call, Json
from ..engine.routing import Created, Route
from ..engine.shapes import Members, Shape, show
from ..world.objects import APP_ROLES, DIRECTORY_ROLES, Grant, Principal
from ..world.world import World, fine_instant
from .conventions import ROOT, bad_request, find_for_write, list_objects, missing, read_body, read_object, require

ROLE_BODY: Final[Shape] = dict.fromkeys(("roleDefinitionId", "principalId", "directoryScopeId"), (str,))
APP_ROLE_BODY: Final[Shape] = dict.fromkeys(("principalId", "resourceId", "appRoleId"), (str,))

DEFINITION: Final[Members] = {
    "id": "id",
    "displayName": "display_name",
    "description": "display_name",
    "isBuiltIn": True,
    "isEnabled": True,
    "resourceScopes": ["/"],
    "templateId": "id",
    "version": lambda _: "1",
    "rolePermissions": [{"allowedResourceActions": ["microsoft.directory/applications/read"], "condition": None}],
    "inheritsPermissionsFrom": [],
}
ASSIGNMENT: Final[Members] = {
    "id": "id",
    "roleDefinitionId": "role_id",
    "principalId": "principal_id",
    "directoryScopeId": lambda _: "/",
}
APP_ROLE_ASSIGNMENT: Final[Members] = {
    "id": "id",
    "deletedDateTime": None,
    "appRoleId": "role_id",
    "createdDateTime": lambda one: fine_instant(one.created_at),
    "principalDisplayName": "principal_name",
    "principalId": "principal_id",
    "principalType": lambda _: "ServicePrincipal",
    "resourceDisplayName": "resource_name",
    "resourceId": "resource_id",
}


def list_definitions(world: World, call: Call) -> Json:
    return list_objects(world, call, DIRECTORY_ROLES.values(), Filterable(DEFINITION, "id displayName"))


def read_definition(world: World, call: Call) -> Json:
    return show(require(DIRECTORY_ROLES.get(call.names["id"].lower()), call.names["id"]), DEFINITION)


def list_assignments(world: World, call: Call) -> Json:
    found = (grant for grant in world.directory.grants.all(Replica.LISTS) if not grant.resource_id)
    return list_objects(world, call, found, Filterable(ASSIGNMENT, "principalId roleDefinitionId"))


def assign(world: World, call: Call) -> Created:
    body = read_body(call, ROLE_BODY)
    if body.get("directoryScopeId") != "/":
        raise bad_request("The directory scope is not supported.")
    role = require(DIRECTORY_ROLES.get(body.get("roleDefinitionId", "").lower()), body.get("roleDefinitionId", ""))
    principal = find_for_write(world.directory.principals, body.get("principalId", ""))
    taken = "A conflicting object with one or more of the specified property values is present in the directory."
    return _grant(world, call, Grant("", principal.id, role.id), taken, ASSIGNMENT)


def list_app_role_assignments(world: World, call: Call) -> Json:
    principal = read_object(world.directory.principals, call)
    grants = world.directory.grants.all(Replica.LISTS)
    found = (grant for grant in grants if grant.resource_id and grant.principal_id == principal.id)
    return list_objects(world, call, found, Filterable(APP_ROLE_ASSIGNMENT))


def assign_app_role(world: World, call: Call) -> Created:
    body, resource = read_body(call, APP_ROLE_BODY), read_object(world.directory.principals, call)
    role_id = body.get("appRoleId", "").lower()
    if body.get("resourceId", "").lower() != resource.id or role_id not in {role["id"] for role in app_roles(resource)}:
        raise bad_request("Permission being assigned was not found on application.")
    principal = world.directory.principals.get(body.get("principalId", "").lower(), Replica.WRITES)
    if principal is None or world.directory.principals.get(principal.id) is None:
        raise bad_request("Not a valid reference update.")
    names = {"principal_name": principal.display_name, "resource_name": resource.display_name}
    grant = Grant("", principal.id, role_id, resource.id, **names, created_at=world.now())
    return _grant(world, call, grant, "Permission being assigned already exists on the object.", APP_ROLE_ASSIGNMENT)


def _grant(world: World, call: Call, grant: Grant, taken: str, members: Members) -> Created:
    if any(each.content == grant.content for each in world.directory.grants.all()):
        raise bad_request(taken)
    return Created(show(world.directory.add_grant(grant, by=call.caller.client_id), members))


def end(world: World, call: Call) -> None:
    grant = require(world.directory.grants.get(call.names["grant"]), call.names["grant"])
    if grant.resource_id != call.names.get("id", "").lower():
        raise missing(call.names["grant"])
    world.directory.end_grant(grant)


def app_roles(principal: Principal) -> list[Json]:
    """The roles that a principal gives to applications, where it is an API's."""
    return [
        {
            "id": role_id,
            "value": value,
            "displayName": value,
            "description": value,
            "isEnabled": True,
            "origin": "Application",
            "allowedMemberTypes": ["Application"],
        }
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
