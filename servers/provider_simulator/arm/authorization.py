"""Role definitions and role assignments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..engine.behaviour import Replica
from ..engine.filters import Filterable
from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Created, Route
from ..engine.shapes import NOTHING, OPTIONAL_TEXT, Shape, require_object, require_texts
from ..world.access import covers, granted, subscription_of
from ..world.roles import RoleAssignment, RoleDefinition
from ..world.world import World, fine_instant
from .conventions import list_items, require_scope

PROVIDER: Final = "/providers/Microsoft.Authorization"
GUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
DEFINITION: Final = re.compile(r"(.*)/providers/Microsoft\.Authorization/roleDefinitions/([^/]+)", re.IGNORECASE)
AT_SCOPE: Final = re.compile(r"\s*atScope\(\)\s*(?:\band\b|$)", re.IGNORECASE)
ASSIGNED_TO: Final = re.compile(r"\s*assignedTo\(\s*'([0-9a-f-]{36})'\s*\)\s*", re.IGNORECASE)

DEFINITION_FIELDS: Final = Filterable({"roleName": "role_name", "type": "kind"}, "roleName type")
ASSIGNMENT_FIELDS: Final = Filterable({"principalId": "principal_id"}, "principalId")

BODY: Final[Shape] = {"properties": (dict,)}
DEFINITION_PROPERTIES: Final[Shape] = {
    "roleName": (str,),
    **dict.fromkeys(("description", "type"), OPTIONAL_TEXT),
    **dict.fromkeys(("assignableScopes", "permissions"), (list,)),
}
PERMISSIONS: Final[Shape] = dict.fromkeys(("actions", "dataActions", "notActions", "notDataActions"), (list,))
PROPERTIES: Final[Shape] = {
    **dict.fromkeys(("roleDefinitionId", "principalId"), (str,)),
    **dict.fromkeys(("principalType", "description"), OPTIONAL_TEXT),
    **dict.fromkeys(("condition", "conditionVersion", "delegatedManagedIdentityResourceId"), (NOTHING,)),
}


def list_definitions(world: World, call: Call) -> Json:
    """The definitions that can be assigned at a scope."""
    scope = require_scope(world, call)
    usable = (each for each in world.role_definitions.values() if _is_assignable(each, scope))
    selected = DEFINITION_FIELDS.select(usable, call.query.get("$filter"))
    return list_items(world, call, [_show_definition(each, scope) for each in selected])


def read_definition(world: World, call: Call) -> Json:
    scope = require_scope(world, call)
    return _show_definition(_definition(world, scope, call.names["id"]), scope)


def put_definition(world: World, call: Call) -> Created:
    """Make a custom role, or change it."""
    given = _read_properties(call, DEFINITION_PROPERTIES, "InvalidRoleDefinitionId", "role definition")
    if not ({"roleName", "assignableScopes"} <= given.keys() and len(given.get("permissions", ())) == 1):
        message = "'roleName', 'assignableScopes' and one of 'permissions' are required."
        raise Refusal(400, "InvalidRequestContent", message)
    permissions = require_object(given["permissions"][0], PERMISSIONS, "'permissions'")
    actions, data_actions, not_actions, not_data_actions = (
        require_texts(permissions.get(name, []), f"'{name}'") for name in PERMISSIONS
    )
    scopes = require_texts(given["assignableScopes"], "'assignableScopes'")
    guid, name = call.names["id"].lower(), given["roleName"]
    if any(each.role_name == name and each.guid != guid for each in world.role_definitions.values()):
        message = "A role definition cannot be updated with a name that already exists."
        raise Refusal(409, "RoleDefinitionWithSameNameExists", message)
    before = world.role_definitions.get(guid)
    made = world.role_definitions[guid] = RoleDefinition(
        guid,
        name,
        actions,
        data_actions,
        scopes,
        not_actions,
        not_data_actions,
        description=given.get("description") or "",
        created_at=before.created_at if before else world.now(),
        updated_at=world.now(),
        updated_by=call.caller.object_id,
    )
    return Created(_show_definition(made, require_scope(world, call)))


def list_permissions(world: World, call: Call) -> Json:
    """What the caller may do at the scope."""
    definitions = granted(world, call.caller.object_id, require_scope(world, call))
    return list_items(world, call, [_show_actions(each) for each in definitions])


def list_assignments(world: World, call: Call) -> Json:
    """The assignments at a scope, above it, and (unless the filter has `atScope()`) below it.

    Those of a principal are its own, or with `assignedTo` also those of its groups.
    """
    scope, condition = require_scope(world, call), call.query.get("$filter", "")
    if at_scope := AT_SCOPE.match(condition):
        condition = condition[at_scope.end() :]
    found: Iterable[RoleAssignment] = world.role_assignments.table.all(Replica.LISTS)
    if match := ASSIGNED_TO.fullmatch(condition):
        principal = match[1].lower()
        principals = {principal, *(group.id for group in world.directory.groups_of(principal))}
        found = (each for each in found if each.principal_id in principals)
    else:
        found = ASSIGNMENT_FIELDS.select(found, condition.strip() or None)
    inside = (each for each in found if covers(each.scope, scope) or (not at_scope and covers(scope, each.scope)))
    return list_items(world, call, [_show_assignment(each) for each in inside])


def read_assignment(world: World, call: Call) -> Json:
    if assignment := _assignment(world, call):
        return _show_assignment(assignment)
    raise Refusal(404, "RoleAssignmentNotFound", "The role assignment is not found.")


def delete_assignment(world: World, call: Call) -> Json | None:
    """Delete the assignment and show it; 204 if there is none."""
    assignment = _assignment(world, call)
    if assignment is None:
        return None
    world.role_assignments.remove(assignment)
    world.ledger.note_deleted(assignment.path)
    return _show_assignment(assignment)


def put_assignment(world: World, call: Call) -> Json | Created:
    existing, wanted, assignments = _assignment(world, call), _read_assignment(world, call), world.role_assignments
    if existing is not None and existing.content != wanted.content:
        message = "Tenant ID, application ID, principal ID, and scope are not allowed to be updated."
        raise Refusal(400, "RoleAssignmentUpdateNotPermitted", message)
    if existing is not None and not world.behaviour.replay_conflict:
        return _show_assignment(existing)
    if any(each.content == wanted.content for each in assignments.of(wanted.principal_id)):
        raise Refusal(409, "RoleAssignmentExists", "The role assignment already exists.")
    subscription, quota = subscription_of(wanted.scope), world.behaviour.quotas["assignments"]
    if subscription and assignments.table.count >= quota:  # else there is no need to count, which is slow
        within = sum(covers(subscription, each.scope) for each in assignments.table.all())
        if within >= quota:
            message = "No more role assignments can be created in the subscription."
            raise Refusal(400, "RoleAssignmentLimitExceeded", message)
    assignments.add(wanted)
    world.ledger.record(call.caller.client_id, "assignment", wanted.path, (wanted.principal_id,))
    return Created(_show_assignment(wanted))


def _assignment(world: World, call: Call) -> RoleAssignment | None:
    """The assignment that the path names, if there is one."""
    scope = require_scope(world, call).rstrip("/")
    return world.role_assignments.table.get(f"{scope}{PROVIDER}/roleAssignments/{call.names['id']}".lower())


def _read_assignment(world: World, call: Call) -> RoleAssignment:
    """The assignment that the request describes; `Refusal` if it is not valid."""
    properties = _read_properties(call, PROPERTIES, "InvalidRoleAssignmentId", "role assignment")
    if not {"roleDefinitionId", "principalId"} <= properties.keys():
        raise Refusal(400, "InvalidRequestContent", "'roleDefinitionId' and 'principalId' are required.")
    scope = require_scope(world, call)
    match = DEFINITION.fullmatch(properties["roleDefinitionId"])
    if match is None:
        raise Refusal(400, "InvalidRoleDefinitionId", "The role definition ID is not valid.")
    principal_id, directory = properties["principalId"].lower(), world.directory
    if directory.principals.get(principal_id, Replica.ASSIGNMENTS) is not None:
        kind = "ServicePrincipal"
    elif directory.groups.get(principal_id, Replica.ASSIGNMENTS) is not None:
        kind = "Group"
    else:
        plain = principal_id.replace("-", "")
        message = f"Principal {plain} does not exist in the directory {world.tenant_id}."
        raise Refusal(400, "PrincipalNotFound", message)
    if (properties.get("principalType") or kind) != kind:
        raise Refusal(400, "UnmatchedPrincipalType", "The principal has another type than the request says.")
    definition = _definition(world, scope, match[2]).guid
    guid, by, about = call.names["id"].lower(), call.caller.object_id, properties.get("description")
    return RoleAssignment(guid, scope, definition, principal_id, kind, world.now(), by, about)


def _read_properties(call: Call, shape: Shape, code: str, what: str) -> Json:
    """The properties in the body of a request for an object whose name is a GUID."""
    if not GUID.fullmatch(call.names["id"]):
        raise Refusal(400, code, f"The name of a {what} must be a GUID.")
    return require_object(require_object(call.json(), BODY, "the body").get("properties"), shape, "'properties'")


def _definition(world: World, scope: str, guid: str) -> RoleDefinition:
    """The definition, which can be assigned at the scope; at the root, any definition is found."""
    found = world.role_definitions.get(guid.lower())
    if found is None or (scope != "/" and not _is_assignable(found, scope)):
        raise Refusal(404, "RoleDefinitionDoesNotExist", "The specified role definition does not exist.")
    return found


def _is_assignable(definition: RoleDefinition, scope: str) -> bool:
    return any(covers(outer, scope) for outer in definition.assignable_scopes)


def _definition_id(guid: str, scope: str) -> str:
    return f"{subscription_of(scope) or ''}{PROVIDER}/roleDefinitions/{guid}"


def _show_definition(definition: RoleDefinition, scope: str) -> Json:
    properties = {
        "roleName": definition.role_name,
        "type": definition.kind,
        "description": definition.description,
        "assignableScopes": definition.assignable_scopes,
        "permissions": [_show_actions(definition)],
        "createdOn": fine_instant(definition.created_at),
        "updatedOn": fine_instant(definition.updated_at),
        "createdBy": None,
        "updatedBy": definition.updated_by,
    }
    own = {"id": _definition_id(definition.guid, scope), "name": definition.guid}
    return {**own, "type": "Microsoft.Authorization/roleDefinitions", "properties": properties}


def _show_actions(definition: RoleDefinition) -> Json:
    return {
        "actions": definition.actions,
        "notActions": definition.not_actions,
        "dataActions": definition.data_actions,
        "notDataActions": definition.not_data_actions,
    }


def _show_assignment(assignment: RoleAssignment) -> Json:
    at = fine_instant(assignment.made_at)
    properties = {
        "roleDefinitionId": _definition_id(assignment.definition, assignment.scope),
        "principalId": assignment.principal_id,
        "principalType": assignment.principal_kind,
        "scope": assignment.scope,
        "condition": None,
        "conditionVersion": None,
        "createdOn": at,
        "updatedOn": at,
        "createdBy": assignment.made_by,
        "updatedBy": assignment.made_by,
        "delegatedManagedIdentityResourceId": None,
        "description": assignment.description,
    }
    own = {"id": assignment.path, "name": assignment.guid}
    return {**own, "type": "Microsoft.Authorization/roleAssignments", "properties": properties}


ROUTES: Final = tuple(
    route
    for prefix in ("/arm{scope...}", "/arm")  # without a scope: the root
    for route in (
        Route("GET", f"{prefix}{PROVIDER}/permissions", list_permissions),
        Route("GET", f"{prefix}{PROVIDER}/roleDefinitions", list_definitions),
        Route("GET", f"{prefix}{PROVIDER}/roleDefinitions/{{id}}", read_definition),
        Route("PUT", f"{prefix}{PROVIDER}/roleDefinitions/{{id}}", put_definition, writes=True),
        Route("GET", f"{prefix}{PROVIDER}/roleAssignments", list_assignments),
        Route("GET", f"{prefix}{PROVIDER}/roleAssignments/{{id}}", read_assignment),
        Route("PUT", f"{prefix}{PROVIDER}/roleAssignments/{{id}}", put_assignment, writes=True),
        Route("DELETE", f"{prefix}{PROVIDER}/roleAssignments/{{id}}", delete_assignment, writes=True),
    )
)
