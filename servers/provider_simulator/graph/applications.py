"""Applications: created, upserted, read, changed and deleted."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from cloudid_core.effects import HttpResponse

from ..engine.behaviour import Replica
from ..engine.filters import Filterable
from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Route
from ..engine.shapes import NOTHING, Shape, require_texts
from ..world.objects import Application
from ..world.world import World, instant
from . import passwords
from .certificates import read_certificates, show_certificate
from .conventions import (
    ROOT,
    answer,
    bad_request,
    creates_if_missing,
    find_for_write,
    in_use,
    key_of,
    list_objects,
    missing,
    no_content,
    read_body,
    read_object,
    refuse_concurrent_change,
    require,
    require_upsert,
)

AUDIENCES: Final = (
    "AzureADMyOrg",
    "AzureADMultipleOrgs",
    "AzureADandPersonalMicrosoftAccount",
    "PersonalMicrosoftAccount",
)
MAX_NAME: Final = 256

BODY: Final[Shape] = {
    "displayName": (str,),
    "uniqueName": (str, NOTHING),
    "signInAudience": (str,),
    "tags": (list,),
    "keyCredentials": (list,),
}
ATTRIBUTES: Final = {
    "displayName": "display_name",
    "uniqueName": "unique_name",
    "signInAudience": "sign_in_audience",
    "tags": "tags",
    "keyCredentials": "certificates",
}
FIELDS: Final = Filterable(
    equals={
        "id": "id",
        "appId": "client_id",
        "displayName": "display_name",
        "uniqueName": "unique_name",
        "signInAudience": "sign_in_audience",
    },
    starts={"displayName": "display_name", "uniqueName": "unique_name"},
    contains={"tags": "tags"},
)


def show_application(application: Application) -> Json:
    return {
        "id": application.id,
        "appId": application.client_id,
        "displayName": application.display_name,
        "uniqueName": application.unique_name,
        "createdDateTime": instant(application.created_at),
        "signInAudience": application.sign_in_audience,
        "tags": list(application.tags),
        "passwordCredentials": [passwords.show_password(password) for password in application.passwords],
        "keyCredentials": [show_certificate(one) for one in application.certificates],
    }


def list_applications(world: World, call: Call) -> HttpResponse:
    return list_objects(world, call, world.directory.applications.all(Replica.LISTS), FIELDS, show_application)


def read_application(world: World, call: Call) -> HttpResponse:
    return answer(world, show_application(read_object(world.directory.applications, call)))


def read_by_client(world: World, call: Call) -> HttpResponse:
    client_id = key_of(call, "client")
    found = world.directory.application_of(client_id, Replica.READS)
    return answer(world, show_application(require(found, client_id)))


def read_by_name(world: World, call: Call) -> HttpResponse:
    require_upsert(world)
    unique_name = key_of(call, "name")
    found = world.directory.application_named(unique_name, Replica.READS)
    return answer(world, show_application(require(found, unique_name)))


def create_application(world: World, call: Call) -> HttpResponse:
    properties = _read_properties(world, call)
    unique_name = properties.get("unique_name")
    if unique_name is not None and world.directory.application_named(unique_name):
        raise in_use("Another object with the same value for property uniqueName already exists.")
    return _create(world, call, properties)


def upsert_application(world: World, call: Call) -> HttpResponse:
    """Change the application of that unique name; create it if there is none and the client asks for that."""
    require_upsert(world)
    unique_name = key_of(call, "name")
    existing = world.directory.application_named(unique_name)
    properties = _read_properties(world, call, existing)
    if properties.setdefault("unique_name", unique_name) != unique_name:
        raise bad_request("The property 'uniqueName' cannot be changed.")
    if existing is not None:
        return _change(world, call, existing, properties)
    if not creates_if_missing(call):
        raise missing(unique_name)
    return _create(world, call, properties)


def change_application(world: World, call: Call) -> HttpResponse:
    application = _find_for_write(world, call)
    properties = _read_properties(world, call, application)
    if properties.setdefault("unique_name", application.unique_name) != application.unique_name:
        raise bad_request("The property 'uniqueName' cannot be changed.")
    return _change(world, call, application, properties)


def delete_application(world: World, call: Call) -> HttpResponse:
    world.directory.delete_application(_find_for_write(world, call))
    return no_content(world)


def add_password(world: World, call: Call) -> HttpResponse:
    return passwords.add_password(world, call, _find_for_write(world, call))


def remove_password(world: World, call: Call) -> HttpResponse:
    known = require(world.directory.applications.get(call.names["id"].lower(), Replica.WRITES), call.names["id"])
    return passwords.remove_password(world, call, _find_for_write(world, call), known)


def _find_for_write(world: World, call: Call) -> Application:
    return find_for_write(world.directory.applications, call.names["id"])


def _create(world: World, call: Call, properties: Json) -> HttpResponse:
    if "display_name" not in properties:
        raise bad_request("The required property 'displayName' is missing.")
    world.directory.purge_expired()
    if world.directory.is_full(world.behaviour.quotas["applications"]):
        raise Refusal(
            403, "Directory_QuotaExceeded", "The directory object quota limit for the tenant has been exceeded."
        )
    certificates = properties.pop("certificates", ())
    application = world.directory.add_application(**properties, by=call.caller.client_id)
    if certificates:
        _change(world, call, application, {"certificates": certificates})
    return answer(world, show_application(require(world.directory.applications.get(application.id), "")), 201)


def _change(world: World, call: Call, application: Application, properties: Json) -> HttpResponse:
    refuse_concurrent_change(world, application.id)
    changed = evolve(application, **properties)
    world.directory.replace(changed)
    world.directory.note_certificates(application, changed, by=call.caller.client_id)
    return no_content(world)


def _read_properties(world: World, call: Call, application: Application | None = None) -> Json:
    """The attributes that the body sets; of an application, if there is one already."""
    body = read_body(call, BODY)
    if "tags" in body:
        try:
            body["tags"] = tuple(dict.fromkeys(require_texts(body["tags"], "'tags'")))
        except Refusal as refusal:
            raise bad_request(refusal.message) from None
    texts = [body.get("displayName", "x"), body.get("uniqueName") or "x", *body.get("tags", ())]
    if not all(1 <= len(text) <= MAX_NAME for text in texts):
        raise bad_request(f"Names and tags have 1 to {MAX_NAME} characters.")
    if body.get("signInAudience", AUDIENCES[0]) not in AUDIENCES:
        raise bad_request(f"'signInAudience' must be one of {', '.join(AUDIENCES)}.")
    if "keyCredentials" in body:
        known = application.certificates if application else ()
        body["keyCredentials"] = read_certificates(world, body["keyCredentials"], known)
    return {ATTRIBUTES[name]: value for name, value in body.items()}


ITEM: Final = f"{ROOT}/applications/{{id}}"
NAMED: Final = f"{ROOT}/applications(uniqueName='{{name}}')"

ROUTES: Final = (
    Route("GET", f"{ROOT}/applications", list_applications),
    Route("POST", f"{ROOT}/applications", create_application, writes=True),
    Route("GET", NAMED, read_by_name),
    Route("PATCH", NAMED, upsert_application, writes=True),
    Route("GET", f"{ROOT}/applications(appId='{{client}}')", read_by_client),
    Route("GET", ITEM, read_application),
    Route("PATCH", ITEM, change_application, writes=True),
    Route("DELETE", ITEM, delete_application, writes=True),
    Route("POST", f"{ITEM}/addPassword", add_password, writes=True),
    Route("POST", f"{ITEM}/removePassword", remove_password, writes=True),
)
