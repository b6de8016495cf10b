"""An issue of credentials while something else happens, before each of its effects in turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final

import pytest

from tests.simulation.invariants import check_always, check_in_the_end
from tests.simulation.operations import TOKEN_ROLES, copy_of, furnished, giving_tokens
from tests.simulation.recorded import RecordedInstallation

from .interleaving import interleaved, raced

ROLES: Final = ("fresh", "existing", "kept")
EVENTS: Final[dict[str, Callable[[RecordedInstallation, str], object]]] = {
    "revocation of all leases": lambda world, _: world.ask("PUT", "sys/leases/revoke-prefix/cloud"),
    "forced revocation of all leases": lambda world, _: world.ask("PUT", "sys/leases/revoke-force/cloud"),
    "deletion of the role": lambda world, role: world.ask("DELETE", f"cloud/roles/{role}"),
    "end of the mount": lambda world, _: world.ask("DELETE", "sys/mounts/cloud"),
    "change of the configuration": lambda world, _: world.ask("POST", "cloud/config", {"root_password_ttl": "60d"}),
    "background work": lambda world, _: world.tick(),
}
HARMLESS: Final = ("background work", "change of the configuration")
SPACING: Final = 4
"""Every so many effects something happens; another one for each role, so that all are met."""


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("event", EVENTS)
def test_nothing_is_lost_or_leaked(event: str, role: str) -> None:
    for at in count(ROLES.index(role), SPACING):
        world = copy_of(furnished())
        happen = partial(EVENTS[event], world, role)
        issue = world.program(world.request("GET", f"cloud/creds/{role}"))
        response, effects = interleaved(world, issue, {at: [happen]})
        if at >= effects:
            break
        world.receive(response)
        if response.status == 200 and event not in HARMLESS:
            world.give_back("")
        assert response.status in (200, 400, 404, 502, 503, 504), (at, response.status, response.failure)
        check_always(world)
        world.converge()
        check_in_the_end(world)
        if event == "end of the mount":
            assert world.ask("LIST", "sys/leases/lookup").status == 404, at
            assert world.ask("LIST", "sys/retiring").status == 404, at
            assert not world.simulator.ledger.alive(), at


# What happens right before the commits of an issue. Each of them expects everything that its decision rested on.

CALLER: Final = "caller"
ALL: Final = 'path "*" { capabilities = ["create", "read", "update", "delete", "list", "sudo"] }'
RACES: Final[dict[str, Callable[[RecordedInstallation, str], object]]] = {
    "the role is deleted": lambda world, role: world.must("DELETE", f"cloud/roles/{role}"),
    "the mount is disabled": lambda world, _: world.must("DELETE", "sys/mounts/cloud"),
    "the token is revoked": lambda world, _: world.must("PUT", "auth/token/revoke", {"token": CALLER}),
}
CHANGES: Final[dict[str, Callable[[RecordedInstallation, str], object]]] = {
    "the role is written": lambda world, role: world.must("POST", f"cloud/roles/{role}", {"ttl": "2h"}),
    "the configuration is written": lambda world, _: world.must("POST", "cloud/config", {"root_password_ttl": "60d"}),
}


def with_caller() -> RecordedInstallation:
    """A world with a token that is not the root's."""
    world = copy_of(furnished())
    world.must("PUT", "sys/policies/acl/all", {"policy": ALL})
    world.must("POST", "auth/token/create", {"id": CALLER, "policies": ["all"]})
    return world


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("race", RACES)
def test_a_lease_is_made_only_while_all_that_it_rests_on_stands(race: str, role: str) -> None:
    world = with_caller()
    issue = world.program(world.request("GET", f"cloud/creds/{role}", token=CALLER))
    response, conflicts = raced(world, issue, "lease/", partial(RACES[race], world, role))
    assert (response.status, conflicts) == (403 if race == "the token is revoked" else 400, 1)
    world.converge()
    check_in_the_end(world)
    assert world.ask("LIST", "sys/leases/lookup").status == 404


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("change", CHANGES)
def test_an_issue_begins_under_the_present_role_and_configuration(change: str, role: str) -> None:
    world = with_caller()
    issue = world.program(world.request("GET", f"cloud/creds/{role}", token=CALLER))
    response, conflicts = raced(world, issue, "/intent/", partial(CHANGES[change], world, role))
    assert (response.status, conflicts) == (200, 1)
    hours = 2 if change == "the role is written" else 1
    assert json.loads(response.body)["lease_duration"] == hours * 3600


@pytest.mark.parametrize("role", ROLES)
def test_an_issue_does_not_begin_in_a_mount_that_is_disabled(role: str) -> None:
    world = with_caller()
    issue = world.program(world.request("GET", f"cloud/creds/{role}", token=CALLER))
    response, conflicts = raced(world, issue, "/intent/", partial(RACES["the mount is disabled"], world, role))
    assert (response.status, conflicts) == (404, 1)
    world.converge()
    check_in_the_end(world)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_written_under_the_present_configuration(role: str) -> None:
    """What it refers to was looked up as the configuration says."""
    world = with_caller()
    writing = world.program(world.request("POST", f"cloud/roles/{role}", {"ttl": "2h"}, CALLER))
    response, conflicts = raced(
        world, writing, f"/role/{role}", partial(CHANGES["the configuration is written"], world, role)
    )
    assert (response.status, conflicts) == (204, 1)
    assert world.must("GET", f"cloud/roles/{role}").data["ttl"] == 7200


# An access token, whose first request makes a secret that the role keeps.

TOKEN_EVENTS: Final = {
    **{name: EVENTS[name] for name in ("deletion of the role", "end of the mount", "background work")},
    "end of its tokens": lambda world, role: world.ask("POST", f"cloud/roles/{role}", {"token_scopes": ""}),
}


@pytest.mark.parametrize("role", TOKEN_ROLES)
@pytest.mark.parametrize("event", TOKEN_EVENTS)
def test_the_secret_for_tokens_is_the_roles_or_gone(event: str, role: str) -> None:
    for at in count(TOKEN_ROLES.index(role), SPACING):
        world = copy_of(giving_tokens())
        asking = world.program(world.request("GET", f"cloud/token/{role}"))
        response, effects = interleaved(world, asking, {at: [partial(TOKEN_EVENTS[event], world, role)]})
        if at >= effects:
            break
        assert response.status == 200 or (event, response.status) in (
            ("deletion of the role", 400),
            ("end of the mount", 400),
            ("end of the mount", 404),
            ("end of the mount", 502),
            ("end of its tokens", 400),
        ), (at, response.status, response.failure)
        check_always(world)
        world.converge()
        check_in_the_end(world)
