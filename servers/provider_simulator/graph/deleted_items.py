"""Deleted items: objects that were deleted and can be purged. An application and its principal are two items."""

from __future__ import annotations

from typing import Final

from cloudid_core.effects import HttpResponse

from ..engine.behaviour import Replica
from ..engine.filters import Filterable
from ..engine.requests import Call, Json
from ..engine.routing import Route
from ..world.directory import Deleted
from ..world.world import World, instant
from .conventions import ROOT, answer, list_objects, missing, no_content
from .directory_objects import of_type, show_object

FIELDS: Final = Filterable(
    equals={"id": "id", "appId": "client_id", "displayName": "display_name"}, starts={"displayName": "display_name"}
)


def list_deleted(world: World, call: Call) -> HttpResponse:
    """The deleted objects of one type; the provider has no list of all types either."""
    world.directory.purge_expired()
    deleted = {each.item.id: each for each in world.directory.deleted.values() if _is_listed(world, each)}
    items = of_type((each.item for each in deleted.values()), call.names["type"])
    return list_objects(world, call, items, FIELDS, lambda item: _show(deleted[item.id]))


def read_deleted(world: World, call: Call) -> HttpResponse:
    found = _find(world, call)
    if not of_type([found.item], call.names.get("type")):
        raise missing(call.names["id"])
    return answer(world, _show(found))


def purge(world: World, call: Call) -> HttpResponse:
    world.directory.purge(_find(world, call).item.id)
    return no_content(world)


def _find(world: World, call: Call) -> Deleted:
    """The deleted object, if the deletion has reached the replica that lists them; `Refusal` 404."""
    world.directory.purge_expired()
    found = world.directory.deleted.get(call.names["id"].lower())
    if found is None or not _is_listed(world, found):
        raise missing(call.names["id"])
    return found


def _is_listed(world: World, deleted: Deleted) -> bool:
    return deleted.at <= world.replication.known_until(Replica.BIN, deleted.item.id)


def _show(deleted: Deleted) -> Json:
    return {"deletedDateTime": instant(deleted.at), **show_object(deleted.item)}


ITEMS: Final = f"{ROOT}/directory/deletedItems"
ITEM: Final = f"{ITEMS}/{{id}}"

ROUTES: Final = (
    *(Route("GET", f"{ITEMS}/{prefix}.{{type}}", list_deleted) for prefix in ("microsoft.graph", "graph")),
    *(Route("GET", f"{ITEM}/{prefix}.{{type}}", read_deleted) for prefix in ("microsoft.graph", "graph")),
    Route("GET", ITEM, read_deleted),
    Route("DELETE", ITEM, purge, writes=True),
)
