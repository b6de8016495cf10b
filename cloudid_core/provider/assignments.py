"""Role assignments of Azure Resource Manager, their role definitions, and their scopes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from attrs import frozen

from ..errors import ProviderProblem
from ..values import GUID, PROVIDER, RESOURCE, RESOURCE_GROUP, fold
from .client import ApiCall, Client, get_json, pages
from .objects import literal
from .responses import is_absent, unless
from .urls import url

VERSION: Final = "2022-04-01"
EXISTS: Final = (409, "RoleAssignmentExists")

_AUTHORIZATION: Final = "/providers/Microsoft.Authorization"
_DEFINITION: Final = re.compile(
    r"(?s:(.*))/providers/Microsoft\.Authorization/roleDefinitions/([0-9A-Fa-f-]{36})", re.ASCII | re.IGNORECASE
)
_MANAGEMENT_GROUPS: Final = "/providers/microsoft.management/managementgroups/"
_LONGEST: Final = 2048
_SCOPE: Final = re.compile(
    rf"{_MANAGEMENT_GROUPS}[a-z0-9_().-]{{0,89}}[a-z0-9_()-]"
    rf"|{PROVIDER.pattern}"
    rf"|(?!{_MANAGEMENT_GROUPS})(?:/subscriptions/{GUID.pattern}(?:/resourcegroups/{RESOURCE_GROUP.pattern})?)?"
    rf"(?:{RESOURCE.pattern}){{0,4}}"
)
"""A scope in lower case, without a trailing slash. The empty text is the tenant's root."""

_NOT_A_SCOPE: Final = (
    'must be "/" or the id of a subscription, resource group, resource, management group or resource provider'
)
_NOT_A_DEFINITION: Final = "must be the id of a role definition: [scope]/providers/Microsoft.Authorization/…/{guid}"


@frozen
class RoleDefinition:
    """A role definition: its full id, display name and allowed actions, in which `*` matches any text."""

    id: str
    name: str
    actions: tuple[str, ...] = ()


class _Permission(msgspec.Struct):
    actions: tuple[str, ...] = ()


class _Properties(msgspec.Struct, rename="camel"):
    role_name: str
    permissions: tuple[_Permission, ...] = ()


class AssignmentProperties(msgspec.Struct, rename="camel"):
    role_definition_id: str
    scope: str
    principal_id: str = ""


class Assignment(msgspec.Struct):
    """A role assignment as Azure shows it. Its id is its path."""

    id: str
    properties: AssignmentProperties


class _Definition(msgspec.Struct):
    id: str
    properties: _Properties


def scope(text: object) -> str:
    """Return a scope without its trailing slash. Nothing is decoded or repaired. Raise `ValueError`.

    `/`, `/subscriptions/{guid}`, the same with `/resourceGroups/{group}`, the id of a resource below either of them, of
    the tenant or of another resource, `/providers/Microsoft.Management/managementGroups/{name}`, or the namespace of a
    resource provider, such as `/providers/Microsoft.Capacity`.
    """
    bare = text.removesuffix("/") if isinstance(text, str) and text else None
    if bare is None or not _is_scope(bare):
        raise ValueError(_NOT_A_SCOPE)
    return bare or "/"


def _is_scope(text: str) -> bool:
    """Return whether a text without a trailing slash is a scope. The empty text is the tenant's root."""
    return len(text) <= _LONGEST and bool(_SCOPE.fullmatch(fold(text))) and (text.isascii() or text.isprintable())


def definition_id(text: object) -> str:
    """Return the full id of a role definition, at a scope or at none, as given. Raise `ValueError`."""
    match = _DEFINITION.fullmatch(text) if isinstance(text, str) else None
    if match is None or not GUID.fullmatch(fold(match[2])) or not _is_scope(match[1]):
        raise ValueError(_NOT_A_DEFINITION)
    return match[0]


async def definition_by_id(client: Client, role_id: str) -> RoleDefinition | None:
    """Return the role definition with a full id. `None` if there is none, or if the id is malformed."""
    try:
        target = _address(client, definition_id(role_id))
    except ValueError:
        return None
    found = await unless(is_absent, get_json(client, target, client.cloud.resource_scope, _Definition), None)
    return None if found is None else _definition(found)


