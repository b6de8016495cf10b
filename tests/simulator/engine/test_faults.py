"""Faults: to which requests they apply, how often, and how much work is done."""

from __future__ import annotations

from typing import Any

import pytest

from ..cloud import METADATA, Cloud, read

TOKEN = "/machines/web/metadata/identity/oauth2/token"


def set_faults(cloud: Cloud, *rules: dict[str, Any]) -> Any:
    return cloud.json("POST", "/simulator/faults", list(rules))


def ask_machine(cloud: Cloud) -> Any:
    query = {"api-version": "2018-02-01", "resource": "api://x"}
    return cloud.answer("GET", TOKEN, headers=METADATA, query=query)


def test_a_service_renders_its_errors_in_its_own_format(cloud: Cloud) -> None:
    set_faults(cloud, {"action": {"status": 429, "code": "TooManyRequests", "retry_after": 7}})
    arm = cloud.ask("GET", "/arm/subscriptions/x")
    assert arm.headers["retry-after"] == "7"
    assert read(arm, 429)["error"]["code"] == "TooManyRequests"
    assert "innerError" in read(cloud.ask("GET", "/graph/v1.0/groups"), 429)["error"]
    assert read(cloud.sign_in(), 429)["error"] == "temporarily_unavailable"
    assert read(cloud.machine_token("web"), 429)["error"] == "TooManyRequests"


def test_an_aadsts_code_gets_the_error_of_the_token_endpoint(cloud: Cloud) -> None:
    set_faults(cloud, {"match": {"family": "login"}, "action": {"status": 401, "code": "AADSTS7000215"}})
    answer = read(cloud.sign_in(), 401)
    assert (answer["error"], answer["error_codes"]) == ("invalid_client", [7000215])


def test_the_resource_manager_can_miss_a_machine_with_any_code(cloud: Cloud) -> None:
    path = cloud.machine("web")["resource_id"]
    for code in ("NotFound", "ParentResourceNotFound", "InvalidResourceType"):
        set_faults(cloud, {"match": {"path": f"/arm{path}"}, "action": {"status": 404, "code": code}})
        assert read(cloud.arm(path), 404)["error"]["code"] == code


def test_a_rule_matches_by_family_method_and_path(cloud: Cloud) -> None:
    set_faults(
        cloud,
        {
            "match": {"family": "login", "method": "post", "path": "/login/.*/token"},
            "action": {"status": 503},
        },
    )
    assert cloud.sign_in().status == 503
    assert cloud.ask("GET", "/login/common/discovery/keys").status == 200
    assert ask_machine(cloud).response.status == 200


def test_the_first_rule_with_times_left_is_applied_alone(cloud: Cloud) -> None:
    set_faults(
        cloud,
        {"times": 1, "action": {"status": 500}},
        {"times": 2, "action": {"status": 502}},
    )
    assert [ask_machine(cloud).response.status for _ in range(4)] == [500, 502, 502, 200]
    assert cloud.json("GET", "/simulator/faults") == []


def test_new_rules_replace_earlier_ones(cloud: Cloud) -> None:
    set_faults(cloud, {"action": {"status": 500}})
    [rule] = set_faults(cloud, {"match": {"path": "/nowhere"}, "action": {"status": 502}})
    assert (rule["times"], rule["match"]["path"]) == (None, "/nowhere")
    assert ask_machine(cloud).response.status == 200
    assert set_faults(cloud) == []


def test_no_work_is_done_before_a_failure_and_all_of_it_with_after_work(cloud: Cloud) -> None:
    for action in ({"drop": True}, {"status": 500}):
        set_faults(cloud, {"action": action, "times": 1})
        answer = ask_machine(cloud)
        assert answer.drop is (action == {"drop": True})
        assert not cloud.simulator.world.machine_tokens
    set_faults(cloud, {"action": {"drop": True, "after_work": True}, "times": 1})
    assert ask_machine(cloud).drop
    assert cloud.simulator.world.machine_tokens


def test_an_error_can_hide_work_that_was_done(cloud: Cloud) -> None:
    set_faults(cloud, {"action": {"status": 504, "after_work": True}})
    assert ask_machine(cloud).response.status == 504
    assert cloud.simulator.world.machine_tokens


def test_a_delayed_answer_is_complete(cloud: Cloud) -> None:
    set_faults(cloud, {"action": {"delay": 2.5}})
    answer = ask_machine(cloud)
    assert (answer.delay, answer.drop, answer.response.status) == (2.5, False, 200)


def test_faults_never_apply_to_the_control_api(cloud: Cloud) -> None:
    set_faults(cloud, {"action": {"drop": True}})
    assert not cloud.answer("GET", "/simulator/world").drop


@pytest.mark.parametrize(
    "rules",
    [
        {},
        [1],
        [{}],
        [{"action": {}}],
        [{"action": {"after_work": True, "status": 200}}],
        [{"action": {"status": 99}}],
        [{"action": {"delay": -1}}],
        [{"action": {"delay": 1e9}}],
        [{"action": {"status": 500, "retry_after": -1}}],
        [{"action": {"drop": 1}}],
        [{"action": {"drop": True}, "times": 0}],
        [{"action": {"drop": True}, "match": {"family": "disk"}}],
        [{"action": {"drop": True}, "match": {"path": "("}}],
        [{"action": {"drop": True}, "match": {"path": "a{99999999999999}"}}],
        [{"action": {"drop": True}, "match": {"path": "a" * 501}}],
        [{"action": {"drop": True}, "when": "now"}],
    ],
)
def test_invalid_rules_are_explained_and_change_nothing(cloud: Cloud, rules: Any) -> None:
    kept = set_faults(cloud, {"action": {"delay": 1}})
    assert read(cloud.ask("POST", "/simulator/faults", rules), 400)["error"]["message"]
    assert cloud.json("GET", "/simulator/faults") == kept
