"""Explain: the trace of a login over the wire, for privileged callers, and never a token."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.effects import CallProvider
from tests.installation import Installation
from tests.logins import RESOURCE, configure_logins, login_form
from tests.tokens import new_token, write_policy

EXPLAIN = "auth/cloud/explain"


def explained(world: Installation, body: dict[str, object], token: str = "root") -> Any:
    return world.must("POST", EXPLAIN, body, token).data


def failed(data: Any) -> list[str]:
    return [check["check"] for check in data["checks"] if check["verdict"] == "failed"]


def resource_of(machine: Any) -> str:
    group = f"/subscriptions/{machine['subscription']}/resourcegroups/{machine['resource_group']}"
    return f"{group}/providers/Microsoft.Compute/virtualMachines/{machine['name']}"


def as_data(machine: Any, **changes: object) -> dict[str, object]:
    body: dict[str, object] = {
        "role": "dev",
        "subscription_id": machine["subscription"],
        "resource_group_name": machine["resource_group"],
        "vm_name": machine["name"],
        "claims": {"oid": machine["principals"][0], "xms_mirid": resource_of(machine)},
    }
    return {**body, **changes}


def test_the_body_of_a_login_is_explained_and_gives_no_token() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world))
    before = world.keys("token/")
    reply = world.must("POST", EXPLAIN, body)
    assert (reply.data["role"], reply.data["verdict"], reply.data["codes"]) == ("dev", "admitted", [])
    assert world.keys("token/") == before
    assert str(body["jwt"]).encode() not in reply.response.body
    assert b"client_token" not in reply.response.body


def test_a_token_from_a_file_ends_with_its_line() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world))
    body["jwt"] = f"{body['jwt']}\r\n"
    world.must("POST", "auth/cloud/login", body, "")
    assert explained(world, body)["verdict"] == "admitted"


def test_all_failures_are_told_with_what_was_expected_and_what_was_found() -> None:
    world = Installation()
    machine = configure_logins(world, bound_locations="elsewhere", bound_resource_groups="another", max_jwt_exp=1)
    body = login_form(world, machine, vm_name="another")
    data = explained(world, body)
    assert failed(data) == ["max_jwt_exp", "vm_name", "bound_resource_groups", "bound_locations"]
    assert data["codes"][0] == world.refused("POST", "auth/cloud/login", body, "")[1]
    found = {check["check"]: (check["expected"], check["found"]) for check in data["checks"]}
    assert found["bound_resource_groups"] == (["another"], machine["resource_group"].lower())
    assert found["bound_locations"][0] == ["elsewhere"]


def test_nothing_is_told_of_a_token_whose_signature_does_not_hold() -> None:
    world = Installation()
    machine = configure_logins(world)
    body = login_form(world, machine)
    head, _, signature = str(body["jwt"]).rpartition(".")
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    reply = world.must("POST", EXPLAIN, {**body, "jwt": f"{head}.{flipped}"})
    data = reply.data
    assert (data["verdict"], data["codes"], failed(data)) == ("refused", ["login_refused"], ["signature"])
    assert machine["principals"][0].encode() not in reply.response.body
    assert explained(world, {**body, "jwt": "x"})["codes"] == ["jwt_malformed"]


def test_a_missing_configuration_is_not_explained_as_a_signature() -> None:
    """The token may be valid: there is nothing to verify it with."""
    world = Installation()
    body = login_form(world, configure_logins(world))
    world.must("DELETE", "auth/cloud/config")
    assert world.refused("POST", EXPLAIN, body) == (400, "config_missing")


def test_a_provider_that_hangs_is_not_explained_as_a_signature() -> None:
    """The keys of the tenant do not come before the request's deadline."""
    world = Installation()
    body = login_form(world, configure_logins(world))
    world.restart()  # keys are not known any more
    world.fail("login", delay=600)
    status, code = world.refused("POST", EXPLAIN, body, x_service_deadline="5")[:2]
    assert (status, code) == (504, "deadline_passed")


