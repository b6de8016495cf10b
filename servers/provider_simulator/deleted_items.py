"""Deleted items: what is in the directory's bin, from where it is purged. A principal is purged by itself."""

from __future__ import annotations

from typing import Final

from cloudid_core.effects import HttpResponse

from .applications import show_application
from .behaviour import Place
from .directory import Deleted
from .graph import ROOT, answer, done, missing
from .objects import Application
from .principals import show_principal
from .routing import Call, Json, Route
from .world import World, instant


def read_deleted(world: World, call: Call) -> HttpResponse:
    return answer(world, _show(_find(world, call)))


def purge(world: World, call: Call) -> HttpResponse:
    world.directory.purge(_find(world, call).item.id)
    return done(world)


def _find(world: World, call: Call) -> Deleted:
    """What was deleted and shows in the bin by now; `Refusal` 404."""
    world.directory.empty_bin()
    object_id = call.names["id"].lower()
    found = world.directory.bin.get(object_id)
    if found is None or found.at > world.spread.known_until(Place.BIN, object_id):
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
