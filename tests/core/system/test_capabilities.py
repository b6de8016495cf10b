"""The capabilities of a token at given paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloudid_core.effects import Sleep
from cloudid_core.system.capabilities import AT_ONCE
from tests.installation import Installation

POLICY = """
path "cloud/creds/*" { capabilities = ["update", "read"] }
path "cloud/config" { capabilities = ["deny"] }
path "cloud/roles/" { capabilities = ["list"] }
"""
PATHS = ["cloud/creds/web", "/cloud/creds/web", "cloud/config", "cloud/roles", "cloud/roles/", "nowhere"]
TOLD = {
    "cloud/creds/web": ["read", "update"],
    "/cloud/creds/web": ["read", "update"],
    "cloud/config": ["deny"],
    "cloud/roles": ["deny"],
    "cloud/roles/": ["list"],
    "nowhere": ["deny"],
}


@pytest.fixture
def service() -> Installation:
    service = Installation()
    service.must("PUT", "sys/policies/acl/app", {"policy": POLICY})
    return service


@pytest.fixture
def auth(service: Installation) -> Any:
    return service.must("POST", "auth/token/create", {"policies": ["app"]}).auth


def test_a_caller_can_read_its_own_capabilities(service: Installation, auth: Any) -> None:
    """The default policy lets everybody ask."""
    assert service.must("POST", "sys/capabilities-self", {"paths": PATHS}, auth["client_token"]).data == TOLD


def test_another_caller_can_ask_for_those_of_a_token_or_an_accessor(service: Installation, auth: Any) -> None:
    by_token = {"paths": PATHS, "token": auth["client_token"]}
    by_accessor = {"paths": PATHS, "accessor": auth["accessor"]}
    assert service.must("POST", "sys/capabilities", by_token).data == TOLD
    assert service.must("POST", "sys/capabilities-accessor", by_accessor).data == TOLD


@pytest.mark.parametrize("body", [{"paths": ["cloud/config"]}, {"path": "cloud/config"}, {"paths": "cloud/config"}])
def test_the_capabilities_of_a_single_path_have_a_member_of_their_own(
    service: Installation, auth: Any, body: dict[str, Any]
) -> None:
    reply = service.must("PUT", "sys/capabilities-self", body, auth["client_token"])
    assert reply.data == {"cloud/config": ["deny"], "capabilities": ["deny"]}
    assert reply.body["capabilities"] == reply.body["cloud/config"] == ["deny"]


def write_patterns(service: Installation, count: int) -> None:
    """Let the token's policy have so many patterns."""
    paths = {f"cloud/+/{number}/*": {"capabilities": ["read"]} for number in range(count)}
    service.must("PUT", "sys/policies/acl/app", {"policy": json.dumps({"path": paths})})


def test_other_requests_run_between_many_comparisons(service: Installation, auth: Any) -> None:
    """Each path is compared with all patterns of the policies: thousands of both would take seconds in one go."""
    write_patterns(service, 1000)
    paths = [f"cloud/creds/{number}/x" for number in range(900)]
    asking = service.spawn(
        service.asking("POST", "sys/capabilities-self", {"paths": paths}, auth["client_token"]), "capabilities"
    )
    service.settle()
    assert asking.result().data == {path: ["read"] for path in paths}
    pauses = [effect for name, effect in service.trace if name == "capabilities" and isinstance(effect, Sleep)]
    assert len(pauses) + 1 >= len(paths) * 1000 // AT_ONCE


def test_the_number_of_comparisons_is_bounded(service: Installation, auth: Any) -> None:
    write_patterns(service, 2000)
    paths = [f"cloud/creds/{number}" for number in range(1000)]
    refused = service.refused("POST", "sys/capabilities-self", {"paths": paths}, auth["client_token"])
    assert refused == (400, "field_invalid")
    service.must("POST", "sys/capabilities-self", {"paths": paths[:400]}, auth["client_token"])


def test_other_requests_run_between_many_long_paths(service: Installation, auth: Any) -> None:
    paths = [f"{number}{'É' * 480}" for number in range(1000)]
    asking = service.spawn(
        service.asking("POST", "sys/capabilities-self", {"paths": paths}, auth["client_token"]), "capabilities"
    )
    service.settle()
    assert asking.result().status == 200
    pauses = [effect for name, effect in service.trace if name == "capabilities" and isinstance(effect, Sleep)]
    assert len(pauses) >= 9


@pytest.mark.parametrize("policies", [2, 4])
def test_a_token_with_so_many_patterns_that_each_path_takes_a_turn_reads_its_capabilities(
    service: Installation, policies: int
) -> None:
    each = AT_ONCE // 4
    names = [f"p{number}" for number in range(policies)]
    for name in names:
        rules = {f"{name}/+/{number}": {"capabilities": ["read"]} for number in range(each)}
        service.must("PUT", f"sys/policies/acl/{name}", {"policy": json.dumps({"path": rules})})
    token = service.must("POST", "auth/token/create", {"policies": names}).auth["client_token"]
    paths = [f"p1/x/{number}" for number in range(3)]
    reply = service.must("POST", "sys/capabilities-self", {"paths": paths}, token)
    assert {path: reply.data[path] for path in paths} == {path: ["read"] for path in paths}


def test_a_path_that_is_too_long_is_refused(service: Installation, auth: Any) -> None:
    refused = service.refused("POST", "sys/capabilities-self", {"paths": ["a" * 1025]}, auth["client_token"])
    assert refused == (400, "field_invalid")


def test_root_is_its_own_capability(service: Installation) -> None:
    assert service.must("POST", "sys/capabilities-self", {"path": "sys/x"}).data["capabilities"] == ["root"]


def test_a_change_of_the_policy_applies_at_once(service: Installation, auth: Any) -> None:
    service.must("PUT", "sys/policies/acl/app", {"policy": ""})
    reply = service.must("POST", "sys/capabilities-self", {"path": "cloud/creds/web"}, auth["client_token"]).data
    assert reply["capabilities"] == ["deny"]


@pytest.mark.parametrize(
    "path, body, code",
    [
        ("capabilities-self", {}, "field_required"),
        ("capabilities-self", {"paths": ["x"] * 1001}, "field_invalid"),
        ("capabilities", {"paths": ["x"]}, "field_required"),
        ("capabilities-accessor", {"paths": ["x"]}, "field_required"),
        ("capabilities", {"paths": ["x"], "token": "unknown"}, "token_not_found"),
        ("capabilities-accessor", {"paths": ["x"], "accessor": "unknown"}, "token_not_found"),
        ("capabilities-accessor", {"paths": ["x"], "accessor": "0" * 26}, "token_not_found"),
    ],
)
def test_capabilities_of_unknown_tokens_are_refused(
    service: Installation, path: str, body: dict[str, Any], code: str
) -> None:
    reply = service.ask("POST", f"sys/{path}", body)
    assert (reply.status, reply.body["codes"]) == (400, [code])


def test_a_dead_token_has_no_capabilities(service: Installation, auth: Any) -> None:
    service.must("POST", "auth/token/revoke", {"token": auth["client_token"]})
    body = {"path": "x", "token": auth["client_token"]}
    assert service.ask("POST", "sys/capabilities", body).body["codes"] == ["token_not_found"]


@pytest.mark.parametrize("path", ["capabilities", "capabilities-accessor"])
def test_not_everybody_may_ask_about_others(service: Installation, auth: Any, path: str) -> None:
    body = {"path": "x", "token": "root", "accessor": auth["accessor"]}
    assert service.ask("POST", f"sys/{path}", body, auth["client_token"]).status == 403
