"""The ceiling of a secrets engine: the maximum that its roles can grant.

It is part of the configuration, so an operator sets it and the writers of roles cannot. `limits` applies it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from functools import cached_property
from typing import Final, TypeVar

from attrs import evolve, fields, frozen

from ..errors import Code, Problem, Refused
from ..forms import BOOLEAN, FieldType, Json, schemas, setting
from ..provider import Client, Rights, assignments, groups, memberships
from ..values import GUID, comma_list, fold
from .grants import AppRoleGrant, listed

MOST_ALLOWED: Final = 1000
"""Maximum elements of a list."""

LONGEST_NAME: Final = 512
_ONLY_BY_NAME: Final = re.compile(r"/|/providers/(?:microsoft\.management/managementgroups/)?[^/]*")
"""Scopes in lower case that allow only themselves, because they contain so much."""


@frozen(slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class Allowed:
    """What roles may use of one kind: as it was written, and as ids that can be compared. `None`: everything."""

    written: tuple[str, ...] | None = ()
    ids: tuple[str, ...] = ()
    is_set: bool = False

    def __bool__(self) -> bool:
        return self.is_set

    @cached_property
    def _ids(self) -> frozenset[str]:
        """The set of ids, because a role may be compared with all of them for each of its grants."""
        return frozenset(self.ids)

    def admits(self, found: str) -> bool:
        """Return whether an id is allowed."""
        return self.written is None or fold(found) in self._ids


def _listed(kind: Callable[[str], str]) -> Callable[[object], Allowed]:
    def parse(raw: object) -> Allowed:
        if raw is None:
            return Allowed(None, (), True)
        written = comma_list(raw)
        if len(written) > MOST_ALLOWED:
            raise ValueError(f"must have at most {MOST_ALLOWED} elements")
        return Allowed(written, tuple(kind(each) for each in written), True)

    return parse


def _scope(text: str) -> str:
    return fold(assignments.scope(text))


def _guid(text: str) -> str:
    if not GUID.fullmatch(text):
        raise ValueError("must list object ids or client ids, which are GUIDs")
    return fold(text)


def _id_or_name(text: str) -> str:
    """Return the GUID of an id. Empty for a name, whose id only Azure knows."""
    if not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise ValueError(f"must list ids or names of 1 to {LONGEST_NAME} printable characters")
    last = text.rsplit("/", 1)[-1]
    return fold(last) if GUID.fullmatch(last) else ""


def _show(allowed: Allowed) -> Json:
    return None if allowed.written is None else list(allowed.written)


def _normal(allowed: Allowed) -> Allowed:
    """Return the list with ids instead of their spellings. A name, whose id is unknown, stays unchanged."""
    if allowed.written is None:
        return allowed
    return evolve(
        allowed, written=tuple(known or name for known, name in zip(allowed.ids, allowed.written, strict=True))
    )


def _refuse_null(raw: object) -> object:
    if raw is None:
        raise ValueError("must be a list: null, which allows everything, is not possible")
    return raw


def _app_roles(raw: object) -> Allowed:
    listed = _PAIRS.parse(_refuse_null(raw))
    pairs = tuple(f"{_guid(one.resource_id)}/{_guid(one.app_role_id)}" for one in listed)
    return Allowed(pairs, pairs, True)


_PAIRS: Final = listed("app roles", AppRoleGrant, ("resource_id",), ("app_role_id",))
LIST_OR_NULL: Final = schemas.nullable(schemas.LIST)
SCOPES: Final = FieldType("list of scopes, or null", _listed(_scope), _show, normal=_normal, schema=LIST_OR_NULL)
IDS: Final = FieldType("list of ids, or null", _listed(_guid), _show, normal=_normal, schema=LIST_OR_NULL)
NAMES: Final = FieldType(
    "list of ids or names, or null", _listed(_id_or_name), _show, normal=_normal, schema=LIST_OR_NULL
)

LISTED_NAMES: Final = FieldType(
    "list of ids or names", lambda raw: NAMES.parse(_refuse_null(raw)), _show, normal=_normal, schema=schemas.LIST
)
APP_ROLES: Final = FieldType(
    "list of app roles",
    _app_roles,
    lambda allowed: [dict(zip(("resource_id", "app_role_id"), pair.split("/"), strict=True)) for pair in allowed.ids],
    schema=_PAIRS.schema,
    limits=_PAIRS.limits,
)


def _allowing(kind: FieldType[Allowed], doc: str) -> Allowed:
    """Return a list field of the ceiling, which reads omit until it is set."""
    return setting(kind, Allowed(), doc, shown_empty=False)


@frozen(kw_only=True, slots=False)  # a configuration has two bases, of which one may have slots
class Ceiling:
    """The part of a configuration that limits roles.

    Without any list there is no ceiling. As soon as one list is set, a kind whose list is empty or was never set allows
    nothing; null allows everything of its kind.
    """

    allowed_scopes: Allowed = _allowing(
        SCOPES,
        "Scopes at or below which roles may assign Azure roles. The root scope, management groups and "
        "resource providers allow only themselves.",
    )
    allowed_role_definitions: Allowed = _allowing(NAMES, "Azure role definitions that roles may assign, by id or name.")
    allowed_application_ids: Allowed = _allowing(
        IDS, "Existing app registrations that roles may use, by object id or client id."
    )
    allowed_group_ids: Allowed = _allowing(NAMES, "Groups to which roles may add service principals, by id or name.")
    allowed_directory_roles: Allowed = _allowing(
        LISTED_NAMES,
        "Directory roles that roles may assign, by id or name. No other is allowed, whatever else is set.",
    )
    allowed_app_roles: Allowed = _allowing(
        APP_ROLES,
        "App roles that roles may assign, as objects with `resource_id` (the API's service principal) "
        "and `app_role_id`. No other is allowed, whatever else is set.",
    )
    deny_privileged_roles: bool = setting(
        BOOLEAN,
        False,
        "Refuse role definitions that can do everything, grant permissions or take over identities. They "
        "are checked again for each issue and renewal.",
        shown_empty=False,
    )

    @property
    def is_limited(self) -> bool:
        return any(getattr(self, name) for name in LISTS)

    @property
    def has_names(self) -> bool:
        """Return whether a list has a name whose id is not known yet."""
        return any("" in getattr(self, name).ids for name in LISTS)

    def warnings(self, stopped: int) -> tuple[str, ...]:
        """Return what a ceiling forbids completely, and how many roles it stops.

        An operator may not have intended this.
        """
        nothing = [name for name in LISTS if getattr(self, name).written == ()]
        forbids = (
            (f"these lists are empty, so they allow nothing: {', '.join(nothing)}",)
            if self.is_limited and nothing
            else ()
        )
        return (*forbids, f"GET <mount>/ceiling lists the roles that no longer issue credentials: {stopped}")


C = TypeVar("C", bound=Ceiling)
FIELDS: Final = tuple(field.name for field in fields(Ceiling))
"""The fields of a configuration that belong to the ceiling."""
LISTS: Final = tuple(name for name in FIELDS if name.startswith("allowed_"))


MEMBERSHIP_LISTS: Final = {
    "groups": ("azure_groups", "allowed_group_ids", False),
    "directory_roles": ("directory_roles", "allowed_directory_roles", True),
    "app_roles": ("app_roles", "allowed_app_roles", True),
}
"""By kind of membership: a role's field, the list, and whether the list applies even without a ceiling."""


