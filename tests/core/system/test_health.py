"""The state of the service, as load balancers and clients ask for it."""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID

import pytest

from cloudid_core.health.problems import HealthProblem
from cloudid_core.system.health import MOST_DETAILS
from cloudid_core.version import VERSION
from tests.installation import START, Installation
from tests.tokens import new_token


@pytest.mark.parametrize("path", ["health", "seal-status", "leader", "init"])
def test_the_state_is_answered_without_a_token_and_without_an_envelope(path: str) -> None:
    reply = Installation().must("GET", f"sys/{path}", token="").body
    assert "request_id" not in reply


@pytest.mark.parametrize("path", ["health", "seal-status"])
def test_clients_are_told_the_level_of_the_interface_and_our_version_beside_it(path: str) -> None:
    """Clients leave out what the version is too old for, without a word: rotation and identity tokens among others."""
    reply = Installation().must("GET", f"sys/{path}", token="").body
    assert (reply["version"], reply["cloudid_version"]) == (f"2.2.0+ent.cloudid.{VERSION}", VERSION)
    reply = Installation(api_version="1.15.0").must("GET", f"sys/{path}", token="").body
    assert (reply["version"], reply["cloudid_version"]) == ("1.15.0", VERSION)


def test_all_nodes_of_an_installation_have_the_cluster_id_of_typed_clients() -> None:
    world = Installation()
    health = world.must("GET", "sys/health", token="").body
    seal_status = world.must("GET", "sys/seal-status", token="").body
    cluster_id = health["cluster_id"]
    assert str(UUID(cluster_id)) == cluster_id == seal_status["cluster_id"] == world.context.cluster_id
    assert health["cluster_name"] == seal_status["cluster_name"] == f"cloudid-{cluster_id[:8]}"
    world.restart()
    assert world.must("GET", "sys/health", token="").body["cluster_id"] == cluster_id
    assert Installation(seed=1).must("GET", "sys/health", token="").body["cluster_id"] != cluster_id


def test_the_cluster_id_does_not_show_the_id_in_markers() -> None:
    world = Installation()
    installation = world.context.records.sealer.keyring.installation
    assert installation in world.context.marker_prefix
    assert not set(re.findall("....", installation)) & set(re.findall("....", world.context.cluster_id))


def test_a_healthy_node() -> None:
    reply = Installation().must("GET", "sys/health", token="").body
    assert (reply["initialized"], reply["sealed"], reply["standby"]) == (True, False, False)
    assert reply["server_time_utc"] == START


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("query, status", [("", 200), ("?activecode=299", 299), ("?standbycode=499", 200)])
def test_a_load_balancer_can_choose_the_status(method: str, query: str, status: int) -> None:
    assert Installation().ask(method, f"sys/health{query}", token="").status == status


def with_problem(world: Installation) -> None:
    """Something is wrong that does not keep the node from serving, at a mount."""
    world.context.node.note(HealthProblem.CONFIG_INVALID, [{"mount": "auth/cloud", "field": "tenant_id"}])


def test_a_node_with_problems_serves_and_a_load_balancer_can_ask_for_another_status() -> None:
    world = Installation()
    with_problem(world)
    health = world.must("GET", "sys/health", token="")
    assert (health.status, health.body["problems"]) == (200, ["config_invalid"])
    for query, status in (("problemcode=503", 503), ("activecode=299", 299), ("activecode=299&problemcode=250", 250)):
        assert world.ask("GET", f"sys/health?{query}", token="").status == status
    assert Installation().ask("GET", "sys/health?problemcode=503", token="").status == 200


def test_a_node_that_cannot_serve_says_so_whatever_a_load_balancer_asks_for() -> None:
    world = Installation()
    world.context.node.last_look_failed = True
    assert world.ask("GET", "sys/health?activecode=200&problemcode=200", token="").status == 503


NAMES: Final = ("web-7.internal", "auth/cloud", "tenant_id")


@pytest.mark.parametrize("policy", [None, "", 'path "sys/health" { capabilities = ["deny"] }'])
def test_strangers_learn_codes_but_no_names(policy: str | None) -> None:
    """Nor does a token whose policies do not grant it, nor one that is unknown."""
    world = Installation(node_name=NAMES[0])
    with_problem(world)
    token = "unknown"
    if policy is not None:
        world.must("POST", "sys/policies/acl/health", {"policy": policy or 'path "x" { capabilities = ["read"] }'})
        token = new_token(world, policies=["health"])
    for shown in ("", token):
        health = world.must("GET", "sys/health", token=shown)
        assert health.body["problems"] == ["config_invalid"]
        assert not [name for name in NAMES if name in health.response.body.decode()]


def test_a_token_that_may_read_health_learns_what_is_wrong_and_what_mends_it() -> None:
    world = Installation(node_name=NAMES[0])
    with_problem(world)
    world.must("POST", "sys/policies/acl/health", {"policy": 'path "sys/health" { capabilities = ["read"] }'})
    health = world.must("GET", "sys/health", token=new_token(world, policies=["health"])).body
    assert (health["node_name"], health["problem_count"]) == (NAMES[0], 1)
    assert health["problem_details"] == [
        {
            "code": "config_invalid",
            "text": 'the configuration of auth/cloud has a value in "tenant_id" that is no longer accepted',
            "consequence": "requests that use it are refused",
            "mount": "auth/cloud",
            "remedy": "cloudid write auth/cloud/config tenant_id=VALUE",
        }
    ]


def test_many_occurrences_are_counted_but_not_all_told() -> None:
    world = Installation()
    many = [{"mount": f"auth/m{number}", "field": "tenant_id"} for number in range(MOST_DETAILS + 1)]
    world.context.node.note(HealthProblem.CONFIG_INVALID, many)
    health = world.must("GET", "sys/health").body
    assert (health["problem_count"], len(health["problem_details"])) == (len(many), MOST_DETAILS)


@pytest.mark.parametrize("status", ["99", "199", "300", "304", "399", "600", "x", ""])
def test_a_text_that_is_no_status_is_refused(status: str) -> None:
    assert Installation().refused("GET", f"sys/health?activecode={status}", token="") == (400, "field_invalid")


@pytest.mark.parametrize("status", [204, 205])
def test_a_status_that_forbids_content_has_none(status: int) -> None:
    """Content there would be read as the beginning of the next response."""
    reply = Installation().ask("GET", f"sys/health?activecode={status}", token="")
    assert (reply.status, reply.response.body) == (status, b"")


def test_the_seal_status_is_that_of_an_open_service() -> None:
    reply = Installation().must("GET", "sys/seal-status", token="").body
    assert (reply["initialized"], reply["sealed"], reply["t"], reply["n"], reply["progress"]) == (True, False, 1, 1, 0)


def test_every_node_says_that_it_is_the_leader() -> None:
    assert Installation().must("GET", "sys/leader", token="").body["is_self"] is True


def test_the_store_is_in_use_and_cannot_be_initialised_again() -> None:
    world = Installation()
    assert world.must("GET", "sys/init", token="").body == {"initialized": True}
    assert world.refused("PUT", "sys/init", {"secret_shares": 1}, token="") == (400, "malformed_request")
