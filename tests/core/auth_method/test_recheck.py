"""The check at renewals, which a role asks for: what has gone is refused, what nobody can tell is renewed and told."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.auth_method.bounds import BOUNDS
from cloudid_core.auth_method.checks import Check
from cloudid_core.auth_method.recheck import PATIENCE
from cloudid_core.events import RenewalUnchecked
from cloudid_servers.provider_simulator.arm.resources import POWER
from tests.installation import Installation
from tests.logins import ROLE, configure_logins, log_in, login_form
from tests.tokens import is_valid

RENEW = "auth/token/renew-self"
ANY = {"bound_subscription_ids": "", "bound_service_principal_ids": "*"}
NOBODY = "00000000-0000-4000-8000-000000000000"
IDENTITY = "/subscriptions/{}/resourceGroups/group/providers/Microsoft.ManagedIdentity/userAssignedIdentities/mine"
OTHERS = {"bound_token_types": "user", "bound_identity_ids": IDENTITY.format(NOBODY)}


def logged_in(world: Installation, **role: object) -> str:
    """The token of a machine, by a role that asks for checks, two minutes later: what was known by then is old."""
    machine = configure_logins(world, **{"recheck_on_renewal": True, **role})
    token: str = log_in(world, machine)["client_token"]
    world.advance(120)
    return token


def answer(world: Installation, token: str) -> Any:
    """The errors of a renewal, or the codes that it warns of."""
    reply = world.ask("POST", RENEW, {}, token)
    if reply.status == 200:
        return [warning.rpartition(" ")[2] for warning in reply.body["warnings"] or ()]
    assert (reply.status, reply.codes) == (403, ["no_longer_admitted"])
    assert is_valid(world, token)  # it runs out
    return reply.body["errors"][0].rpartition(" ")[2]


def test_a_machine_that_is_gone_keeps_its_token_only_until_its_end() -> None:
    world = Installation()
    token = logged_in(world)
    before = len(world.trace)
    assert answer(world, token) == []
    path = world.scene["machines"][0]["resource_id"]
    assert [call for call in world.calls(before) if "/arm/" in call and path in call] == [f"GET /arm{path}"]
    world.cloud("DELETE", f"/simulator/machines/{world.scene['machines'][0]['name']}")
    world.advance(120)
    assert answer(world, token) == "machine_not_found"
    world.must("POST", ROLE, {"recheck_on_renewal": False})
    assert answer(world, token) == []


@pytest.mark.parametrize("state", POWER.values())
def test_a_machine_that_is_stopped_is_not_gone(state: str) -> None:
    world = Installation()
    token = logged_in(world)
    world.simulator.world.power[world.scene["machines"][0]["instance_id"]] = state
    assert answer(world, token) == []


def test_a_machine_that_was_made_anew_is_another() -> None:
    world = Installation()
    token = logged_in(world, **ANY)
    machine = world.scene["machines"][0]
    world.cloud("DELETE", f"/simulator/machines/{machine['name']}")
    members = ("name", "kind", "subscription", "resource_group", "location")
    world.cloud("POST", "/simulator/machines", {name: machine[name] for name in members})
    assert answer(world, token) == "machine_identity_mismatch"


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.name)
def test_the_bounds_of_now_count(bound: Check) -> None:
    """All but that of an identity, which the token of a machine with its own does not name: that is told."""
    world = Installation()
    token = logged_in(world)
    world.must("POST", ROLE, {bound.name: OTHERS.get(bound.name, NOBODY)})
    code = bound.code.wire
    assert answer(world, token) == ([code] if bound.name == "bound_identity_ids" else code)


def test_every_kind_of_machine_stays_admitted_wherever_the_mount_is_moved() -> None:
    world = Installation()
    configure_logins(world, recheck_on_renewal=True)
    world.must("POST", ROLE, ANY)
    tokens = []
    for machine in (each for each in world.scene["machines"] if len(each["principals"]) == 1):
        form = login_form(world, machine, subscription_id="", resource_group_name="", vm_name="")
        tokens.append(world.must("POST", "auth/cloud/login", form, "").auth["client_token"])
    world.must("POST", "sys/remount", {"from": "auth/cloud", "to": "auth/moved/there"})
    world.converge()
    assert len(tokens) > 2
    assert [answer(world, token) for token in tokens] == [[]] * len(tokens)


@pytest.mark.parametrize(
    "trouble, code",
    [
        ({"status": 403, "code": "AuthorizationFailed"}, "provider_permission_denied"),
        ({"status": 503}, "deadline_passed"),
        ({"delay": 1000}, ""),
    ],
)
def test_a_provider_in_trouble_renews_and_that_is_told(trouble: dict[str, Any], code: str) -> None:
    world = Installation()
    token = logged_in(world)
    world.fail("arm", **trouble)
    before = world.clock
    warned = answer(world, token)
    assert warned == [code or "deadline_passed"]
    assert world.clock - before <= PATIENCE
    told = [event for event in world.events if isinstance(event, RenewalUnchecked)]
    assert [(event.role, event.reason) for event in told] == [("dev", *warned)]


def test_the_identity_is_known_to_tokens_that_name_it() -> None:
    """Those from before do not: it is told."""
    world = Installation()
    machine = configure_logins(world, recheck_on_renewal=True, **ANY)
    mine = IDENTITY.format(machine["subscription"])
    claims = {
        "iss": f"https://sts.windows.net/{world.scene['tenant']}/",
        "aud": "https://management.azure.com/",
        "tid": world.scene["tenant"],
        "oid": machine["principals"][0],
        "exp": world.clock + 3600,
        "xms_mirid": mine,
    }
    form = {"role": "dev", "jwt": world.cloud("POST", "/simulator/tokens", {"claims": claims})["token"]}
    auth = world.must("POST", "auth/cloud/login", form, "").auth
    assert auth["metadata"]["identity_id"] == mine
    unnamed = log_in(world, machine)["client_token"]
    world.must("POST", ROLE, {"bound_identity_ids": mine})
    assert (answer(world, auth["client_token"]), answer(world, unnamed)) == ([], ["bound_identity_mismatch"])
    world.must("POST", ROLE, {"bound_identity_ids": mine.replace("mine", "yours")})
    assert answer(world, auth["client_token"]) == "bound_identity_mismatch"
