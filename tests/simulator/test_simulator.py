"""The simulator as a whole: determinism, the initial world, and requests without a route."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_servers.provider_simulator.identity.keys import signing_key

from .cloud import NOON, Cloud, read


def answers_of(seed: int) -> list[Any]:
    """All answers of a run."""
    cloud = Cloud(seed)
    created = cloud.create("extra", groups=["new-group"])
    return [cloud.world, created, cloud.sign_in(), cloud.machine_token("extra"), cloud.arm(created["resource_id"])]


def test_the_same_seed_answers_the_same() -> None:
    assert answers_of(5) == answers_of(5)


def test_another_seed_is_another_world() -> None:
    one, two = Cloud(1).world, Cloud(2).world
    assert one["tenant"] != two["tenant"]
    assert one["applications"][0]["client_secret"] != two["applications"][0]["client_secret"]
    assert signing_key(1, 0).kid != signing_key(2, 0).kid


def test_the_world_document_has_the_promised_shape(cloud: Cloud) -> None:
    world = cloud.world
    assert len(world["subscriptions"]) == 2
    assert {"client_id", "client_secret", "object_id", "display_name"} <= world["applications"][0].keys()
    assert all(group.keys() == {"id", "display_name"} for group in world["groups"])
    promised = {"name", "kind", "subscription", "resource_group", "location", "resource_id", "principals"}
    assert all(promised <= machine.keys() for machine in world["machines"])
    assert {machine["kind"] for machine in world["machines"]} == {"vm", "vmss_uniform", "vmss_flexible", "resource"}


def test_the_initial_world_has_machines_that_are_easily_confused(cloud: Cloud) -> None:
    web, evil, abroad = (cloud.machine(name)["resource_id"] for name in ("web", "web-evil", "web-abroad"))
    assert evil == web.replace("/prod/", "/prod-evil/")
    assert abroad == web.replace(cloud.world["subscriptions"][0], cloud.world["subscriptions"][1])
    assert cloud.machine("web2")["resource_id"] == web + "2"
    assert cloud.machine("worker-1")["principals"] == cloud.machine("worker-2")["principals"]


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("GET", "/", 404),
        ("GET", "/elsewhere/x", 404),
        ("GET", "/simulator/nothing", 404),
        ("PUT", "/simulator/world", 405),
        ("POST", "/login/common/discovery/keys", 405),
        ("GET", "/login/common%2Fdiscovery/keys", 404),
    ],
)
def test_requests_without_a_route(cloud: Cloud, method: str, path: str, status: int) -> None:
    read(cloud.ask(method, path), status)


def test_a_copy_is_independent(cloud: Cloud) -> None:
    cloud.behave(delays={"lists": 10})
    cloud.application("before")
    twin = Cloud()
    twin.simulator = cloud.simulator.copy()
    assert twin.json("GET", "/simulator/ledger") == cloud.json("GET", "/simulator/ledger")
    assert twin.application("same") == cloud.application("same")
    machine = twin.create("only-here")
    twin.wait(10)
    twin.behave(front_ends=2)
    twin.json("POST", "/simulator/faults", [{"action": {"delay": 1}}])
    assert cloud.graph("GET", f"/servicePrincipals/{machine['principals'][0]}").status == 404
    assert len(twin.listed("/applications", "displayName eq 'before'")) == 1
    assert cloud.listed("/applications", "displayName eq 'before'") == []
    assert cloud.json("GET", "/simulator/faults") == []
    assert cloud.json("GET", "/simulator/behaviour")["front_ends"] == 1


def test_a_copy_may_have_a_clock_of_its_own(cloud: Cloud) -> None:
    copied = cloud.simulator.copy(lambda: 5.0)
    assert (copied.world.now(), copied.world.replication.now(), cloud.simulator.world.now()) == (5.0, 5.0, NOON)
