"""Roles that give nothing under the present ceiling: both types, with the reasons of each."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from cloudid_core.effects import Sleep
from cloudid_core.secrets_engine.stopped import COMPARED_AT_ONCE
from cloudid_core.system.stored_rules import LOOK_PAUSE
from tests.engines import CONFIG, EVERYTHING, SecretsEngine, configured_engine

RUN_COMMAND = "Microsoft.Compute/virtualMachines/runCommand/action"


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def stopped(engine: SecretsEngine) -> dict[str, Any]:
    data: dict[str, Any] = engine.must("GET", "cloud/ceiling").data
    assert data["count"] == len(data["stopped"])
    roles: dict[str, Any] = data["stopped"]
    return roles


def count_in_warning(engine: SecretsEngine, **ceiling: Any) -> str:
    warnings: list[str] = engine.must("POST", CONFIG, ceiling).body["warnings"]
    return warnings[-1].rpartition(" ")[2]


def redefine(engine: SecretsEngine, name: str, *actions: str) -> None:
    definitions = engine.simulator.world.role_definitions
    (guid,) = (guid for guid, each in definitions.items() if each.role_name == name)
    definitions[guid] = evolve(definitions[guid], actions=actions)


def problems(engine: SecretsEngine) -> list[dict[str, str]]:
    engine.advance(LOOK_PAUSE)
    engine.perform(engine.service.upkeep())
    details: list[dict[str, str]] = engine.must("GET", "sys/health").body["problem_details"]
    return [each for each in details if each["code"] == "privileged_role"]


def test_roles_and_static_roles_of_one_name_are_told_apart_and_counted_by_the_write(engine: SecretsEngine) -> None:
    existing = {"application_object_id": engine.other_application["object_id"]}
    for path in ("cloud/roles/one", "cloud/static-roles/one"):
        engine.must("POST", path, existing)
    assert count_in_warning(engine, **EVERYTHING) == "0"
    assert count_in_warning(engine, allowed_application_ids=[]) == "2"
    reason = ['"application_object_id" is not among "allowed_application_ids"']
    assert stopped(engine) == {"roles/one": reason, "static-roles/one": reason}
    assert engine.refused("GET", "cloud/static-creds/one") == (403, "ceiling_exceeded")
    assert engine.refused("POST", "cloud/rotate-role/one", {"force": True}) == (403, "ceiling_exceeded")


def test_roles_with_privileged_definitions_are_listed_with_their_reason(engine: SecretsEngine) -> None:
    engine.role(azure_roles=engine.grants("Reader", "Owner"))
    assert stopped(engine) == {}
    assert count_in_warning(engine, deny_privileged_roles=True) == "1"
    assert stopped(engine) == {"roles/web": ['"azure_roles", element 1: "deny_privileged_roles" refuses the role']}


def test_a_definition_that_cannot_be_read_is_warned_about(engine: SecretsEngine) -> None:
    engine.role(azure_roles=engine.grants("Owner"))
    engine.fail(method="GET", status=403, code="AuthorizationFailed")
    assert count_in_warning(engine, deny_privileged_roles=True) == "0"
    reply = engine.must("GET", "cloud/ceiling")
    assert reply.data == {"stopped": {}, "count": 0}
    assert reply.body["warnings"][0].endswith(": 1")


def test_health_names_roles_that_are_refused_since_taking_over_identities_is_privileged(engine: SecretsEngine) -> None:
    engine.role(azure_roles=engine.grants("Owner"))
    engine.must("POST", "cloud/roles/runner", {"azure_roles": engine.grants("Reader")})
    redefine(engine, "Reader", RUN_COMMAND)
    assert problems(engine) == []
    engine.must("POST", CONFIG, {"deny_privileged_roles": True})
    (problem,) = problems(engine)
    assert problem["text"].startswith("the role runner of cloud assigns")
    assert engine.refused("GET", "cloud/creds/runner") == (403, "ceiling_exceeded")
    engine.must("POST", CONFIG, {"deny_privileged_roles": False})
    assert problems(engine) == []


def test_other_programs_continue_while_many_roles_are_compared(engine: SecretsEngine) -> None:
    def pauses() -> int:
        engine.trace.clear()
        assert stopped(engine) == {}
        return sum(effect == Sleep(0.0) for _, effect in engine.trace)

    before = pauses()
    for number in range(4 * COMPARED_AT_ONCE):
        engine.must("POST", f"cloud/roles/role-{number}", {"azure_roles": engine.grants()})
    assert pauses() >= before + 3