def check_ceiling(ceiling: Ceiling, rights: Rights) -> None:
    """Refuse rights that exceed a ceiling with `CEILING_EXCEEDED`."""
    if problems := exceeded(ceiling, rights):
        raise Refused.because(problems)


def exceeded(ceiling: Ceiling, rights: Rights) -> list[Problem]:
    """Return which of these rights exceed a ceiling, by the fields of a role. No value of a role is repeated."""
    return [Problem(Code.CEILING_EXCEEDED, where) for where in _excesses(ceiling, rights)]


def _excesses(ceiling: Ceiling, rights: Rights) -> Iterator[str]:
    for kind, (name, allowed, is_always_limited) in MEMBERSHIP_LISTS.items():
        if ceiling.is_limited or is_always_limited:
            for number, one in enumerate(rights.memberships.get(kind, ())):
                if not getattr(ceiling, allowed).admits(one):
                    yield f'"{name}", element {number} is not among "{allowed}"'
    if not ceiling.is_limited:
        return
    application = (rights.application_id, rights.client_id) if rights.application_id else ()
    if application and not any(ceiling.allowed_application_ids.admits(each) for each in application if each):
        yield '"application_object_id" is not among "allowed_application_ids"'
    for number, (scope, definition) in enumerate(rights.assignments):
        if not _is_within(scope, ceiling.allowed_scopes):
            yield f'"azure_roles", element {number}: the scope is not within "allowed_scopes"'
        if not ceiling.allowed_role_definitions.admits(definition.rsplit("/", 1)[-1]):
            yield f'"azure_roles", element {number}: the role is not among "allowed_role_definitions"'


def _is_within(scope: str, allowed: Allowed) -> bool:
    """Return whether a scope is an allowed one or below one, segment by segment."""
    return allowed.admits(scope) or any(
        allowed.admits(above) and not _ONLY_BY_NAME.fullmatch(fold(above)) for above in _above(scope)
    )


def _above(scope: str) -> Iterator[str]:
    """Yield the parents of a scope: the scope without its last segments."""
    end = scope.rfind("/")
    while end > 0:
        yield scope[:end]
        end = scope.rfind("/", 0, end)


async def resolved(client: Client, ceiling: C, subscription_id: str) -> C:
    """Return a configuration whose ceiling has ids instead of names. Refuse unknown or ambiguous names."""

    async def definitions(name: str) -> list[str]:
        found = await assignments.definitions_by_name(client, f"/subscriptions/{subscription_id}", name)
        return [each.id.rsplit("/", 1)[-1] for each in found]

    async def group_ids(name: str) -> list[str]:
        return [group.id for group in await groups.groups_by_name(client, name)]

    async def directory_roles(name: str) -> list[str]:
        return [role.id for role in await memberships.directory_roles_by_name(client, name)]

    return evolve(
        ceiling,
        allowed_directory_roles=await _with_ids("allowed_directory_roles", ceiling, directory_roles),
        allowed_role_definitions=await _with_ids("allowed_role_definitions", ceiling, definitions),
        allowed_group_ids=await _with_ids("allowed_group_ids", ceiling, group_ids),
    )


async def _with_ids(field: str, ceiling: Ceiling, look_up: Callable[[str], Awaitable[list[str]]]) -> Allowed:
    allowed: Allowed = getattr(ceiling, field)
    ids: list[str] = []
    for number, (written, known) in enumerate(zip(allowed.written or (), allowed.ids, strict=True)):
        found = [known] if known else await look_up(written)
        if len(found) != 1:
            code = Code.REFERENCE_AMBIGUOUS if found else Code.REFERENCE_NOT_FOUND
            raise Refused(code, f'"{field}", element {number}')
        ids.append(fold(found[0]))
    return evolve(allowed, ids=tuple(ids))
