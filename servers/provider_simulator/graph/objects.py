"""Objects of every kind: what the wire shows of them, how they are read and listed, and those that were deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from attrs import frozen

from ..engine.behaviour import Replica
from ..engine.filters import Filterable, unquote_text
from ..engine.replicas import Table
from ..engine.requests import Call, Json
from ..engine.routing import Route
from ..engine.shapes import NOTHING, Members, Shape, require_texts, show
from ..world.directory import Deleted, Directory
from ..world.objects import Application, Group, Principal
from ..world.world import DOMAIN, World, instant
from . import defaults
from .conventions import ROOT, bad_request, list_objects, missing, read_body, read_object, require, require_upsert
from .credentials import CERTIFICATE, PASSWORD
from .grants import app_roles

DirectoryObject: TypeAlias = Application | Principal | Group

COMMON: Final[Members] = {
    "id": "id",
    "deletedDateTime": None,
    "displayName": "display_name",
    "createdDateTime": lambda one: instant(one.created_at),
}
GROUP: Final[Members] = {
    **COMMON,
    **defaults.shown(defaults.GROUP),
    "description": "description",
    "mailNickname": "mail_nickname",
    "renewedDateTime": lambda one: instant(one.created_at),
    "securityIdentifier": lambda one: _security_identifier(one.id),
}
SIGNS_IN: Final[Members] = {
    **COMMON,
    "appId": "client_id",
    "signInAudience": "sign_in_audience",
    "tags": "tags",
    "passwordCredentials": lambda one: [show(each, PASSWORD) for each in one.passwords],
}
PRINCIPAL: Final[Members] = {
    **SIGNS_IN,
    **defaults.shown(defaults.PRINCIPAL),
    "appDisplayName": "display_name",
    "appOwnerOrganizationId": "tenant_id",
    "servicePrincipalNames": "names",
    "servicePrincipalType": "kind",
    "appRoles": app_roles,
}
APPLICATION: Final[Members] = {
    **SIGNS_IN,
    **defaults.shown(defaults.APPLICATION),
    "publisherDomain": lambda _: DOMAIN,
    "uniqueName": "unique_name",
    "serviceManagementReference": "service_management_reference",
    "keyCredentials": lambda one: [show(each, CERTIFICATE) for each in one.certificates],
}


@frozen
class Kind:
    """A kind of directory object: its type's name, the directory's table of it, and its members on the wire."""

    type: type[DirectoryObject]
    name: str
    table: str
    filters: Filterable

    def objects(self, world: World) -> Table[Any]:
        return cast(Table[Any], getattr(world.directory, self.table))

    def list(self, world: World, call: Call) -> Json:
        return list_objects(world, call, self.objects(world).all(Replica.LISTS), self.filters)

    def read(self, world: World, call: Call) -> Json:
        return show(read_object(self.objects(world), call), self.filters.members)

    def read_by_key(self, find: Callable[[Directory, str, Replica], Any], world: World, call: Call) -> Json:
        """The object that the directory finds by an alternate key."""
        if find is Directory.application_named:
            require_upsert(world)
        key = unquote_text(call.names["key"])
        return show(require(find(world.directory, key, Replica.READS), key), self.filters.members)


KINDS: Final = (
    APPLICATIONS := Kind(
        Application,
        "application",
        "applications",
        Filterable(APPLICATION, "id appId displayName uniqueName signInAudience", "displayName uniqueName", "tags"),
    ),
    PRINCIPALS := Kind(
        Principal,
        "servicePrincipal",
        "principals",
        Filterable(PRINCIPAL, "id appId displayName servicePrincipalType", "displayName", "tags servicePrincipalNames"),
    ),
    Kind(Group, "group", "groups", Filterable(GROUP, "id displayName mailNickname", "displayName")),
)

ANY_KIND: Final = Filterable(GROUP, "id displayName", "displayName")
DELETED: Final = Filterable(PRINCIPAL, "id appId displayName", "displayName")
IDS: Final[Shape] = {"ids": (list,), "types": (list, NOTHING)}


def _security_identifier(object_id: str) -> str:
    """The object id, as Windows names it."""
    parts = (int.from_bytes(UUID(object_id).bytes_le[start : start + 4], "little") for start in range(0, 16, 4))
    return f"S-1-12-1-{'-'.join(map(str, parts))}"


def kind_of(item: DirectoryObject) -> Kind:
    return next(kind for kind in KINDS if isinstance(item, kind.type))


def show_object(item: DirectoryObject) -> Json:
    """The object with its type, which clients need where objects of several types can appear."""
    kind = kind_of(item)
    return {"@odata.type": f"#microsoft.graph.{kind.name}", **show(item, kind.filters.members)}


def of_type(items: Iterable[DirectoryObject], name: str | None) -> list[DirectoryObject]:
    """The objects of the type that a path names; all, if it names none."""
    if name is None:
        return list(items)
    wanted = next((kind.type for kind in KINDS if kind.name.lower() == name.lower()), None)
    if wanted is None:
        raise bad_request(f"'{name}' is not a known type of directory object.")
    return [item for item in items if isinstance(item, wanted)]


def find(world: World, object_id: str) -> DirectoryObject | None:
    """The object of any type, as readers see it."""
    found = (kind.objects(world).get(object_id.lower(), Replica.READS) for kind in KINDS)
    return next((item for item in found if item is not None), None)


def texts(body: Json, name: str) -> tuple[str, ...]:
    return require_texts(body.get(name), f"'{name}'")


def read_any(world: World, call: Call) -> Json:
    if found := find(world, call.names["id"]):
        return show_object(found)
    raise missing(call.names["id"])


def get_by_ids(world: World, call: Call) -> Json:
    """The objects with these ids. Unknown ids are left out, as the provider does."""
    body = read_body(call, IDS)
    found = [item for object_id in texts(body, "ids") if (item := find(world, object_id)) is not None]
    wanted = texts(body, "types") if body.get("types") else ()
    items = [item for name in wanted for item in of_type(found, name)] if wanted else found
    return {"value": [show_object(item) for item in items]}


# Deleted items: objects that were deleted and can be purged. An application and its principal are two items.


def list_deleted(world: World, call: Call) -> Json:
    """The deleted objects of one type; the provider has no list of all types either."""
    world.directory.purge_expired()
    deleted = {each.item.id: each for each in world.directory.deleted.values() if _is_listed(world, each)}
    items = of_type((each.item for each in deleted.values()), call.names["type"])
    return list_objects(world, call, items, DELETED, lambda item: _show_deleted(deleted[item.id]))


def read_deleted(world: World, call: Call) -> Json:
    found = _find_deleted(world, call)
    if not of_type([found.item], call.names.get("type")):
        raise missing(call.names["id"])
    return _show_deleted(found)


def purge(world: World, call: Call) -> None:
    world.directory.purge(_find_deleted(world, call).item.id)


def _find_deleted(world: World, call: Call) -> Deleted:
    """The deleted object, if the deletion has reached the replica that lists them; `Refusal` 404."""
    world.directory.purge_expired()
    found = world.directory.deleted.get(call.names["id"].lower())
    if found is None or not _is_listed(world, found):
        raise missing(call.names["id"])
    return found


def _is_listed(world: World, deleted: Deleted) -> bool:
    return deleted.at <= world.replication.known_until(Replica.BIN, deleted.item.id)


def _show_deleted(deleted: Deleted) -> Json:
    return {**show_object(deleted.item), "deletedDateTime": instant(deleted.at)}


def typed(template: str, handler: Any) -> tuple[Route, ...]:
    """The routes of a path whose end names the type of the wanted objects, in both its forms."""
    return tuple(Route("GET", f"{template}/{prefix}.{{type}}", handler) for prefix in ("microsoft.graph", "graph"))


ITEMS: Final = f"{ROOT}/directory/deletedItems"

ROUTES: Final = (
    *(Route("GET", f"{ROOT}/{kind.name}s", kind.list) for kind in KINDS),
    *(Route("GET", f"{ROOT}/{kind.name}s/{{id}}", kind.read) for kind in KINDS),
    *(
        Route("GET", f"{ROOT}/{kind.name}s({key}='{{key}}')", partial(kind.read_by_key, find))
        for kind, key, find in (
            (APPLICATIONS, "uniqueName", Directory.application_named),
            (APPLICATIONS, "appId", Directory.application_of),
            (PRINCIPALS, "appId", Directory.principal_of),
        )
    ),
    Route("POST", f"{ROOT}/directoryObjects/getByIds", get_by_ids),
    Route("GET", f"{ROOT}/directoryObjects/{{id}}", read_any),
    *typed(ITEMS, list_deleted),
    *typed(f"{ITEMS}/{{id}}", read_deleted),
    Route("GET", f"{ITEMS}/{{id}}", read_deleted),
    Route("DELETE", f"{ITEMS}/{{id}}", purge, writes=True),
)
