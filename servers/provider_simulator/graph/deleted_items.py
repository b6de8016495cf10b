"""Deleted items: objects that were deleted and can be purged. An application and its principal are two items."""

from __future__ import annotations

from typing import Final

from cloudid_core.effects import HttpResponse

from ..engine.behaviour import Replica
from ..engine.requests import Call, Json
from ..engine.routing import Route
from ..world.directory import Deleted
from ..world.objects import Application
from ..world.world import World, instant
from .applications import show_application
from .conventions import ROOT, answer, missing, no_content
from .service_principals import show_principal


def read_deleted(world: World, call: Call) -> HttpResponse:
    return answer(world, _show(_find(world, call)))


def purge(world: World, call: Call) -> HttpResponse:
    world.directory.purge(_find(world, call).item.id)
    return no_content(world)


def _find(world: World, call: Call) -> Deleted:
    """The deleted object, if the deletion has reached the replica that lists them; `Refusal` 404."""
    world.directory.purge_expired()
    object_id = call.names["id"].lower()
    found = world.directory.deleted.get(object_id)
    if found is None or found.at > world.replication.known_until(Replica.BIN, object_id):
        raise missing(object_id)
    return found


def _show(deleted: Deleted) -> Json:
    at = {"deletedDateTime": instant(deleted.at)}
    if isinstance(deleted.item, Application):
        return {"@odata.type": "#microsoft.graph.application", **at, **show_application(deleted.item)}
    return {"@odata.type": "#microsoft.graph.servicePrincipal", **at, **show_principal(deleted.item)}


ITEM: Final = f"{ROOT}/directory/deletedItems/{{id}}"

ROUTES: Final = (
    Route("GET", ITEM, read_deleted),
    Route("DELETE", ITEM, purge, writes=True),
)
