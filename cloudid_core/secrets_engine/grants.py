"""What a role grants: role assignments and memberships, as they are written and as they resolve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from attrs import evolve, frozen

from ..effects import Program
from ..errors import Code, Refused
from ..forms import FieldType, schemas
from ..provider import Client, assignments, groups, memberships
from ..values import fold, json_text

T = TypeVar("T")
MOST: Final = 100
"""Maximum number of assignments, and of memberships, of a role."""


@frozen(kw_only=True)
class RoleGrant:
    """A role assignment: a role definition by name or id, at a scope as it was written. A resolved grant has both."""

    scope: str
    role_name: str = ""
    role_id: str = ""


@frozen(kw_only=True)
class GroupGrant:
    """A group membership: a group by name or id. A resolved grant has both."""

    group_name: str = ""
    object_id: str = ""


@frozen(kw_only=True)
class DirectoryRoleGrant:
    """A directory role, by name or id. A resolved grant has both."""

    role_name: str = ""
    role_id: str = ""


@frozen(kw_only=True)
class AppRoleGrant:
    """An app role of an API: the API's service principal and the role's value, or their ids.

    A resolved grant has all.
    """

    resource_name: str = ""
    resource_id: str = ""
    app_role_name: str = ""
    app_role_id: str = ""

    @property
    def pair(self) -> str:
        return f"{self.resource_id}/{self.app_role_id}"


def _elements(raw: object) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON array, or of a text that contains one."""
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
        raise ValueError("has an element with unknown members; allowed are " + ", ".join(sorted(names)))
    if not all(isinstance(value, str) for value in element.values()):
        raise ValueError("has an element with a member that is not a string")
    return dict(element)


def listed(what: str, form: type[T], *needed: tuple[str, ...]) -> FieldType[tuple[T, ...]]:
    """Return a type for a list of objects with these members. Of each group, one is required."""
    names = [name for either in needed for name in either]

    def parse(raw: object) -> tuple[T, ...]:
        return tuple(form(**element) for element in map(check, _elements(raw)))

    def check(element: Mapping[str, Any]) -> dict[str, str]:
        texts = _texts(element, frozenset(names))
        for either in needed:
            if not any(map(texts.get, either)):
                wanted = '" or "'.join(either)
                raise ValueError(f'needs "{wanted}" in each element')
        return texts

    members = dict.fromkeys(names, schemas.TEXT)
    required = {name: members.pop(name) for either in needed if len(either) == 1 for name in either}
    return FieldType(
        f"JSON array of {what}",
        parse,
        lambda grants: [{name: getattr(grant, name) for name in names} for grant in grants],
        schema=schemas.list_of(schemas.members(**members, **required)),
        limits={"items": schemas.members(members, **required)},
    )


def _role_grants(raw: object) -> tuple[RoleGrant, ...]:
    grants = _ROLE_GRANTS.parse(raw)
    try:
        _normal_role_grants(grants)
    except ValueError as error:
        raise ValueError(f'has an element whose "scope" {error}') from None
    return grants


def _normal_role_grants(grants: tuple[RoleGrant, ...]) -> tuple[RoleGrant, ...]:
    return tuple(evolve(grant, scope=assignments.scope(grant.scope)) for grant in grants)


_ROLE_GRANTS: Final = listed("role assignments", RoleGrant, ("role_name", "role_id"), ("scope",))
ROLE_GRANTS: Final = evolve(_ROLE_GRANTS, parse=_role_grants, normal=_normal_role_grants)
GROUP_GRANTS: Final = listed("groups", GroupGrant, ("group_name", "object_id"))
DIRECTORY_ROLE_GRANTS: Final = listed("directory roles", DirectoryRoleGrant, ("role_name", "role_id"))
APP_ROLE_GRANTS: Final = listed(
    "app roles", AppRoleGrant, ("resource_name", "resource_id"), ("app_role_name", "app_role_id")
)


async def resolve_roles(client: Client, grants: tuple[RoleGrant, ...]) -> tuple[RoleGrant, ...]:
    """Return the grants with Azure's names and ids. Refuse unknown and repeated ones."""
    normal = ROLE_GRANTS.normal(grants)
    definitions = [await _definition_of(client, number, grant) for number, grant in enumerate(normal)]
    places = {(found.id.lower(), grant.scope.lower()) for found, grant in zip(definitions, normal, strict=True)}
    if len(places) < len(grants):
        raise Refused(Code.FIELD_INVALID, '"azure_roles" names the same role at the same scope twice')
    return tuple(
        evolve(grant, role_name=definition.name, role_id=definition.id)
        for grant, definition in zip(grants, definitions, strict=True)
    )


async def _definition_of(client: Client, number: int, grant: RoleGrant) -> assignments.RoleDefinition:
    by_id = _known(assignments.definition_by_id(client, grant.role_id)) if grant.role_id else None
    found = await (by_id or assignments.definitions_by_name(client, grant.scope, grant.role_name))
    return _only(found, f'"azure_roles", element {number}')


async def _known(look_up: Program[T | None]) -> list[T]:
    """Return the result of a look-up by id in the form of a look-up by name."""
    found = await look_up
    return [] if found is None else [found]


async def resolve(
    client: Client, field: str, grants: tuple[T, ...], find: Callable[[Client, T], Program[list[T]]]
) -> tuple[T, ...]:
    """Return the grants with Entra ID's names and ids. Refuse unknown and repeated ones."""
    resolved = [_only(await find(client, grant), f'"{field}", element {number}') for number, grant in enumerate(grants)]
    if len(set(resolved)) < len(resolved):
        raise Refused(Code.FIELD_INVALID, f'"{field}" names the same twice')
    return tuple(resolved)


async def find_groups(client: Client, grant: GroupGrant) -> list[GroupGrant]:
    """Return the groups that a grant may mean."""
    by_id = _known(groups.find_group(client, grant.object_id)) if grant.object_id else None
    found = await (by_id or groups.groups_by_name(client, grant.group_name))
    return [GroupGrant(group_name=group.display_name or "", object_id=group.id) for group in found]


async def find_directory_roles(client: Client, grant: DirectoryRoleGrant) -> list[DirectoryRoleGrant]:
    """Return the directory roles that a grant may mean."""
    by_id = _known(memberships.directory_role(client, grant.role_id)) if grant.role_id else None
    found = await (by_id or memberships.directory_roles_by_name(client, grant.role_name))
    return [DirectoryRoleGrant(role_name=role.display_name, role_id=role.id) for role in found]


async def find_app_roles(client: Client, grant: AppRoleGrant) -> list[AppRoleGrant]:
    """Return the enabled app roles for applications that a grant may mean."""
    by_id = _known(memberships.api(client, grant.resource_id)) if grant.resource_id else None
    apis = await (by_id or memberships.apis_by_name(client, grant.resource_name))
    return [
        AppRoleGrant(
            resource_name=api.display_name or "",
            resource_id=api.id,
            app_role_name=role.value or "",
            app_role_id=role.id,
        )
        for api in apis
        for role in api.app_roles
        if role.is_enabled
        and "Application" in role.allowed_member_types
        and (fold(role.id) == fold(grant.app_role_id) if grant.app_role_id else role.value == grant.app_role_name)
    ]


def _only(found: list[T], where: str) -> T:
    if len(found) != 1:
        raise Refused(Code.REFERENCE_AMBIGUOUS if found else Code.REFERENCE_NOT_FOUND, where)
    return found[0]
