"""Behaviour: how it is set, and its conflicts, quotas and throttling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloudid_core.effects import HttpResponse
from cloudid_servers.provider_simulator.engine.requests import Call, Caller, Refusal
from cloudid_servers.provider_simulator.engine.throttling import Throttle

from ..cloud import ASSIGNMENT, NAMED, UPSERT, Cloud, code_of, read


def test_by_default_nothing_lags_and_nothing_is_throttled(cloud: Cloud) -> None:
    shown = cloud.json("GET", "/simulator/behaviour")
    assert shown == cloud.behave()
    assert set(map(tuple, shown["delays"].values())) == {(0, 0)}
    assert set(shown["throttle"].values()) == {None}


def test_fields_change_the_present_behaviour_and_a_preset_replaces_it(cloud: Cloud) -> None:
    cloud.behave(delays={"reads": 3}, quotas={"passwords": 7})
    changed = cloud.behave(delays={"lists": [1, 2]}, front_ends=2)
    assert (changed["delays"]["reads"], changed["delays"]["lists"]) == ([3, 3], [1, 2])
    assert (changed["quotas"]["passwords"], changed["front_ends"]) == (7, 2)
    realistic = cloud.behave(preset="realistic", quotas={"passwords": 9})
    assert realistic["delays"]["lists"][1] > realistic["delays"]["reads"][1] > 0
    assert (realistic["quotas"]["passwords"], realistic["throttle"]["arm_reads"]) == (9, [250, 25])
    assert cloud.behave(preset="immediate")["front_ends"] == 1
    cloud.behave(front_ends=3)
    cloud.ask("POST", "/simulator/reset")
    assert cloud.json("GET", "/simulator/behaviour")["front_ends"] == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"preset": "slow"},
        {"mood": "bad"},
        {"delays": {"moon": 1}},
        {"delays": {"reads": [2, 1]}},
        {"delays": {"reads": [1]}},
        {"delays": {"reads": -1}},
        {"delays": {"reads": 1e9}},
        {"delays": {"reads": ["a", "b"]}},
        {"front_ends": 0},
        {"name_reuse": -1},
        {"upsert": 404},
        {"quotas": {"passwords": -1}},
        {"throttle": {"arm_reads": [0, 1]}},
        {"throttle": {"arm_reads": [1, 0]}},
        {"throttle": {"disk": None}},
        {"page_size": 0},
        {"page_size": 1001},
    ],
)
def test_invalid_behaviour_is_explained_and_changes_nothing(cloud: Cloud, fields: Any) -> None:
    kept = cloud.behave(front_ends=2)
    assert code_of(cloud.ask("POST", "/simulator/behaviour", fields), 400) == "BadRequest"
    assert cloud.json("GET", "/simulator/behaviour") == kept


def test_a_deleted_principals_name_stays_in_use_for_a_while(cloud: Cloud) -> None:
    application = cloud.application()
    cloud.behave(name_reuse=60)
    cloud.graph("DELETE", f"/servicePrincipals/{cloud.principal(application)['id']}")
    answer = cloud.graph("POST", "/servicePrincipals", {"appId": application["appId"]})
    assert code_of(answer, 409) == "Request_MultipleObjectsWithSameKeyValue"
    cloud.wait(60)
    cloud.principal(application)


def test_changes_of_one_object_at_the_same_time_conflict(cloud: Cloud) -> None:
    path = f"/applications/{cloud.application()['id']}"
    cloud.behave(write_conflict=1)
    cloud.password(path)
    answer = cloud.graph("POST", f"{path}/addPassword", {})
    assert code_of(answer, 409) == "Directory_ConcurrencyViolation"
    cloud.password(f"/applications/{cloud.application()['id']}")
    cloud.wait(1)
    cloud.password(path)


@pytest.mark.parametrize("status, code", [(400, "Request_BadRequest"), (501, "NotImplemented")])
def test_a_cloud_without_upserts_has_no_unique_names_either(cloud: Cloud, status: int, code: str) -> None:
    made = cloud.application()
    cloud.behave(upsert=status)
    for method, path in (
        ("PATCH", NAMED),
        ("GET", NAMED),
        ("PATCH", f"/servicePrincipals(appId='{made['appId']}')"),
    ):
        assert code_of(cloud.graph(method, path, {"displayName": "x"}, headers=UPSERT), status) == code
    principal = cloud.principal(made)
    assert read(cloud.graph("GET", f"/servicePrincipals(appId='{made['appId']}')"), 200) == principal


def test_an_assignment_that_is_put_again_may_be_a_conflict(cloud: Cloud) -> None:
    principal = cloud.principal(cloud.application())
    assert cloud.assign(principal).status == 201
    cloud.behave(replay_conflict=True)
    assert code_of(cloud.assign(principal), 409) == "RoleAssignmentExists"


def test_applications_are_limited_and_deleted_ones_count_until_they_are_purged(cloud: Cloud) -> None:
    cloud.behave(quotas={"applications": 3})
    made = cloud.application()
    body = {"displayName": "more"}
    cloud.graph("DELETE", f"/applications/{made['id']}")
    assert code_of(cloud.graph("POST", "/applications", body), 403) == "Directory_QuotaExceeded"
    assert code_of(cloud.graph("PATCH", NAMED, body, headers=UPSERT), 403) == "Directory_QuotaExceeded"
    cloud.graph("DELETE", f"/directory/deletedItems/{made['id']}")
    cloud.application()


def test_the_passwords_of_an_object_are_limited(cloud: Cloud) -> None:
    path = f"/applications/{cloud.application()['id']}"
    cloud.behave(quotas={"passwords": 2})
    cloud.password(path)
    old = cloud.password(path)
    assert code_of(cloud.graph("POST", f"{path}/addPassword", {}), 403) == "Directory_ResourceSizeExceeded"
    cloud.graph("POST", f"{path}/removePassword", {"keyId": old["keyId"]})
    cloud.password(path)


def test_the_assignments_in_a_subscription_are_limited(cloud: Cloud) -> None:
    cloud.behave(quotas={"assignments": 1})
    principals = [cloud.principal(cloud.application()) for _ in range(2)]
    assert cloud.assign(principals[0], f"/resourceGroups/prod{ASSIGNMENT}").status == 201
    assert code_of(cloud.assign(principals[1]), 400) == "RoleAssignmentLimitExceeded"
    cloud.ask_arm("DELETE", f"{cloud.subscription}/resourceGroups/prod{ASSIGNMENT}")
    assert cloud.assign(principals[1]).status == 201


@pytest.mark.parametrize(
    "bucket, code",
    [
        ("arm_reads", "SubscriptionRequestsThrottled"),
        ("arm_writes", "SubscriptionRequestsThrottled"),
        ("graph_reads", "TooManyRequests"),
        ("graph_writes", "TooManyRequests"),
    ],
)
def test_an_empty_bucket_throttles_until_it_is_refilled(cloud: Cloud, bucket: str, code: str) -> None:
    path = f"{cloud.subscription}{ASSIGNMENT}"
    calls: dict[str, Callable[[], HttpResponse]] = {
        "arm_reads": lambda: cloud.arm(cloud.subscription),
        "arm_writes": lambda: cloud.ask_arm("DELETE", path),
        "graph_reads": lambda: cloud.graph("GET", "/groups"),
        "graph_writes": lambda: cloud.graph("POST", "/applications", {"displayName": "x"}),
    }
    cloud.behave(throttle={bucket: [2, 0.1]})
    ask = calls.pop(bucket)
    assert [ask().status for _ in range(3)][2] == 429
    refused = ask()
    assert (code_of(refused, 429), refused.headers["retry-after"]) == (code, "10")
    assert all(other().status != 429 for other in calls.values())
    cloud.wait(10)
    assert [ask().status == 429 for _ in range(2)] == [False, True]


def test_each_caller_and_subscription_has_a_bucket_of_its_own() -> None:
    throttle = Throttle(lambda: 0.0)
    for caller in ("one", "other"):
        for subscription in ("a", "b"):
            call = Call("GET", f"/arm/subscriptions/{subscription}", {}, {}, b"", caller=Caller(caller))
            throttle.take({"arm_reads": (1, 0.1)}, "arm", call)
            with pytest.raises(Refusal):
                throttle.take({"arm_reads": (1, 0.1)}, "arm", call)


def test_the_token_endpoint_throttles_too(cloud: Cloud) -> None:
    cloud.behave(throttle={"login": [1, 1]})
    assert [cloud.sign_in().status for _ in range(2)] == [200, 429]


def test_work_is_done_even_if_its_answer_is_lost(cloud: Cloud) -> None:
    for action in ({"drop": True, "after_work": True}, {"status": 503, "after_work": True}):
        match = {"family": "graph", "method": "POST"}
        cloud.json("POST", "/simulator/faults", [{"match": match, "times": 1, "action": action}])
        cloud.graph("POST", "/applications", {"displayName": "lost"})
    assert len(cloud.listed("/applications", "displayName eq 'lost'")) == 2
