"""Role assignments that another party made: they are not ours to remove, and they do not outlive the principal."""

from __future__ import annotations

import pytest
from attrs import evolve

from cloudid_core.store import Changes
from cloudid_servers.provider_simulator.world.roles import RoleAssignment
from tests.engines import CONFIG, CREDS, EVERYTHING, ROLE, SecretsEngine, configured_engine

BY_HAND = "00000000-0000-4000-8000-00000000000a"


@pytest.fixture
def engine() -> SecretsEngine:
    """With a role that keeps an application with Reader; an operator gave its principal Contributor by hand."""
    engine = configured_engine()
    engine.role(persist_app=True)
    world = engine.simulator.world
    (contributor,) = (guid for guid, each in world.role_definitions.items() if each.role_name == "Contributor")
    (principal,) = engine.alive("principal")
    kind = "ServicePrincipal"
    world.role_assignments.add(
        RoleAssignment(BY_HAND, engine.scope, contributor, principal.id, kind, world.now(), "an operator")
    )
    return engine


def is_there(engine: SecretsEngine) -> bool:
    """Whether the assignment that was made by hand is there."""
    return any(each.guid == BY_HAND for each in engine.simulator.world.role_assignments.table.all())


def write(engine: SecretsEngine, *names: str) -> list[str]:
    """The warnings of a write of the role."""
    body = engine.must("POST", ROLE, {"azure_roles": engine.grants(*names)}).body
    engine.converge()
    warnings: list[str] = body["warnings"] if body else []
    return warnings


def test_an_assignment_made_by_hand_stays_with_a_warning_until_the_principal_is_deleted(engine: SecretsEngine) -> None:
    (warning,) = write(engine, "Reader", "Contributor")
    assert "was created by someone else" in warning
    assert engine.scope in warning
    assert write(engine, "Reader") == [warning]
    assert is_there(engine)
    assert write(engine, "Reader", "Contributor") == [warning]
    engine.must("DELETE", ROLE)
    engine.converge()
    assert not is_there(engine)
    assert engine.is_over()


def test_an_assignment_that_stays_counts_for_the_ceiling_until_it_is_removed(engine: SecretsEngine) -> None:
    write(engine, "Reader", "Contributor")
    write(engine, "Reader")
    engine.must("POST", CONFIG, {**EVERYTHING, "allowed_role_definitions": ["Reader"]})
    assert engine.refused("GET", CREDS) == (403, "ceiling_exceeded")
    table = engine.simulator.world.role_assignments
    (foreign,) = (each for each in table.table.all() if each.guid == BY_HAND)
    table.remove(foreign)
    write(engine, "Reader")
    engine.must("GET", CREDS)


def test_our_own_assignment_under_another_spelling_of_its_definition_is_kept(engine: SecretsEngine) -> None:
    role = engine.stored_role()
    kept = role.persistent_app
    assert kept is not None
    (reader,) = kept.assignments
    spelt = evolve(reader, role_id=f"/providers{reader.role_id.rpartition('/providers')[2]}")
    (key,) = (key for key in engine.keys("mount/") if key.endswith("/role/web"))
    older = evolve(role, persistent_app=evolve(kept, assignments=(spelt,)))
    engine.perform(engine.context.records.commit(Changes(puts={key: older})))
    assert write(engine, "Reader") == []
    assert len(engine.alive("assignment")) == 1


RECONCILE = "cloud/reconcile"


def unrecorded(engine: SecretsEngine) -> list[dict[str, str]]:
    found: list[dict[str, str]] = engine.must("GET", RECONCILE).data["unrecorded_assignments"]
    return found


def test_the_deletion_of_a_principal_takes_assignments_with_it_that_no_record_lists(engine: SecretsEngine) -> None:
    """Made by hand and never asked for by the role, or ours and lost with an older copy of the store."""
    assert is_there(engine)
    engine.must("DELETE", ROLE)
    engine.converge()
    assert not is_there(engine)
    assert engine.is_over()


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_what_may_not_be_listed_or_removed_keeps_nothing_else_waiting(engine: SecretsEngine, method: str) -> None:
    path = "/arm/.*/roleAssignments" + ("" if method == "GET" else f"/{BY_HAND}")
    engine.fail("arm", method=method, path=path, status=403, code="AuthorizationFailed")
    engine.must("DELETE", ROLE)
    engine.converge()
    assert is_there(engine)
    assert not engine.alive("application", "principal", "assignment")


def test_reconcile_reports_assignments_that_the_role_of_a_kept_application_does_not_list(engine: SecretsEngine) -> None:
    (found,) = unrecorded(engine)
    assert (found["role"], found["id"].rpartition("/")[2]) == ("web", BY_HAND)
    engine.must("POST", RECONCILE, {})
    engine.converge()
    assert is_there(engine)
    write(engine, "Reader", "Contributor")
    assert unrecorded(engine) == []
