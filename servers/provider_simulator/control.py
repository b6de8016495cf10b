"""The control API, which changes the world, as `docs/reference/simulator.md` has it. Callers need no access token."""

from __future__ import annotations

from typing import Final

import msgspec
from attrs import asdict

from .engine.behaviour import read_behaviour
from .engine.faults import read_rules
from .engine.requests import Call, Json, Refusal
from .engine.routing import Created, Route, Service
from .engine.shapes import NUMBER, Members, Shape, bad_request, read, require_object, require_texts, show
from .identity.keys import current_key, published_keys, rotate_key
from .identity.login import login_address, show_key
from .world.access import consent
from .world.initial import populate
from .world.objects import FederatedCredential
from .world.provisioning import MachineRequest, create_machine, remove_machine
from .world.world import World

ROTATION: Final[Shape] = {"remove_old": (bool,)}
CLOCK: Final[Shape] = {"advance": NUMBER, "set": NUMBER}
FEDERATION: Final[Shape] = dict.fromkeys(("client_id", "issuer", "subject", "audience"), (str,))
CONSENT: Final[Shape] = {"client_id": (str,), "permissions": (list,)}
CLAIMS: Final[Shape] = {"claims": (dict,)}

MAX_INSTANT: Final = 253_402_300_799.0
"""The last second of the year 9999; later dates cannot be written."""

SHOWN_APPLICATION: Final[Members] = {
    "client_id": "client_id",
    "client_secret": lambda one: one.passwords[-1].secret if one.passwords else None,
    "object_id": "id",
    "display_name": "display_name",
}
SHOWN_GROUP: Final[Members] = {"id": "id", "display_name": "display_name"}
SHOWN_IDENTITY: Final[Members] = {name: name for name in ("name", "resource_id", "principal_id", "client_id")}
SHOWN_MACHINE: Final[Members] = {
    **{name: name for name in ("name", "kind", "subscription", "resource_group", "location")},
    **{name: name for name in ("resource_id", "instance_id", "platform_secret", "arc_key_file")},
    "scale_set": lambda one: one.scale_set.name if one.scale_set else None,
    "principals": lambda one: [identity.principal_id for identity in one.identities],
}


def show_world(world: World, call: Call) -> Json:
    return {
        "seed": world.seed,
        "now": world.now(),
        "tenant": world.tenant_id,
        "tenant_domain": world.tenant_domain,
        "subscriptions": world.subscriptions,
        "applications": [show(one, SHOWN_APPLICATION) for one in world.directory.applications.all()],
        "groups": [show(one, SHOWN_GROUP) for one in world.directory.groups.all()],
        "identities": [show(one, SHOWN_IDENTITY) for one in world.identities.values()],
        "machines": [show(one, SHOWN_MACHINE) for one in world.machines.values()],
        "metadata_calls": world.metadata_calls,
        "assertions": world.assertions,
    }


def post_machine(world: World, call: Call) -> Created:
    machine = create_machine(world, read(call.json(), MachineRequest, "a machine"))
    return Created(show(machine, SHOWN_MACHINE))


def post_federation(world: World, call: Call) -> Created:
    wanted = require_object(call.json(), FEDERATION, "a federation")
    if missing := [name for name in FEDERATION if not wanted.get(name)]:
        raise bad_request(f"A federation needs {missing[0]!r}.")
    if world.directory.application_of(wanted["client_id"]) is None:
        raise bad_request("No application has that client id.")
    credential = FederatedCredential(world.randomness.guid("federation"), **wanted)
    world.federations[credential.id] = credential
    return Created(asdict(credential))


def delete_federation(world: World, call: Call) -> None:
    if world.federations.pop(call.names["id"], None) is None:
        raise Refusal(404, "FederationNotFound", "No federation has that id.")


def post_permissions(world: World, call: Call) -> None:
    wanted = require_object(call.json(), CONSENT, "a consent")
    principal = world.directory.principal_of(wanted.get("client_id", "").lower())
    if principal is None:
        raise bad_request("No application with that client id has a principal.")
    consent(world, principal.id, require_texts(wanted.get("permissions", []), "'permissions'"))


def sign(world: World, call: Call) -> Json:
    body = require_object(call.json(), CLAIMS, "the body")
    return {"token": current_key(world).sign(body.get("claims", {}))}


def rotate_keys(world: World, call: Call) -> Json:
    body = require_object(call.json() if call.body else {}, ROTATION, "the body")
    return {"kid": rotate_key(world, body.get("remove_old", False)).kid}


def change_key(world: World, call: Call) -> Json:
    key = next((key for key in published_keys(world) if key.kid == call.names["kid"]), None)
    if key is None:
        raise Refusal(404, "KeyNotFound", "No published key has that id.")
    members = call.json()
    if type(members) is not dict:
        raise bad_request("The body must be an object.")
    world.key_members[key.kid] = world.key_members.get(key.kid, {}) | members
    return show_key(world, key, login_address(world, call))


def show_faults(world: World, call: Call) -> list[Json]:
    return [msgspec.to_builtins(rule) for rule in world.faults if rule.times != 0]


def set_faults(world: World, call: Call) -> list[Json]:
    world.faults = read_rules(call.json())
    return show_faults(world, call)


def show_behaviour(world: World, call: Call) -> Json:
    return msgspec.structs.asdict(world.behaviour)


def set_behaviour(world: World, call: Call) -> Json:
    world.behaviour = read_behaviour(call.json(), world.behaviour)
    return show_behaviour(world, call)


def set_clock(world: World, call: Call) -> Json:
    body = require_object(call.json(), CLOCK, "the body")
    if len(body) != 1:
        raise bad_request("Give either 'advance' or 'set', and no other field.")
    now = world.now()
    wanted = body["set"] if "set" in body else now + body["advance"]
    if not 0 <= wanted <= MAX_INSTANT:
        raise bad_request("The clock must be set to a time from 1970 to 9999.")
    world.clock_offset += wanted - now
    return {"now": wanted}


def reset(world: World, call: Call) -> None:
    world.clear()
    populate(world)


CONTROL: Final = Service(
    name="simulator",
    prefix="/simulator/",
    routes=(
        Route("GET", "/simulator/world", show_world),
        Route("POST", "/simulator/machines", post_machine),
        Route("DELETE", "/simulator/machines/{name}", lambda world, call: remove_machine(world, call.names["name"])),
        Route("GET", "/simulator/federations", lambda world, call: list(map(asdict, world.federations.values()))),
        Route("POST", "/simulator/federations", post_federation),
        Route("DELETE", "/simulator/federations/{id}", delete_federation),
        Route("POST", "/simulator/permissions", post_permissions),
        Route("POST", "/simulator/tokens", sign),
        Route("POST", "/simulator/keys/rotate", rotate_keys),
        Route("POST", "/simulator/keys/{kid}", change_key),
        Route("GET", "/simulator/faults", show_faults),
        Route("POST", "/simulator/faults", set_faults),
        Route("GET", "/simulator/behaviour", show_behaviour),
        Route("POST", "/simulator/behaviour", set_behaviour),
        Route("GET", "/simulator/requests", lambda world, call: world.buckets.counts),
        Route("GET", "/simulator/ledger", lambda world, call: world.ledger.as_json()),
        Route("POST", "/simulator/clock", set_clock),
        Route("POST", "/simulator/reset", reset),
    ),
)
