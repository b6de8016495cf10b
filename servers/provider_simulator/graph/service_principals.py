"""Service principals: created, upserted, read and deleted."""

from __future__ import annotations

import zlib
from typing import Final

from cloudid_core.effects import HttpResponse

from ..engine.behaviour import Replica
from ..engine.filters import Filterable
from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Route
from ..engine.shapes import Shape
from ..world.objects import Application, Principal
from ..world.world import World
from . import passwords
from .conventions import (
    ROOT,
    answer,
    bad_request,
    creates_if_missing,
    denied,
    find_for_write,
    in_use,
    key_of,
    list_objects,
    missing,
    no_content,
    read_body,
    read_object,
    require,
    require_upsert,
)
from .grants import app_roles

BODY: Final[Shape] = {"appId": (str,)}
FIELDS: Final = Filterable(
    equals={"id": "id", "appId": "client_id", "displayName": "display_name", "servicePrincipalType": "kind"},
    starts={"displayName": "display_name"},
    contains={"tags": "tags"},
)


def show_principal(principal: Principal) -> Json:
    return {
        "id": principal.id,
        "appId": principal.client_id,
        "displayName": principal.display_name,
        "servicePrincipalType": principal.kind,
        "accountEnabled": True,
        "tags": list(principal.tags),
        "appRoles": app_roles(principal),
        "passwordCredentials": [passwords.show_password(password) for password in principal.passwords],
    }


def list_principals(world: World, call: Call) -> HttpResponse:
    return list_objects(world, call, world.directory.principals.all(Replica.LISTS), FIELDS, show_principal)


def read_principal(world: World, call: Call) -> HttpResponse:
    return answer(world, show_principal(read_object(world.directory.principals, call)))


def read_by_client(world: World, call: Call) -> HttpResponse:
    client_id = key_of(call, "client")
    found = world.directory.principal_of(client_id, Replica.READS)
    return answer(world, show_principal(require(found, client_id)))


def create_principal(world: World, call: Call) -> HttpResponse:
    client_id = read_body(call, BODY).get("appId", "").lower()
    if world.directory.principal_of(client_id) is not None:
        raise _taken(client_id)
    return _create(world, call, client_id)


def upsert_principal(world: World, call: Call) -> HttpResponse:
    """Create the principal of that application if there is none and the client asks for that."""
    require_upsert(world)
    client_id = key_of(call, "client").lower()
    if read_body(call, BODY).get("appId", client_id).lower() != client_id:
        raise bad_request("The property 'appId' cannot be changed.")
    if world.directory.principal_of(client_id) is not None:
        return no_content(world)
    if not creates_if_missing(call):
        raise missing(client_id)
    return _create(world, call, client_id)


def delete_principal(world: World, call: Call) -> HttpResponse:
    principal = _find_for_write(world, call)
    if principal.kind != "Application":
        raise denied("The principal of a managed identity is deleted with the identity.")
    world.directory.delete_principal(principal)
    return no_content(world)


def add_password(world: World, call: Call) -> HttpResponse:
    return passwords.add_password(world, call, _find_for_write(world, call))


def remove_password(world: World, call: Call) -> HttpResponse:
    known = require(world.directory.principals.get(call.names["id"].lower(), Replica.WRITES), call.names["id"])
    return passwords.remove_password(world, call, _find_for_write(world, call), known)


def _find_for_write(world: World, call: Call) -> Principal:
    return find_for_write(world.directory.principals, call.names["id"])


def _create(world: World, call: Call, client_id: str) -> HttpResponse:
    application = _require_application(world, client_id)
    if world.directory.keeps_name(client_id):
        raise _taken(client_id)
    principal = world.directory.add_principal(
        application.display_name, "Application", application, application.tags, by=call.caller.client_id
    )
    return answer(world, show_principal(principal), 201)


def _require_application(world: World, client_id: str) -> Application:
    """The application. Until its creation reaches the replica that writes use, the error has one of three forms."""
    application = world.directory.application_of(client_id)
    if application is not None and world.directory.application_of(client_id, Replica.WRITES) is not None:
        return application
    refusals: tuple[Refusal, ...] = (
        bad_request("The appId of the service principal does not reference a valid application object."),
        denied("The backing application of the service principal must be in the local tenant."),
        missing(client_id),
    )
    raise refusals[0 if application is None else zlib.crc32(client_id.encode()) % len(refusals)]


def _taken(client_id: str) -> Refusal:
    return in_use(f"The service principal cannot be created: its name {client_id} is already in use.")


ITEM: Final = f"{ROOT}/servicePrincipals/{{id}}"
OF_CLIENT: Final = f"{ROOT}/servicePrincipals(appId='{{client}}')"

ROUTES: Final = (
    Route("GET", f"{ROOT}/servicePrincipals", list_principals),
    Route("POST", f"{ROOT}/servicePrincipals", create_principal, writes=True),
    Route("GET", OF_CLIENT, read_by_client),
    Route("PATCH", OF_CLIENT, upsert_principal, writes=True),
    Route("GET", ITEM, read_principal),
    Route("DELETE", ITEM, delete_principal, writes=True),
    Route("POST", f"{ITEM}/addPassword", add_password, writes=True),
    Route("POST", f"{ITEM}/removePassword", remove_password, writes=True),
)
