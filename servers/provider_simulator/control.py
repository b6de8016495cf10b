"""The control API: what testers and operators do to the world. Bodies are JSON; nobody signs in.

    GET    /simulator/world            tenant, subscriptions, applications with their secrets, groups, machines
    POST   /simulator/machines         make a machine: {"name", and if wanted: "kind", "subscription", "resource_group",
                                       "location", "identities": {"system_assigned": bool, "user_assigned": [name]},
                                       "groups": [name or id], "scale_set", "resource_name", "resource_type",
                                       "reader": bool} -> 201 and the machine as in the world. A reader's identities
                                       may read the resource manager and the directory. Groups and identities that are
                                       not there yet are made.
    DELETE /simulator/machines/{name}  204, or 404
    POST   /simulator/tokens           {"claims": {...}} -> {"token"}: any claims, signed with the current key
    POST   /simulator/keys/rotate      {"remove_old": bool} -> {"kid"}; old keys stay published unless removed
    GET    /simulator/faults           the rules that are not used up
    POST   /simulator/faults           a list of rules, which *replaces* all that were there; [] clears them
    GET    /simulator/behaviour        how slow, forgetful and narrow the cloud is
    POST   /simulator/behaviour        the fields that are to change -> the whole; `behaviour` documents them
    GET    /simulator/ledger           every object that was made through the API; `ledger` documents an entry
    POST   /simulator/clock            {"advance": seconds} or {"set": seconds since 1970} -> {"now"}
    POST   /simulator/reset            the world as the seed made it; clock, keys, faults and behaviour too

A fault rule is {"match": {"method", "path", "family"}, "times": n or null, "action": {...}}. It befalls a request when
all that `match` names fits: `path` is a regular expression that matches from the start of the path (so a plain prefix
does), `family` one of login, arm, graph, metadata. The first rule that fits and has times left is applied, alone.
Actions: {"status", "code", "message", "retry_after"} answers an error, {"drop": true} breaks the connection, both
before any work is done, or with "after_work": true when all of it is; {"delay": seconds} lets the answer arrive late,
and can be added to the others. The control API itself never fails on purpose.
"""

from __future__ import annotations

from typing import Final

from cloudid_core.effects import HttpResponse

from .behaviour import read_behaviour
from .faults import read_rules
from .machines import Machine, Order, create, remove
from .objects import Application
from .routing import ANYBODY, Call, Caller, Family, Json, Refusal, Route, empty_response, json_response
from .scenery import furnish
from .shapes import NUMBER, Shape, bad_request, require_object, require_texts
from .world import World

ORDER: Final[Shape] = {
    "name": (str,),
    "kind": (str,),
    "subscription": (str,),
    "resource_group": (str,),
    "location": (str,),
    "identities": (dict,),
    "groups": (list,),
    "scale_set": (str,),
    "resource_name": (str,),
    "resource_type": (str,),
    "reader": (bool,),
}
IDENTITIES: Final[Shape] = {"system_assigned": (bool,), "user_assigned": (list,)}
ROTATION: Final[Shape] = {"remove_old": (bool,)}
CLOCK: Final[Shape] = {"advance": NUMBER, "set": NUMBER}
CLAIMS: Final[Shape] = {"claims": (dict,)}

MAX_INSTANT: Final = 253_402_300_799.0
"""The last second of the year 9999, after which no date can be written."""


def word_error(world: World, refusal: Refusal) -> HttpResponse:
    error = {"code": refusal.code, "message": refusal.message}
    return json_response(refusal.status, {"error": error}, refusal.headers)


def admit(world: World, call: Call) -> Caller:
    """Anybody may do anything: the simulator holds nothing of worth."""
    return ANYBODY


def show_world(world: World, call: Call) -> HttpResponse:
    return json_response(
        200,
        {
            "seed": world.seed,
            "now": world.now(),
            "tenant": world.tenant_id,
            "tenant_domain": world.tenant_domain,
            "subscriptions": world.subscriptions,
            "applications": [_show_application(application) for application in world.directory.applications.all()],
            "groups": [{"id": group.id, "display_name": group.display_name} for group in world.directory.groups.all()],
            "identities": [
                {
                    "name": identity.name,
                    "resource_id": identity.resource_id,
                    "principal_id": identity.principal_id,
                    "client_id": identity.client_id,
                }
                for identity in world.identities.values()
            ],
            "machines": [_show_machine(machine) for machine in world.machines.values()],
        },
    )


