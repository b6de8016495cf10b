"""Applications and service principals: created, upserted, changed and deleted, and their passwords."""

from __future__ import annotations

import zlib
from functools import partial
from typing import Final

from attrs import evolve

from ..engine.behaviour import Replica
from ..engine.filters import unquote_text
from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Created, Route
from ..engine.shapes import OPTIONAL_TEXT, Shape, require_texts, show
from ..world.objects import Application, Principal
from ..world.world import World
from . import defaults
from .conventions import (
    ROOT,
    bad_request,
    denied,
    find_for_write,
    in_use,
    missing,
    over_quota,
    read_body,
    refuse_concurrent_change,
    require_upsert,
)
from .credentials import add_password, read_certificates, remove_password
from .objects import APPLICATION, GROUP, PRINCIPAL

AUDIENCES: Final = (
    "AzureADMyOrg",
    "AzureADMultipleOrgs",
    "AzureADandPersonalMicrosoftAccount",
    "PersonalMicrosoftAccount",
)
MAX_NAME: Final = 256

APPLICATION_BODY: Final[Shape] = {
    **defaults.shape(defaults.APPLICATION),
    "displayName": (str,),
    "uniqueName": OPTIONAL_TEXT,
    "signInAudience": (str,),
    "serviceManagementReference": OPTIONAL_TEXT,
    "tags": (list,),
    "keyCredentials": (list,),
    "passwordCredentials": (list,),
}
ATTRIBUTES: Final = {**APPLICATION, "keyCredentials": "certificates"}
PRINCIPAL_BODY: Final[Shape] = {
    **defaults.shape(defaults.PRINCIPAL),
    **dict.fromkeys(("appId", "displayName"), (str,)),
    "tags": (list,),
}
GROUP_BODY: Final[Shape] = {
    **defaults.shape(defaults.GROUP),
    **dict.fromkeys(("displayName", "mailNickname"), (str,)),
    "description": OPTIONAL_TEXT,
}


def create_application(world: World, call: Call) -> Created:
    properties = _read_properties(world, call)
    unique_name = properties.get("unique_name")
    if unique_name is not None and world.directory.application_named(unique_name):
        raise in_use("Another object with the same value for property uniqueName already exists.")
    return _create_application(world, call, properties)


def upsert_application(world: World, call: Call) -> Created | None:
    """Change the application of that unique name; create it if there is none and the client asks for that."""
    require_upsert(world)
    unique_name = unquote_text(call.names["key"])
    existing = world.directory.application_named(unique_name)
    properties = _read_properties(world, call, existing, unique_name)
    if existing is not None:
        _change(world, call, existing, properties)
        return None
    _require_creation(call, unique_name)
    return _create_application(world, call, properties)


def change_application(world: World, call: Call) -> None:
    application = find_for_write(world.directory.applications, call.names["id"])
    properties = _read_properties(world, call, application, application.unique_name)
    _change(world, call, application, properties)


def delete_application(world: World, call: Call) -> None:
    world.directory.delete_application(find_for_write(world.directory.applications, call.names["id"]))


def _require_creation(call: Call, key: str) -> None:
    """`Refusal` 404 for a key that nothing has, unless the client asks to create what is missing."""
    if "create-if-missing" not in (part.strip().lower() for part in call.headers.get("prefer", "").split(",")):
        raise missing(key)


def _create_application(world: World, call: Call, properties: Json) -> Created:
    if "display_name" not in properties:
        raise bad_request("The required property 'displayName' is missing.")
    if world.behaviour.requires_reference and not properties.get("service_management_reference"):
        message = "ServiceManagementReference field is required for Create, but is missing in the request."
        raise Refusal(400, "ServiceTreeValueMissing", message)
    world.directory.purge_expired()
    if world.directory.is_full(world.behaviour.quotas["applications"]):
        raise over_quota("The directory object quota limit for the tenant has been exceeded.")
    certificates = properties.pop("certificates", ())
    application = world.directory.add_application(**properties, by=call.caller.client_id)
    if certificates:
        application = _change(world, call, application, {"certificates": certificates})
    return Created(show(application, APPLICATION))


def _change(world: World, call: Call, application: Application, properties: Json) -> Application:
    refuse_concurrent_change(world, application.id)
    changed = evolve(application, **properties)
    world.directory.replace(changed)
    for one in changed.certificates:
        if one not in application.certificates:
            world.ledger.record(call.caller.client_id, "certificate", one.key_id, (changed.id,), one.display_name)
    for one in application.certificates:
        if one not in changed.certificates:
            world.ledger.note_deleted(one.key_id)
    return changed


def _read_properties(
    world: World, call: Call, application: Application | None = None, unique_name: str | None = None
) -> Json:
    """The attributes that the body sets; of an application, if there is one already, whose unique name stays."""
    body = read_body(call, APPLICATION_BODY)
    if body.pop("passwordCredentials", None):
        raise bad_request("New password credentials must be generated with service actions.")
    given = defaults.others(body, defaults.APPLICATION)
    body |= _read_tags(body)
    texts = [body.get("displayName", "x"), body.get("uniqueName") or "x", *body.get("tags", ())]
    if not all(1 <= len(text) <= MAX_NAME for text in texts):
        raise bad_request(f"Names and tags have 1 to {MAX_NAME} characters.")
    if body.get("signInAudience", AUDIENCES[0]) not in AUDIENCES:
        raise bad_request(f"'signInAudience' must be one of {', '.join(AUDIENCES)}.")
    if "keyCredentials" in body:
        known = application.certificates if application else ()
        body["keyCredentials"] = read_certificates(world, body["keyCredentials"], known)
    if (application or unique_name) and body.setdefault("uniqueName", unique_name) != unique_name:
        raise bad_request("The property 'uniqueName' cannot be changed.")
    more = {"others": {**(application.others if application else {}), **given}} if given else {}
    return {ATTRIBUTES[name]: value for name, value in body.items()} | more


