"""A store of version 0.1.0 from before several rules became stricter, with what breaks each of them.

`store-3.sqlite` was made by that version's own code beside the simulated cloud: a role by which persons have logged in,
an engine whose role points at the application that two other mounts prove themselves with, an audit device outside
the folder for such files, secrets that audit was told to write clear, pauses of thirty years between retries, wrapped
answers that wait, one of them a stranger's, a token with bounds and its orphan without, and names in capitals.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from cloudid_core.events import RequestAnswered
from cloudid_core.store import keys
from cloudid_core.system.stored_rules import LOOK_PAUSE
from tests.core.health.test_problems import COMMAND, requests_in
from tests.installation import Installation
from tests.logins import log_in

from .old_stores import installation_over, made

MADE: Final = made("store-3")
PEOPLE: Final = "auth/Team/Web/role/people"

PROBLEMS: Final = {
    "audit_file_anywhere": 1,
    "audience_open": 1,
    "audit_keys_secret": 4,
    "delay_clamped": 2,
    "self_target": 1,
}
"""What is stored and breaks a rule: the code, and how many times."""


@pytest.fixture
def world() -> Installation:
    return installation_over("store-3")


def told(world: Installation) -> list[dict[str, str]]:
    """What health says is wrong, after a look at what is stored."""
    world.advance(LOOK_PAUSE)
    world.perform(world.service.upkeep())
    health = world.must("GET", "sys/health")
    assert health.status == 200
    details: list[dict[str, str]] = health.body["problem_details"]
    assert [detail["code"] for detail in details if detail["code"] not in health.body["problems"]] == []
    return details


def test_health_tells_what_breaks_which_rule_until_it_is_mended_as_health_says(world: Installation) -> None:
    details = told(world)
    assert Counter(detail["code"] for detail in details) == PROBLEMS
    for detail in details:
        if COMMAND.fullmatch(detail["remedy"]):
            for method, path, fields in requests_in(detail["remedy"]):
                world.must(method, path, fields or None)
    world.must("DELETE", "sys/audit/Elsewhere")
    world.tick()  # the background finds that the cloud does not have the application
    assert told(world) == []


@pytest.mark.parametrize("token", ["root_token", "person_token", "orphan_token", "default_token"])
def test_its_tokens_are_good(world: Installation, token: str) -> None:
    """That of a person too, who could not log in any more."""
    world.must("GET", "auth/token/lookup-self", token=MADE[token])


def test_a_person_needs_a_role_that_says_so(world: Installation) -> None:
    """The refusal names the field; roles that were stored before admit workloads."""
    assert world.must("GET", PEOPLE).data["bound_token_types"] == ["app"]
    now = world.clock
    claims = {**MADE["person"], "iat": now, "nbf": now, "exp": now + 3600}
    body = {"role": "People", "jwt": world.cloud("POST", "/simulator/tokens", {"claims": claims})["token"]}
    login = "auth/Team/Web/login"
    refusal = world.ask("POST", login, body, "")
    assert (refusal.status, refusal.codes) == (403, ["bound_token_type_mismatch"])
    assert "bound_token_types" in refusal.body["errors"][0]
    world.must("POST", PEOPLE, {"bound_token_types": "user"})
    assert world.must("POST", login, body, "").auth["metadata"]["jwt_type"] == "user"


def test_its_machines_log_in(world: Installation) -> None:
    assert log_in(world, world.scene["machines"][0])["policies"] == ["default", "team"]


def test_its_wrapped_answers_are_shown_once(world: Installation) -> None:
    for wrapping_token in MADE["wrapping_tokens"]:
        assert world.must("POST", "sys/wrapping/unwrap", {"token": wrapping_token}).data
        assert world.ask("POST", "sys/wrapping/unwrap", {"token": wrapping_token}).status == 400


def test_its_names_are_found_in_either_case(world: Installation) -> None:
    assert {"Team/Web/", "cloud/"} <= set(world.must("GET", "sys/auth").data)
    assert world.must("GET", "sys/policies/acl/Team").data["name"].lower() == "team"
    assert world.must("LIST", "broad/roles").data["keys"] == ["fresh", "steal"]
    assert world.must("GET", "sys/quotas/rate-limit/logins").data["rate"] == 1000
    assert world.must("GET", "sys/quotas/lease-count/Broad").data["max_leases"] == 100
    assert world.must("GET", "auth/token/roles/CI").data["orphan"] is True
    assert "elsewhere/" in {name.lower() for name in world.must("GET", "sys/audit").data}


def test_its_audit_device_goes_on(world: Installation) -> None:
    world.must("GET", "auth/token/lookup-self")
    answered = world.events[-1]
    assert isinstance(answered, RequestAnswered)
    assert answered.audit is not None
    assert [device.name for device in answered.audit.devices] == ["Elsewhere"]


def test_a_mount_that_was_enabled_as_azure_is_read(world: Installation) -> None:
    assert world.must("GET", "auth/Team/Web/config").data["retry_delay"] == 1_000_000_000 * 10**9


def test_its_leases_end(world: Installation) -> None:
    """What they stood for is unknown to this cloud, whichever application it belongs to."""
    for lease in MADE["leases"]:
        assert world.must("POST", "sys/leases/lookup", {"lease_id": lease}).data["ttl"] > 0
    world.must("PUT", "sys/leases/revoke-prefix/broad", {"sync": False})
    world.pass_time(3 * 3600)
    assert world.store.list(keys.LEASES, "", 10) == ()
