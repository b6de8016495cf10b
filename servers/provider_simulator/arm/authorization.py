"""Role definitions and role assignments."""

from __future__ import annotations

import re
from typing import Final

from ..engine.behaviour import Replica
from ..engine.filters import Filterable
from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Created, Route
from ..engine.shapes import NOTHING, OPTIONAL_TEXT, Shape, require_object, require_texts
from ..world.access import covers, granted, subscription_of
from ..world.roles import RoleAssignment, RoleDefinition
from ..world.world import World, instant
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
PERMISSIONS: Final[Shape] = dict.fromkeys(("actions", "notActions", "dataActions", "notDataActions"), (list,))
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
    return list_items(world, call, [_show_definition(each, scope) for each in selected], with_null=True)


def read_definition(world: World, call: Call) -> Json:
    scope = require_scope(world, call)
    return _show_definition(_definition(world, scope, call.names["id"]), scope)


def put_definition(world: World, call: Call) -> Created:
    """Make a custom role, or change it."""
    if not GUID.fullmatch(call.names["id"]):
        raise Refusal(400, "InvalidRoleDefinitionId", "The name of a role definition must be a GUID.")
    properties = _read_properties(call, DEFINITION_PROPERTIES)
    if not ({"roleName", "assignableScopes"} <= properties.keys() and len(properties.get("permissions", ())) == 1):
        message = "'roleName', 'assignableScopes' and one of 'permissions' are required."
        raise Refusal(400, "InvalidRequestContent", message)
    permissions = require_object(properties["permissions"][0], PERMISSIONS, "'permissions'")
    definition = RoleDefinition(
        call.names["id"].lower(),
        properties["roleName"],
        require_texts(permissions.get("actions", []), "'actions'"),
        require_texts(permissions.get("dataActions", []), "'dataActions'"),
        require_texts(properties["assignableScopes"], "'assignableScopes'"),
        require_texts(permissions.get("notActions", []), "'notActions'"),
    )
    others = (each for each in world.role_definitions.values() if each.guid != definition.guid)
    if definition.role_name in (each.role_name for each in others):
        message = "A role definition cannot be updated with a name that already exists."
        raise Refusal(409, "RoleDefinitionWithSameNameExists", message)
    world.role_definitions[definition.guid] = definition
    return Created(_show_definition(definition, require_scope(world, call)))


def list_permissions(world: World, call: Call) -> Json:
    """What the caller may do at the scope."""
    definitions = granted(world, call.caller.object_id, require_scope(world, call))
    shown = [{"actions": each.actions, "notActions": each.not_actions} for each in definitions]
    return list_items(world, call, shown, with_null=True)


def list_assignments(world: World, call: Call) -> Json:
    """The assignments at a scope, above it, and (unless the filter has `atScope()`) below it."""
    scope = require_scope(world, call)
    condition = call.query.get("$filter", "")
    at_scope = AT_SCOPE.match(condition)
    found = [
        each
        for each in _select_assignments(world, condition[at_scope.end() :] if at_scope else condition)
        if covers(each.scope, scope) or (not at_scope and covers(scope, each.scope))
    ]
    return list_items(world, call, [_show_assignment(each) for each in found], with_null=True)


def _select_assignments(world: World, condition: str) -> list[RoleAssignment]:
    """The assignments of a principal: its own, or with `assignedTo` also those of its groups."""
    assignments = world.role_assignments.table.all(Replica.LISTS)
    if match := ASSIGNED_TO.fullmatch(condition):
        principal = match[1].lower()
        principals = {principal, *(group.id for group in world.directory.groups_of(principal))}
        return [each for each in assignments if each.principal_id in principals]
    return ASSIGNMENT_FIELDS.select(assignments, condition.strip() or None)


def read_assignment(world: World, call: Call) -> Json:
    assignment = _assignment(world, call)
    if assignment is None:
        raise Refusal(404, "RoleAssignmentNotFound", "The role assignment is not found.")
    return _show_assignment(assignment)


def delete_assignment(world: World, call: Call) -> Json | None:
    """Delete the assignment and show it; 204 if there is none."""
    assignment = _assignment(world, call)
    if assignment is None:
        return None
    world.role_assignments.remove(assignment)
    world.ledger.note_deleted(assignment.path)
    return _show_assignment(assignment)


