"""Federated identity credentials of applications: which issuer's assertions stand in for their secret."""

from __future__ import annotations

from typing import Final

from cloudid_core.effects import HttpResponse

from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Route
from ..engine.shapes import NOTHING, Shape
from ..world.objects import Application, FederatedCredential
from ..world.world import World
from .conventions import ROOT, answer, bad_request, find_for_write, in_use, missing, no_content, read_body, read_object

MOST: Final = 20
"""How many one application may have."""
INVALID: Final = "InvalidFederatedIdentityCredentialValue"
NEW: Final[Shape] = {
    "name": (str,),
    "issuer": (str,),
    "subject": (str,),
    "audiences": (list,),
    "description": (str, NOTHING),
}


def show(credential: FederatedCredential) -> Json:
    return {
        "id": credential.id,
        "name": credential.name,
        "issuer": credential.issuer,
        "subject": credential.subject,
        "audiences": [credential.audience],
        "description": None,
    }


def list_credentials(world: World, call: Call) -> HttpResponse:
    application = read_object(world.directory.applications, call)
    return answer(world, {"value": [show(one) for one in _all(world, application)]})


def add_credential(world: World, call: Call) -> HttpResponse:
    application = _find(world, call)
    wanted, others = read_body(call, NEW), _all(world, application)
    audiences = wanted.get("audiences")
    if not (wanted.get("name") and wanted.get("issuer") and wanted.get("subject")):
        raise bad_request("A federated identity credential needs a name, an issuer and a subject.")
    if audiences is None or len(audiences) != 1 or type(audiences[0]) is not str:
        raise Refusal(400, INVALID, "A federated identity credential has one audience.")
    if any(one.name == wanted["name"] for one in others):
        raise in_use("FederatedIdentityCredential with that name already exists.")
    if any((one.issuer, one.subject) == (wanted["issuer"], wanted["subject"]) for one in others):
        raise Refusal(400, INVALID, "The combination of issuer and subject must be unique for the application.")
    if len(others) >= MOST:
        raise Refusal(403, "Directory_QuotaExceeded", f"An application has at most {MOST} federated credentials.")
    credential = FederatedCredential(
        id=world.randomness.guid("federation"),
        client_id=application.client_id,
        issuer=wanted["issuer"],
        subject=wanted["subject"],
        audience=audiences[0],
        name=wanted["name"],
        known_from=world.now(),
    )
    world.federations[credential.id] = credential
    world.directory.note_federation(application, credential, by=call.caller.client_id)
    return answer(world, show(credential), 201)


def remove_credential(world: World, call: Call) -> HttpResponse:
    application, credential_id = _find(world, call), call.names["credential"]
    if all(one.id != credential_id for one in _all(world, application)):
        raise missing(credential_id)
    del world.federations[credential_id]
    world.directory.note_federation_gone(credential_id)
    return no_content(world)


def _find(world: World, call: Call) -> Application:
    return find_for_write(world.directory.applications, call.names["id"])


def _all(world: World, application: Application) -> list[FederatedCredential]:
    return [one for one in world.federations.values() if one.client_id == application.client_id]


ALL: Final = f"{ROOT}/applications/{{id}}/federatedIdentityCredentials"

ROUTES: Final = (
    Route("GET", ALL, list_credentials),
    Route("POST", ALL, add_credential, writes=True),
    Route("DELETE", f"{ALL}/{{credential}}", remove_credential, writes=True),
)
