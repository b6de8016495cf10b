"""Directory objects of any type, and memberships: who is in a group, and in which groups an object is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from cloudid_core.effects import HttpResponse

from ..engine.behaviour import Replica
from ..engine.filters import Filterable
from ..engine.requests import Call, Json
from ..engine.routing import Route
from ..engine.shapes import NOTHING, Shape, require_texts
from ..world.objects import Application, Group, Principal
from ..world.world import World
from .applications import show_application
from .conventions import ROOT, answer, bad_request, list_objects, missing, read_body, read_object
from .groups import show_group
from .service_principals import show_principal

DirectoryObject: TypeAlias = Application | Principal | Group

TYPES: Final[dict[str, type[DirectoryObject]]] = {
    "application": Application,
    "serviceprincipal": Principal,
    "group": Group,
}
"""By the names that paths use, in lower case."""

FIELDS: Final = Filterable(equals={"id": "id", "displayName": "display_name"}, starts={"displayName": "display_name"})
ONLY_SECURITY: Final[Shape] = {"securityEnabledOnly": (bool,)}
GROUP_IDS: Final[Shape] = {"groupIds": (list,)}
IDS: Final[Shape] = {"ids": (list,), "types": (list, NOTHING)}


def show_object(item: DirectoryObject) -> Json:
    """The object with its type, which clients need where objects of several types can appear."""
    if isinstance(item, Application):
        return {"@odata.type": "#microsoft.graph.application", **show_application(item)}
    if isinstance(item, Principal):
        return {"@odata.type": "#microsoft.graph.servicePrincipal", **show_principal(item)}
    return {"@odata.type": "#microsoft.graph.group", **show_group(item)}


def of_type(items: Iterable[DirectoryObject], name: str | None) -> list[DirectoryObject]:
    """The objects of the type that a path names; all, if it names none."""
    if name is None:
        return list(items)
    if name.lower() not in TYPES:
        raise bad_request(f"'{name}' is not a known type of directory object.")
    return [item for item in items if isinstance(item, TYPES[name.lower()])]


def read_directory_object(world: World, call: Call) -> HttpResponse:
    found = _find(world, call.names["id"])
    if found is None:
        raise missing(call.names["id"])
    return answer(world, show_object(found))


def get_by_ids(world: World, call: Call) -> HttpResponse:
    """The objects with these ids. Unknown ids are left out, as the provider does."""
    body = read_body(call, IDS)
    found = [item for object_id in _texts(body, "ids") if (item := _find(world, object_id)) is not None]
    wanted = _texts(body, "types") if body.get("types") else ()
    items = [item for name in wanted for item in of_type(found, name)] if wanted else found
    return answer(world, {"value": [show_object(item) for item in items]})


def list_members(world: World, call: Call) -> HttpResponse:
    """The direct members of a group."""
    read_object(world.directory.groups, call)
    group = world.directory.groups.get(call.names["id"].lower(), Replica.LISTS)
    return _list(world, call, _members(world, group) if group else [])


def list_transitive_members(world: World, call: Call) -> HttpResponse:
    """The members of a group, and the members of the groups among them."""
    read_object(world.directory.groups, call)
    group = world.directory.groups.get(call.names["id"].lower(), Replica.LISTS)
    found: dict[str, DirectoryObject] = {}
    pending = [group] if group else []
    while pending:
        for member in _members(world, pending.pop()):
            if member.id not in found:
                found[member.id] = member
                pending += [member] if isinstance(member, Group) else []
    return _list(world, call, list(found.values()))


def list_member_of(world: World, call: Call) -> HttpResponse:
    """The groups that have the object as a direct member."""
    member = _member(world, call).id
    return _list(world, call, [group for group in world.directory.groups.all() if member in group.members])


def list_transitive_member_of(world: World, call: Call) -> HttpResponse:
    """The groups that contain the object, directly or through other groups."""
    return _list(world, call, world.directory.groups_of(_member(world, call).id))


def get_member_groups(world: World, call: Call) -> HttpResponse:
    """The ids of the groups that contain the object, directly or through other groups."""
    if "securityEnabledOnly" not in read_body(call, ONLY_SECURITY):
        raise bad_request("The body must have a boolean 'securityEnabledOnly'.")
    return answer(world, {"value": [group.id for group in world.directory.groups_of(_member(world, call).id)]})


def check_member_groups(world: World, call: Call) -> HttpResponse:
    """Those of the given groups that contain the object, directly or through other groups."""
    asked = {group_id.lower() for group_id in _texts(read_body(call, GROUP_IDS), "groupIds")}
    groups = world.directory.groups_of(_member(world, call).id)
    return answer(world, {"value": [group.id for group in groups if group.id in asked]})


def _texts(body: Json, name: str) -> tuple[str, ...]:
    return require_texts(body.get(name), f"'{name}'")


def _find(world: World, object_id: str) -> DirectoryObject | None:
    """The object of any type, as readers see it."""
    directory, wanted = world.directory, object_id.lower()
    return (
        directory.applications.get(wanted, Replica.READS)
        or directory.principals.get(wanted, Replica.READS)
        or directory.groups.get(wanted, Replica.READS)
    )


def _member(world: World, call: Call) -> DirectoryObject:
    """The object that the path names, of the type that its collection holds; `Refusal` 404."""
    found = _find(world, call.names["id"])
    collection = call.path.split("/")[3].lower()
    if found is None or (collection != "directoryobjects" and collection != f"{_type_name(found)}s"):
        raise missing(call.names["id"])
    return found


def _type_name(item: DirectoryObject) -> str:
    return next(name for name, kind in TYPES.items() if isinstance(item, kind))


def _members(world: World, group: Group) -> list[DirectoryObject]:
    directory = world.directory
    found = (directory.principals.get(member) or directory.groups.get(member) for member in sorted(group.members))
    return [member for member in found if member is not None]


def _list(world: World, call: Call, items: Sequence[DirectoryObject]) -> HttpResponse:
    return list_objects(world, call, of_type(items, call.names.get("type")), FIELDS, show_object)


def typed(template: str) -> tuple[str, ...]:
    """The path of a list, and its two forms that end in the type of the wanted objects."""
    return template, f"{template}/microsoft.graph.{{type}}", f"{template}/graph.{{type}}"


OBJECT: Final = f"{ROOT}/directoryObjects/{{id}}"
OBJECTS: Final = (OBJECT, f"{ROOT}/servicePrincipals/{{id}}", f"{ROOT}/groups/{{id}}")
LISTS: Final = (
    (f"{ROOT}/groups/{{id}}/members", list_members),
    (f"{ROOT}/groups/{{id}}/transitiveMembers", list_transitive_members),
    *((f"{each}/memberOf", list_member_of) for each in OBJECTS[1:]),
    *((f"{each}/transitiveMemberOf", list_transitive_member_of) for each in OBJECTS[1:]),
)

ROUTES: Final = (
    Route("POST", f"{ROOT}/directoryObjects/getByIds", get_by_ids),
    Route("GET", OBJECT, read_directory_object),
    *(Route("POST", f"{each}/getMemberGroups", get_member_groups) for each in OBJECTS),
    *(Route("POST", f"{each}/getMemberObjects", get_member_groups) for each in OBJECTS),
    *(Route("POST", f"{each}/checkMemberGroups", check_member_groups) for each in OBJECTS),
    *(Route("GET", path, handler) for template, handler in LISTS for path in typed(template)),
)