def put_assignment(world: World, call: Call) -> Json | Created:
    existing, wanted = _assignment(world, call), _read_assignment(world, call)
    if existing is not None:
        if existing.content != wanted.content:
            message = "Tenant ID, application ID, principal ID, and scope are not allowed to be updated."
            raise Refusal(400, "RoleAssignmentUpdateNotPermitted", message)
        if world.behaviour.replay_conflict:
            raise _exists()
        return _show_assignment(existing)
    if wanted.content in (each.content for each in world.role_assignments.of(wanted.principal_id)):
        raise _exists()
    subscription = subscription_of(wanted.scope)
    quota, assignments = world.behaviour.quotas["assignments"], world.role_assignments
    # Counting is slow, so it is done only if the quota could be exceeded.
    within = (covers(subscription, each.scope) for each in assignments.table.all() if subscription)
    if subscription and assignments.table.count >= quota <= sum(within):
        message = "No more role assignments can be created in the subscription."
        raise Refusal(400, "RoleAssignmentLimitExceeded", message)
    assignments.add(wanted)
    world.ledger.record(wanted.made_by, "assignment", wanted.path, (wanted.principal_id,))
    return Created(_show_assignment(wanted))


def _exists() -> Refusal:
    return Refusal(409, "RoleAssignmentExists", "The role assignment already exists.")


def _assignment(world: World, call: Call) -> RoleAssignment | None:
    """The assignment that the path names, if there is one."""
    scope = require_scope(world, call).rstrip("/")
    return world.role_assignments.table.get(f"{scope}{PROVIDER}/roleAssignments/{call.names['id']}".lower())


def _read_assignment(world: World, call: Call) -> RoleAssignment:
    """The assignment that the request describes; `Refusal` if it is not valid."""
    if not GUID.fullmatch(call.names["id"]):
        raise Refusal(400, "InvalidRoleAssignmentId", "The name of a role assignment must be a GUID.")
    properties = _read_properties(call, PROPERTIES)
    if not {"roleDefinitionId", "principalId"} <= properties.keys():
        raise Refusal(400, "InvalidRequestContent", "'roleDefinitionId' and 'principalId' are required.")
    scope = require_scope(world, call)
    match = DEFINITION.fullmatch(properties["roleDefinitionId"])
    if match is None:
        raise Refusal(400, "InvalidRoleDefinitionId", "The role definition ID is not valid.")
    principal_id = properties["principalId"].lower()
    kind = _principal_kind(world, principal_id)
    if (properties.get("principalType") or kind) != kind:
        raise Refusal(400, "UnmatchedPrincipalType", "The principal has another type than the request says.")
    return RoleAssignment(
        guid=call.names["id"].lower(),
        scope=scope,
        definition=_definition(world, scope, match[2]).guid,
        principal_id=principal_id,
        principal_kind=kind,
        made_at=world.now(),
        made_by=call.caller.client_id,
    )


def _read_properties(call: Call, shape: Shape) -> Json:
    return require_object(require_object(call.json(), BODY, "the body").get("properties"), shape, "'properties'")


def _principal_kind(world: World, principal_id: str) -> str:
    if world.directory.principals.get(principal_id, Replica.ASSIGNMENTS) is not None:
        return "ServicePrincipal"
    if world.directory.groups.get(principal_id, Replica.ASSIGNMENTS) is not None:
        return "Group"
    message = f"Principal {principal_id} does not exist in the directory {world.tenant_id}."
    raise Refusal(400, "PrincipalNotFound", message)


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
    permissions = {
        "actions": definition.actions,
        "notActions": definition.not_actions,
        "dataActions": definition.data_actions,
        "notDataActions": [],
    }
    return {
        "id": _definition_id(definition.guid, scope),
        "name": definition.guid,
        "type": "Microsoft.Authorization/roleDefinitions",
        "properties": {
            "roleName": definition.role_name,
            "type": definition.kind,
            "description": "",
            "assignableScopes": definition.assignable_scopes,
            "permissions": [permissions],
        },
    }


def _show_assignment(assignment: RoleAssignment) -> Json:
    at = instant(assignment.made_at)
    return {
        "id": assignment.path,
        "name": assignment.guid,
        "type": "Microsoft.Authorization/roleAssignments",
        "properties": {
            "roleDefinitionId": _definition_id(assignment.definition, assignment.scope),
            "principalId": assignment.principal_id,
            "principalType": assignment.principal_kind,
            "scope": assignment.scope,
            "condition": None,
            "createdOn": at,
            "updatedOn": at,
            "createdBy": assignment.made_by,
        },
    }


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