def _show_application(application: Application) -> Json:
    return {
        "client_id": application.client_id,
        "client_secret": application.passwords[-1].secret if application.passwords else None,
        "object_id": application.id,
        "display_name": application.display_name,
    }


def _show_machine(machine: Machine) -> Json:
    return {
        "name": machine.name,
        "kind": machine.kind,
        "subscription": machine.subscription,
        "resource_group": machine.resource_group,
        "location": machine.location,
        "resource_id": machine.resource_id,
        "instance_id": machine.instance_id,
        "scale_set": machine.scale_set.name if machine.scale_set else None,
        "principals": [identity.principal_id for identity in machine.identities],
    }


def create_machine(world: World, call: Call) -> HttpResponse:
    wanted = require_object(call.json(), ORDER, "a machine")
    if "name" not in wanted:
        raise bad_request("A machine needs a 'name'.")
    identities = require_object(wanted.pop("identities", {}), IDENTITIES, "'identities'")
    if "user_assigned" in identities:
        identities["user_assigned"] = require_texts(identities["user_assigned"], "'user_assigned'")
    groups = require_texts(wanted.pop("groups", []), "'groups'")
    return json_response(201, _show_machine(create(world, Order(**wanted, **identities, groups=groups))))


def delete_machine(world: World, call: Call) -> HttpResponse:
    remove(world, call.names["name"])
    return empty_response()


def sign(world: World, call: Call) -> HttpResponse:
    body = require_object(call.json(), CLAIMS, "the body")
    return json_response(200, {"token": world.signing_key().sign(body.get("claims", {}))})


def rotate_keys(world: World, call: Call) -> HttpResponse:
    body = require_object(call.json() if call.body else {}, ROTATION, "the body")
    return json_response(200, {"kid": world.rotate_key(body.get("remove_old", False)).kid})


def show_faults(world: World, call: Call) -> HttpResponse:
    return json_response(200, [rule.as_json() for rule in world.faults if rule.times != 0])


def set_faults(world: World, call: Call) -> HttpResponse:
    world.faults = read_rules(call.json())
    return show_faults(world, call)


def show_behaviour(world: World, call: Call) -> HttpResponse:
    return json_response(200, world.behaviour.as_json())


def set_behaviour(world: World, call: Call) -> HttpResponse:
    world.spread.behaviour = read_behaviour(call.json(), world.behaviour)
    world.buckets.clear()
    return show_behaviour(world, call)


def show_ledger(world: World, call: Call) -> HttpResponse:
    return json_response(200, world.ledger.as_json())


def set_clock(world: World, call: Call) -> HttpResponse:
    body = require_object(call.json(), CLOCK, "the body")
    if len(body) != 1:
        raise bad_request("Give either 'advance' or 'set'.")
    now = world.now()
    wanted = body["set"] if "set" in body else now + body["advance"]
    if not 0 <= wanted <= MAX_INSTANT:
        raise bad_request("The clock shows only times from 1970 to 9999.")
    world.clock_offset += wanted - now
    return json_response(200, {"now": wanted})


def reset(world: World, call: Call) -> HttpResponse:
    world.clear()
    furnish(world)
    return empty_response()


CONTROL: Final = Family(
    name="simulator",
    prefix="/simulator/",
    admit=admit,
    word=word_error,
    routes=(
        Route("GET", "/simulator/world", show_world),
        Route("POST", "/simulator/machines", create_machine),
        Route("DELETE", "/simulator/machines/{name}", delete_machine),
        Route("POST", "/simulator/tokens", sign),
        Route("POST", "/simulator/keys/rotate", rotate_keys),
        Route("GET", "/simulator/faults", show_faults),
        Route("POST", "/simulator/faults", set_faults),
        Route("GET", "/simulator/behaviour", show_behaviour),
        Route("POST", "/simulator/behaviour", set_behaviour),
        Route("GET", "/simulator/ledger", show_ledger),
        Route("POST", "/simulator/clock", set_clock),
        Route("POST", "/simulator/reset", reset),
    ),
)