async def definitions_by_name(client: Client, scope: str, name: str) -> list[RoleDefinition]:
    """Return all role definitions with a name that can be assigned at a scope. None if the scope does not exist."""
    condition = {"$filter": f"roleName eq {literal(name)}"}
    listing = _address(client, f"{_prefix(scope)}{_AUTHORIZATION}/roleDefinitions", **condition)
    found = await unless(is_absent, pages(client, listing, client.cloud.resource_scope, _Definition), None)
    return list(map(_definition, found or ()))


def assignment_path(scope: str, assignment_id: str) -> str:
    """Return the path of a role assignment, whose id (a GUID) the client chooses."""
    return f"{_prefix(scope)}{_AUTHORIZATION}/roleAssignments/{assignment_id}"


def scope_of_assignment(path: str) -> str:
    """Return the scope in a path that `assignment_path` made."""
    return path.rpartition(f"{_AUTHORIZATION}/roleAssignments/")[0] or "/"


def _prefix(scope: str) -> str:
    """Return the prefix of all paths at a scope."""
    return scope.removesuffix("/")


async def assign(client: Client, path: str, definition_id: str, principal_id: str) -> str:
    """Create a role assignment, and return the path of the existing one. Can be repeated.

    Azure allows one assignment for each principal, definition and scope. Someone else may have created it under a
    different id.
    """
    properties = {"roleDefinitionId": definition_id, "principalId": principal_id, "principalType": "ServicePrincipal"}
    call = ApiCall(
        method="PUT", url=_address(client, path), scope=client.cloud.resource_scope, body={"properties": properties}
    )
    try:
        await client.call(call)
    except ProviderProblem as problem:
        if (problem.status, problem.code) != EXISTS:
            raise
        if await is_assigned(client, path):
            return path
        for other in await assignments_of(client, path, principal_id):
            if _is_for(other, scope_of_assignment(path), definition_id):
                return other.id
        raise  # the list lags behind
    return path


async def is_assigned(client: Client, path: str) -> bool:
    """Return whether there is a role assignment with this path."""
    look_up = get_json(client, _address(client, path), client.cloud.resource_scope, Assignment)
    return await unless(is_absent, look_up, None) is not None


async def assignments_of(client: Client, path: str, principal_id: str) -> list[Assignment]:
    """Return the role assignments of a service principal at, above and below the scope of an assignment."""
    listing = _address(client, path.rpartition("/")[0], **{"$filter": f"principalId eq {literal(principal_id)}"})
    found = await unless(is_absent, pages(client, listing, client.cloud.resource_scope, Assignment), None)
    return list(found or ())


async def other_assignments(client: Client, principal_id: str, paths: Sequence[str]) -> list[str]:
    """Return the paths of a service principal's other role assignments at, above and below the scopes of these."""
    known = set(map(fold, paths))
    found: list[str] = []
    scopes = {fold(scope_of_assignment(path)): path for path in paths}
    for scope, path in scopes.items():
        if any(scope.startswith(f"{outer.rstrip('/')}/") for outer in scopes if outer != scope):
            continue
        for other in await assignments_of(client, path, principal_id):
            is_own = fold(other.properties.principal_id) == fold(principal_id)  # not that of a group it is in
            if is_own and fold(other.id) not in known:
                known.add(fold(other.id))
                found.append(other.id)
    return found


def _is_for(assignment: Assignment, scope: str, definition_id: str) -> bool:
    properties = assignment.properties
    definitions = {fold(each.rsplit("/", 1)[-1]) for each in (properties.role_definition_id, definition_id)}
    return fold(properties.scope or "/") == fold(scope) and len(definitions) == 1


async def unassign(client: Client, path: str) -> bool:
    """Remove a role assignment. Return `False` if it does not exist."""
    call = ApiCall(method="DELETE", url=_address(client, path), scope=client.cloud.resource_scope)
    response = await unless(is_absent, client.call(call), None)
    return response is not None and response.status == 200


def address_at(client: Client, scope: str, collection: str) -> str:
    """Return the URL of a collection of the authorization provider at a scope."""
    return _address(client, f"{_prefix(scope)}{_AUTHORIZATION}/{collection}")


def _address(client: Client, path: str, **query: str) -> str:
    segments = path.removeprefix("/").split("/")
    return url(client.cloud.resource_manager, *segments, **query, **{"api-version": VERSION})


def _definition(form: _Definition) -> RoleDefinition:
    actions = tuple(action for permission in form.properties.permissions for action in permission.actions)
    return RoleDefinition(form.id, form.properties.role_name, actions)