def test_claims_and_facts_can_be_given_as_data() -> None:
    world = Installation()
    machine = configure_logins(world, bound_locations="westus2")
    assert explained(world, as_data(machine))["verdict"] == "undecided"
    here: dict[str, object] = {"location": "West US 2", "principals": machine["principals"]}
    assert explained(world, as_data(machine, facts={"machine": here}))["verdict"] == "admitted"
    elsewhere = {**here, "location": "East US"}
    assert failed(explained(world, as_data(machine, facts={"machine": elsewhere}))) == ["bound_locations"]
    assert failed(explained(world, as_data(machine, facts={"machine": None}))) == ["machine"]


def test_the_provider_is_asked_nothing_about_claims_that_nothing_proves() -> None:
    world = Installation()
    machine = configure_logins(world, bound_locations="westus2")
    start = len(world.trace)
    explained(world, as_data(machine))
    asked = [effect.request.url for _, effect in world.trace[start:] if isinstance(effect, CallProvider)]
    assert asked
    assert not [url for url in asked if "/arm/" in url or "/graph/" in url]


def test_facts_that_the_provider_does_not_tell_now_are_undecided() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world, bound_locations="westus2"))
    world.fail("arm", status=403, code="AuthorizationFailed")
    reply = world.must("POST", EXPLAIN, body)
    assert reply.data["verdict"] == "undecided"
    assert "does not permit this operation" in reply.body["warnings"][0]


def test_the_source_address_is_decided_when_it_is_given() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world, token_bound_cidrs="10.0.0.0/8"))
    assert explained(world, body)["verdict"] == "undecided"
    assert explained(world, {**body, "remote_address": "10.1.1.1"})["verdict"] == "admitted"
    assert failed(explained(world, {**body, "remote_address": "192.0.2.1"})) == ["token_bound_cidrs"]


def test_sudo_is_needed() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world))
    write_policy(world, "plain", (EXPLAIN, ["create", "update"]))
    write_policy(world, "privileged", (EXPLAIN, ["update", "sudo"]))
    assert world.refused("POST", EXPLAIN, body, new_token(world, policies=["plain"])) == (403, "permission_denied")
    assert world.ask("POST", EXPLAIN, body, new_token(world, policies=["privileged"])).status == 200
    assert world.refused("POST", EXPLAIN, body, "") == (403, "permission_denied")


def test_the_request_and_its_answer_are_recorded_without_the_token() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", {"type": "file", "options": {"file_path": "/var/log/audit.log"}})
    body = login_form(world, configure_logins(world))
    start = len(world.events)
    explained(world, body)
    told = [repr(event) for event in world.events[start:]]
    assert [EXPLAIN in event for event in told] == [True, True]
    assert "role='dev'" in told[1]
    assert not any(str(body["jwt"]) in event for event in told)


@pytest.mark.parametrize(
    "changes, refused",
    [
        ({"jwt": "x"}, "fields_exclusive"),
        ({"claims": None}, "field_required"),
        ({"claims": None, "jwt": "x", "facts": {}}, "fields_exclusive"),
        ({"claims": "x"}, "field_invalid"),
        ({"claims": {}}, "jwt_claim_missing"),
        ({"facts": "x"}, "field_invalid"),
        ({"role": "nobody"}, "role_not_found"),
        ({"role": ""}, "field_required"),
        ({"vm_name": "/"}, "field_invalid"),
    ],
)
def test_what_cannot_be_explained_is_refused(changes: dict[str, object], refused: str) -> None:
    world = Installation()
    assert world.refused("POST", EXPLAIN, as_data(configure_logins(world), **changes))[1] == refused


def test_it_needs_a_configuration() -> None:
    world = Installation()
    machine = configure_logins(world)
    world.must("DELETE", "auth/cloud/config")
    assert world.refused("POST", EXPLAIN, as_data(machine)) == (400, "config_missing")


def test_the_audience_is_that_of_the_mount() -> None:
    world = Installation()
    machine = configure_logins(world)
    claims = {"oid": machine["principals"][0], "xms_mirid": resource_of(machine), "aud": RESOURCE + "x"}
    assert failed(explained(world, as_data(machine, claims=claims))) == ["aud"]
