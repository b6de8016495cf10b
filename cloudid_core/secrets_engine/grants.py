"""What a role gives its principals: role assignments and group memberships, as they are written and as they resolve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from attrs import evolve, frozen

from ..errors import Code, Problem, Refused
from ..forms import FieldType, Json, schemas
from ..provider import Client, assignments, groups
from ..values import json_text

T = TypeVar("T")
MOST: Final = 100
"""How many assignments or memberships a role may ask for."""


@frozen(kw_only=True)
class RoleGrant:
    """One role assignment: a role definition by name or id, at a scope as it was written. A resolved grant has both."""

    scope: str
    role_name: str = ""
    role_id: str = ""


@frozen(kw_only=True)
class GroupGrant:
    """One group membership: a group by name or id. A resolved grant has both."""

    group_name: str = ""
    object_id: str = ""


def _elements(raw: object) -> list[Mapping[str, Any]]:
    """The objects of a JSON array, or of a text that holds one."""
    if isinstance(raw, str) and raw:
        try:
            raw = json_text.decode(raw)
        except ValueError:
            raise ValueError("must be a JSON array of objects") from None
    if raw is None or raw == "":
        return []
    if not isinstance(raw, list) or not all(isinstance(element, dict) for element in raw):
        raise ValueError("must be a JSON array of objects")
    if len(raw) > MOST:
        raise ValueError(f"must have at most {MOST} elements")
    return raw


def _texts(element: Mapping[str, Any], names: frozenset[str]) -> dict[str, str]:
    unknown = element.keys() - names
    if unknown:
        raise ValueError("has an element with unknown members; known are " + ", ".join(sorted(names)))
    if not all(isinstance(value, str) for value in element.values()):
        raise ValueError("has an element with a member that is not a string")
    return dict(element)


def _role_grants(raw: object) -> tuple[RoleGrant, ...]:
    return tuple(_role_grant(element) for element in _elements(raw))


def _role_grant(element: Mapping[str, Any]) -> RoleGrant:
    texts = _texts(element, frozenset({"role_name", "role_id", "scope"}))
    if not texts.get("role_name") and not texts.get("role_id"):
        raise ValueError('needs "role_name" or "role_id" in each element')
    if not texts.get("scope"):
        raise ValueError('needs "scope" in each element')
    try:
        assignments.scope(texts["scope"])
    except ValueError as error:
        raise ValueError(f'has an element whose "scope" {error}') from None
    return RoleGrant(**texts)


def _normal_role_grants(grants: tuple[RoleGrant, ...]) -> tuple[RoleGrant, ...]:
    return tuple(evolve(grant, scope=assignments.scope(grant.scope)) for grant in grants)


def _group_grants(raw: object) -> tuple[GroupGrant, ...]:
    return tuple(_group_grant(element) for element in _elements(raw))


def _group_grant(element: Mapping[str, Any]) -> GroupGrant:
    texts = _texts(element, frozenset({"group_name", "object_id"}))
    if not texts.get("group_name") and not texts.get("object_id"):
        raise ValueError('needs "group_name" or "object_id" in each element')
    return GroupGrant(**texts)


def _show_role_grants(grants: tuple[RoleGrant, ...]) -> Json:
    return [{"role_name": grant.role_name, "role_id": grant.role_id, "scope": grant.scope} for grant in grants]


def _show_group_grants(grants: tuple[GroupGrant, ...]) -> Json:
    return [{"group_name": grant.group_name, "object_id": grant.object_id} for grant in grants]


ROLE_GRANTS: Final = FieldType(
    "JSON array of role assignments",
    _role_grants,
    _show_role_grants,
    normal=_normal_role_grants,
    schema=schemas.list_of(schemas.members(role_name=schemas.TEXT, role_id=schemas.TEXT, scope=schemas.TEXT)),
    limits={"items": schemas.members({"role_name": schemas.TEXT, "role_id": schemas.TEXT}, scope=schemas.TEXT)},
)
GROUP_GRANTS: Final = FieldType(
    "JSON array of groups",
    _group_grants,
    _show_group_grants,
    schema=schemas.list_of(schemas.members(group_name=schemas.TEXT, object_id=schemas.TEXT)),
    limits={"items": schemas.members({"group_name": schemas.TEXT, "object_id": schemas.TEXT})},
)


async def resolve_roles(client: Client, grants: tuple[RoleGrant, ...]) -> tuple[RoleGrant, ...]:
    """The grants with names and ids as the provider has them; refused when one does not exist or is there twice."""
    normal = ROLE_GRANTS.normal(grants)
    definitions = [await _definition_of(client, number, grant) for number, grant in enumerate(normal)]
    places = {
        (definition.id.lower(), grant.scope.lower()) for definition, grant in zip(definitions, normal, strict=True)
    }
    if len(places) < len(grants):
        raise Refused(Code.FIELD_INVALID, '"azure_roles" names the same role at the same scope twice')
    return tuple(
        evolve(grant, role_name=definition.name, role_id=definition.id)
        for grant, definition in zip(grants, definitions, strict=True)
    )


async def _definition_of(client: Client, number: int, grant: RoleGrant) -> assignments.RoleDefinition:
    where = f'"azure_roles", element {number}'
    if grant.role_id:
        known = await assignments.definition_by_id(client, grant.role_id)
        found = [known] if known else []
    else:
        found = await assignments.definitions_by_name(client, grant.scope, grant.role_name)
    return _only(found, where)


async def resolve_groups(client: Client, grants: tuple[GroupGrant, ...]) -> tuple[GroupGrant, ...]:
    """The grants with names and ids as the directory has them; refused when one does not exist or is there twice."""
    resolved = [await _resolve_group(client, number, grant) for number, grant in enumerate(grants)]
    if len({grant.object_id.lower() for grant in resolved}) < len(resolved):
        raise Refused(Code.FIELD_INVALID, '"azure_groups" names the same group twice')
    return tuple(resolved)


async def _resolve_group(client: Client, number: int, grant: GroupGrant) -> GroupGrant:
    if grant.object_id:
        known = await groups.find_group(client, grant.object_id)
        found = [known] if known else []
    else:
        found = await groups.groups_by_name(client, grant.group_name)
    group = _only(found, f'"azure_groups", element {number}')
    return GroupGrant(group_name=group.name, object_id=group.object_id)


def _only(found: list[T], where: str) -> T:
    if not found:
        raise Refused.because([Problem(Code.REFERENCE_NOT_FOUND, where)])
    if len(found) > 1:
        raise Refused.because([Problem(Code.REFERENCE_AMBIGUOUS, where)])
    return found[0]