def _read_tags(body: Json) -> Json:
    """The tags of a body, if it has any."""
    if "tags" not in body:
        return {}
    try:
        return {"tags": tuple(dict.fromkeys(require_texts(body["tags"], "'tags'")))}
    except Refusal as refusal:
        raise bad_request(refusal.message) from None


def create_principal(world: World, call: Call) -> Created:
    body = read_body(call, PRINCIPAL_BODY)
    client_id = body.get("appId", "").lower()
    if world.directory.principal_of(client_id) is not None:
        raise _taken(client_id)
    return _create_principal(world, call, client_id, body)


def upsert_principal(world: World, call: Call) -> Created | None:
    """Create the principal of that application if there is none and the client asks for that."""
    require_upsert(world)
    client_id = unquote_text(call.names["key"]).lower()
    body = read_body(call, PRINCIPAL_BODY)
    if body.get("appId", client_id).lower() != client_id:
        raise bad_request("The property 'appId' cannot be changed.")
    if (principal := world.directory.principal_of(client_id)) is not None:
        world.directory.replace(_changed(principal, body))
        return None
    _require_creation(call, client_id)
    return _create_principal(world, call, client_id, body)


def change_principal(world: World, call: Call) -> None:
    principal = find_for_write(world.directory.principals, call.names["id"])
    world.directory.replace(_changed(principal, read_body(call, PRINCIPAL_BODY)))


def _changed(principal: Principal, body: Json) -> Principal:
    given = {**principal.others, **defaults.others(body, defaults.PRINCIPAL)}
    tags, name = _read_tags(body).get("tags", principal.tags), body.get("displayName", principal.display_name)
    return evolve(principal, display_name=name, tags=tags, others=given)


def delete_principal(world: World, call: Call) -> None:
    principal = find_for_write(world.directory.principals, call.names["id"])
    if principal.kind != "Application":
        raise denied("The principal of a managed identity is deleted with the identity.")
    world.directory.delete_principal(principal)


def _create_principal(world: World, call: Call, client_id: str, body: Json) -> Created:
    application = _require_application(world, client_id)
    if world.directory.keeps_name(client_id):
        raise _taken(client_id)
    properties = {"others": defaults.others(body, defaults.PRINCIPAL), **_read_tags(body)}
    name, by = body.get("displayName", application.display_name), call.caller.client_id
    made = world.directory.add_principal(name, "Application", application, by, **properties)
    return Created(show(made, PRINCIPAL))


def _require_application(world: World, client_id: str) -> Application:
    """The application. Until its creation reaches the replica that writes use, the error has one of three forms."""
    application = world.directory.application_of(client_id)
    if application is not None and world.directory.application_of(client_id, Replica.WRITES) is not None:
        return application
    refusals = (
        bad_request("The appId of the service principal does not reference a valid application object."),
        denied("The backing application of the service principal must be in the local tenant."),
        missing(client_id),
    )
    raise refusals[0 if application is None else zlib.crc32(client_id.encode()) % len(refusals)]


def create_group(world: World, call: Call) -> Created:
    """Create a security group. Its name need not be unique."""
    body = read_body(call, GROUP_BODY)
    wanted = ("displayName", "mailNickname", "mailEnabled", "securityEnabled")
    if missed := [name for name in wanted if name not in body]:
        raise bad_request(f"The required property '{missed[0]}' is missing.")
    properties = {"mail_nickname": body["mailNickname"], "description": body.get("description")}
    given = defaults.others(body, defaults.GROUP)
    name, by = body["displayName"], call.caller.client_id
    return Created(show(world.directory.add_group(name, by, others=given, **properties), GROUP))


def delete_group(world: World, call: Call) -> None:
    """Delete a group. Unlike Azure, it cannot be restored."""
    world.directory.remove_group(find_for_write(world.directory.groups, call.names["id"]))


def _taken(client_id: str) -> Refusal:
    return in_use(f"The service principal cannot be created: its name {client_id} is already in use.")


ROUTES: Final = (
    Route("POST", f"{ROOT}/applications", create_application, writes=True),
    Route("PATCH", f"{ROOT}/applications(uniqueName='{{key}}')", upsert_application, writes=True),
    Route("PATCH", f"{ROOT}/applications/{{id}}", change_application, writes=True),
    Route("DELETE", f"{ROOT}/applications/{{id}}", delete_application, writes=True),
    Route("POST", f"{ROOT}/servicePrincipals", create_principal, writes=True),
    Route("PATCH", f"{ROOT}/servicePrincipals(appId='{{key}}')", upsert_principal, writes=True),
    Route("PATCH", f"{ROOT}/servicePrincipals/{{id}}", change_principal, writes=True),
    Route("DELETE", f"{ROOT}/servicePrincipals/{{id}}", delete_principal, writes=True),
    Route("POST", f"{ROOT}/groups", create_group, writes=True),
    Route("DELETE", f"{ROOT}/groups/{{id}}", delete_group, writes=True),
    *(
        Route("POST", f"{ROOT}/{collection}/{{id}}/{prefix}{name}", partial(change, table), writes=True)
        for collection, table in (("applications", "applications"), ("servicePrincipals", "principals"))
        for name, change in (("addPassword", add_password), ("removePassword", remove_password))
        for prefix in ("", "microsoft.graph.")
    ),
)
