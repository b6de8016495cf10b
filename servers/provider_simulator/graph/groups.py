"""Groups, and changes of their members."""

from __future__ import annotations

import re
from typing import Final

from cloudid_core.effects import HttpResponse

from ..engine.behaviour import Replica
from ..engine.filters import Filterable
from ..engine.requests import Call, Json
from ..engine.routing import Route
from ..engine.shapes import Shape
from ..identity.tokens import graph_audiences
from ..world.objects import Group
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
)

FIELDS: Final = Filterable(equals={"id": "id", "displayName": "display_name"})
REFERENCE: Final[Shape] = {"@odata.id": (str,)}
MEMBER: Final = re.compile(r"(.+)/v1\.0/(?:directoryObjects|servicePrincipals)/([0-9a-f-]{36})", re.IGNORECASE)


def show_group(group: Group) -> Json:
    return {
        "id": group.id,
        "displayName": group.display_name,
        "securityEnabled": True,
        "mailEnabled": False,
        "groupTypes": [],
    }


def list_groups(world: World, call: Call) -> HttpResponse:
    return list_objects(world, call, world.directory.groups.all(Replica.LISTS), FIELDS, show_group)


def read_group(world: World, call: Call) -> HttpResponse:
    return answer(world, show_group(read_object(world.directory.groups, call)))


def add_member(world: World, call: Call) -> HttpResponse:
    group = find_for_write(world.directory.groups, call.names["id"])
    match = MEMBER.fullmatch(read_body(call, REFERENCE).get("@odata.id", ""))
    if match is None or match[1].lower() not in graph_audiences(world):
        raise bad_request("Invalid URL format specified in the request body.")
    principal = find_for_write(world.directory.principals, match[2])
    if principal.id in group.members:
        raise bad_request("One or more added object references already exist for the modified property 'members'.")
    world.directory.join(group, principal.id, by=call.caller.client_id)
    return no_content(world)


def read_member(world: World, call: Call) -> HttpResponse:
    """The link to one member of a group."""
    group, member = read_object(world.directory.groups, call), call.names["member"].lower()
    if member not in group.members:
        raise missing(member)
    return answer(world, {"@odata.id": f"{world.base_url}{ROOT}/directoryObjects/{member}", "id": member})


def remove_member(world: World, call: Call) -> HttpResponse:
    group = find_for_write(world.directory.groups, call.names["id"])
    member = call.names["member"].lower()
    if member not in group.members:
        raise missing(member)
    world.directory.leave(group, member)
    return no_content(world)


MEMBERS: Final = f"{ROOT}/groups/{{id}}/members"

ROUTES: Final = (
    Route("GET", f"{ROOT}/groups", list_groups),
    Route("GET", f"{ROOT}/groups/{{id}}", read_group),
    Route("POST", f"{MEMBERS}/$ref", add_member, writes=True),
    Route("GET", f"{MEMBERS}/{{member}}/$ref", read_member),
    Route("DELETE", f"{MEMBERS}/{{member}}/$ref", remove_member, writes=True),
)
