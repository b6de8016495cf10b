"""What credentials are made of, and that making it again is harmless."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.secrets_engine.grants import RoleGrant
from cloudid_core.secrets_engine.provisioning import paths_of, plan_assignments
from cloudid_core.testing import World
from tests.engines import CREDS, SecretsEngine, configured_engine

TROUBLES = [{"status": 500}, {"status": 503}, {"status": 429, "retry_after": 2}, {"drop": True}]
SCOPE = "/subscriptions/00000000-0000-4000-8000-000000000001"


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def test_assignments_get_ids_of_our_own() -> None:
    """One for each, below its scope, before anything is asked of the provider."""
    grants = tuple(RoleGrant(role_id=f"/r/{number}", scope=SCOPE) for number in range(3))
    world = World()
    planned = world.perform(plan_assignments(grants))
    assert [one.role_id for one in planned] == ["/r/0", "/r/1", "/r/2"]
    assert len(set(paths_of(planned))) == 3
    below = f"{SCOPE}/providers/Microsoft.Authorization/roleAssignments/"
    assert all(path.startswith(below) for path in paths_of(planned))
    assert world.perform(plan_assignments(())) == ()


@pytest.mark.parametrize(
    "method, path",
    [
        ("PATCH", "/graph/v1.0/applications"),
        ("PATCH", "/graph/v1.0/servicePrincipals"),
        ("PUT", "/arm/subscriptions/[^/]+/providers/Microsoft.Authorization/roleAssignments"),
        ("POST", "/graph/v1.0/groups/[^/]+/members"),
    ],
)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_call_whose_answer_is_lost_is_made_again(engine: SecretsEngine, method: str, path: str, trouble: Any) -> None:
    """Nothing is made twice by that, whether or not its work was done."""
    engine.role(azure_groups=engine.groups(0))
    for after in (False, True):
        engine.fail(method=method, path=path, times=1, after_work=after and trouble.get("status") != 429, **trouble)
        engine.must("GET", CREDS)
    kinds = ("application", "principal", "assignment", "membership", "password")
    assert {kind: len(engine.made(kind)) for kind in kinds} == dict.fromkeys(kinds, 2)
    engine.revoke_all()
    assert not engine.alive()


@pytest.mark.parametrize("answer", [400, 501])
def test_where_there_is_no_upsert_objects_are_found_by_their_marker(engine: SecretsEngine, answer: int) -> None:
    engine.behave(upsert=answer)
    engine.role(tags="mine")
    engine.fail(method="POST", path="/graph/v1.0/applications$", times=1, after_work=True, drop=True)
    engine.must("GET", CREDS)
    (application,) = engine.made("application")
    found = engine.simulator.world.directory.applications.get(application.id)
    assert found is not None
    assert found.tags[0] == "mine"
    assert found.tags[1] == found.display_name
    engine.revoke_all()
    assert not engine.alive()


def test_everything_that_is_looked_for_has_the_marker_of_this_installation(engine: SecretsEngine) -> None:
    """The secret of an application of the lease's own needs none: it is found, and deleted, with that."""
    prefix = engine.context.marker_prefix
    engine.role()
    engine.must("GET", CREDS)
    (own,) = engine.alive("application")
    engine.role(application_object_id=engine.other_application["object_id"])
    engine.must("GET", CREDS)
    names = [made.display_name or "" for made in engine.alive("application", "password") if own.id not in made.of]
    assert len(names) == 2
    assert all(name.startswith(prefix) for name in names)


def test_an_issue_waits_until_the_directory_knows_new_objects_everywhere(engine: SecretsEngine) -> None:
    """The directory needs a while to know them everywhere; that is no error."""
    engine.behave(preset="realistic")
    engine.role(azure_groups=engine.groups(0), ttl="1h")
    engine.must("GET", CREDS)
    assert {made.kind for made in engine.alive()} == {
        "application",
        "principal",
        "assignment",
        "membership",
        "password",
    }
