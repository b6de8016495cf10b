"""Memberships: who is in a group, and in which groups an object is, directly or through other groups."""

from __future__ import annotations

import re
from typing import Final

from ..engine.behaviour import Replica
from ..engine.requests import Call, Json
from ..engine.routing import Route
from ..engine.shapes import Shape
from ..identity.tokens import graph_audiences
from ..world.objects import Group
from ..world.world import World
from .conventions import ROOT, bad_request, find_for_write, list_objects, missing, read_body, read_object
from .objects import ANY_KIND, DirectoryObject, find, kind_of, of_type, show_object, texts, typed

REFERENCE: Final[Shape] = {"@odata.id": (str,)}
MEMBER: Final = re.compile(r"(.+)/v1\.0/(?:directoryObjects|servicePrincipals)/([0-9a-f-]{36})", re.IGNORECASE)
ONLY_SECURITY: Final[Shape] = {"securityEnabledOnly": (bool,)}
GROUP_IDS: Final[Shape] = {"groupIds": (list,)}


def add_member(world: World, call: Call) -> None:
    group = find_for_write(world.directory.groups, call.names["id"])
    match = MEMBER.fullmatch(read_body(call, REFERENCE).get("@odata.id", ""))
    if match is None or match[1].lower() not in graph_audiences(world):
        raise bad_request("Invalid URL format specified in the request body.")
    principal = find_for_write(world.directory.principals, match[2])
    if principal.id in group.members:
        raise bad_request("One or more added object references already exist for the modified property 'members'.")
    world.directory.join(group, principal.id, by=call.caller.client_id)


def read_member(world: World, call: Call) -> Json:
    """The link to one member of a group."""
    member = _require_member(read_object(world.directory.groups, call), call)
    return {"@odata.id": f"{world.base_url}{ROOT}/directoryObjects/{member}", "id": member}


def remove_member(world: World, call: Call) -> None:
    group = find_for_write(world.directory.groups, call.names["id"])
    world.directory.leave(group, _require_member(group, call))


def _require_member(group: Group, call: Call) -> str:
    member = call.names["member"].lower()
    if member not in group.members:
        raise missing(member)
    return member


def list_members(world: World, call: Call) -> Json:
    """The members of a group; in the list of `transitiveMembers`, also those of the groups among them."""
    read_object(world.directory.groups, call)
    group = world.directory.groups.get(call.names["id"].lower(), Replica.LISTS)
    found: dict[str, DirectoryObject] = {}
    pending = [group] if group else []
    while pending:
        for member in _members(world, pending.pop()):
            if member.id not in found:
                found[member.id] = member
                if isinstance(member, Group) and _is_transitive(call):
                    pending.append(member)
    return list_objects(world, call, of_type(found.values(), call.names.get("type")), ANY_KIND, show_object)


def list_member_of(world: World, call: Call) -> Json:
    """The groups that have the object as a member; in the list of `transitiveMemberOf`, also through other groups."""
    member, groups = _object(world, call).id, world.directory
    found = (
        groups.groups_of(member) if _is_transitive(call) else [g for g in groups.groups.all() if member in g.members]
    )
    return list_objects(world, call, of_type(found, call.names.get("type")), ANY_KIND, show_object)


def _is_transitive(call: Call) -> bool:
    return call.path.split("/")[5].lower().startswith("transitive")


def get_member_groups(world: World, call: Call) -> Json:
    """The ids of the groups that contain the object, directly or through other groups."""
    if "securityEnabledOnly" not in read_body(call, ONLY_SECURITY):
        raise bad_request("The body must have a boolean 'securityEnabledOnly'.")
    return {"value": [group.id for group in world.directory.groups_of(_object(world, call).id)]}


def check_member_groups(world: World, call: Call) -> Json:
    """Those of the given groups that contain the object, directly or through other groups."""
    asked = {group_id.lower() for group_id in texts(read_body(call, GROUP_IDS), "groupIds")}
    groups = world.directory.groups_of(_object(world, call).id)
    return {"value": [group.id for group in groups if group.id in asked]}


def _object(world: World, call: Call) -> DirectoryObject:
    """The object that the path names, of the type that its collection holds; `Refusal` 404."""
    found = find(world, call.names["id"])
    collection = call.path.split("/")[3].lower()
    if found is None or collection not in ("directoryobjects", f"{kind_of(found).name.lower()}s"):
        raise missing(call.names["id"])
    return found


def _members(world: World, group: Group) -> list[DirectoryObject]:
    directory = world.directory
    found = (directory.principals.get(member) or directory.groups.get(member) for member in sorted(group.members))
    return [member for member in found if member is not None]


MEMBERS: Final = f"{ROOT}/groups/{{id}}/members"
OBJECTS: Final = tuple(f"{ROOT}/{each}/{{id}}" for each in ("directoryObjects", "servicePrincipals", "groups"))
LISTS: Final = (
    *((f"{OBJECTS[2]}/{name}", list_members) for name in ("members", "transitiveMembers")),
    *((f"{each}/{name}", list_member_of) for each in OBJECTS[1:] for name in ("memberOf", "transitiveMemberOf")),
)

ROUTES: Final = (
    Route("POST", f"{MEMBERS}/$ref", add_member, writes=True),
    Route("GET", f"{MEMBERS}/{{member}}/$ref", read_member),
    Route("DELETE", f"{MEMBERS}/{{member}}/$ref", remove_member, writes=True),
    *(
        Route("POST", f"{each}/{name}", handler)
        for each in OBJECTS
        for name, handler in (
            ("getMemberGroups", get_member_groups),
            ("getMemberObjects", get_member_groups),
            ("checkMemberGroups", check_member_groups),
        )
    ),
    *(Route("GET", path, handler) for path, handler in LISTS),
    *(route for path, handler in LISTS for route in typed(path, handler)),
)
