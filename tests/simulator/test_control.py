"""The control API: machines come and go, keys rotate, the clock moves, and bad input is explained."""

from __future__ import annotations

from typing import Any

import pytest

from .cloud import GRAPH, NOON, Cloud, claims_of, read


def test_a_machine_needs_only_a_name(cloud: Cloud) -> None:
    made = cloud.create("box")
    assert made == cloud.machine("box")
    assert (made["kind"], made["subscription"]) == ("vm", cloud.world["subscriptions"][0])
    assert cloud.machine_claims("box")["oid"] == made["principals"][0]
    assert cloud.arm(made["resource_id"]).status == 200


def test_a_machine_is_created_as_requested(cloud: Cloud) -> None:
    made = cloud.create(
        "box",
        subscription=cloud.world["subscriptions"][1],
        resource_group="Mixed-Case",
        location="eastus",
        resource_name="inner",
        identities={"system_assigned": True, "user_assigned": ["worker", "new"]},
        groups=[cloud.world["groups"][3]["id"]],
    )
    assert made["resource_id"].endswith("/resourceGroups/Mixed-Case/providers/Microsoft.Compute/virtualMachines/inner")
    assert len(made["principals"]) == 3
    assert cloud.machine("worker-1")["principals"][0] in made["principals"]
    assert cloud.machine_claims("box")["groups"] == [cloud.world["groups"][3]["id"]]


def test_instances_of_one_uniform_set_share_everything_but_their_number(cloud: Cloud) -> None:
    second = cloud.create("fleet-second", kind="vmss_uniform", resource_group="fleets", scale_set="fleet-uniform")
    first = cloud.machine("fleet-uniform")
    assert (second["resource_id"], second["principals"]) == (first["resource_id"], first["principals"])
    assert second["instance_id"].endswith("/virtualMachines/1")
    assert cloud.machine_claims("fleet-second")["xms_mirid"] == cloud.machine_claims("fleet-uniform")["xms_mirid"]


def test_instances_of_one_flexible_set_share_its_identities(cloud: Cloud) -> None:
    fields = {"kind": "vmss_flexible", "resource_group": "fleets", "scale_set": "fleet-flexible"}
    second = cloud.create("own", **fields, identities={"system_assigned": True})
    first = cloud.machine("fleet-flexible")
    assert second["instance_id"] != first["instance_id"]
    assert second["principals"][1:] == first["principals"]


def test_a_deleted_machine_is_gone_everywhere(cloud: Cloud) -> None:
    old = cloud.machine("web")
    assert cloud.ask("DELETE", "/simulator/machines/web").status == 204
    assert cloud.ask("DELETE", "/simulator/machines/web").status == 404
    assert cloud.arm(old["resource_id"]).status == 404
    assert cloud.machine_token("web").status == 404
    assert cloud.graph("GET", f"/servicePrincipals/{old['principals'][0]}").status == 404
    made = cloud.create("web", resource_group="prod")
    assert made["resource_id"] == old["resource_id"]
    assert made["principals"] != old["principals"]


def test_a_scale_set_is_deleted_with_its_last_instance(cloud: Cloud) -> None:
    uniform = cloud.machine("fleet-uniform")
    cloud.create("second", kind="vmss_uniform", resource_group="fleets", scale_set="fleet-uniform")
    cloud.ask("DELETE", "/simulator/machines/fleet-uniform")
    assert cloud.arm(uniform["resource_id"]).status == 200
    assert cloud.machine_claims("second")["oid"] == uniform["principals"][0]
    cloud.ask("DELETE", "/simulator/machines/second")
    assert cloud.arm(uniform["resource_id"]).status == 404


@pytest.mark.parametrize(
    "fields, status",
    [
        ({}, 400),
        ({"name": 1}, 400),
        ({"name": "a/b"}, 400),
        ({"name": "a", "kind": "mainframe"}, 400),
        ({"name": "a", "colour": "red"}, 400),
        ({"name": "a", "subscription": "none"}, 400),
        ({"name": "a", "resource_group": "a/b"}, 400),
        ({"name": "a", "resource_type": "sites"}, 400),
        ({"name": "a", "location": "\ud800"}, 400),
        ({"name": "a", "groups": [""]}, 400),
        ({"name": "a", "identities": {"user_assigned": "x"}}, 400),
        ({"name": "a", "kind": "vmss_uniform", "scale_set": "fleet-flexible", "resource_group": "fleets"}, 409),
        (
            {
                "name": "a",
                "kind": "vmss_uniform",
                "scale_set": "fleet-uniform",
                "resource_group": "fleets",
                "identities": {"system_assigned": False},
            },
            400,
        ),
        ({"name": "WEB"}, 409),
        ({"name": "a", "resource_name": "web", "resource_group": "PROD"}, 409),
        ([], 400),
    ],
)
def test_invalid_machines_are_explained_and_change_nothing(cloud: Cloud, fields: Any, status: int) -> None:
    answer = read(cloud.ask("POST", "/simulator/machines", fields), status)
    assert answer["error"]["message"]
    assert cloud.json("GET", "/simulator/world") == cloud.world


def published(cloud: Cloud) -> list[str]:
    return [key["kid"] for key in cloud.json("GET", "/login/common/discovery/keys")["keys"]]


def test_keys_rotate_with_and_without_overlap(cloud: Cloud) -> None:
    [first] = published(cloud)
    before = read(cloud.machine_token("web"), 200)["access_token"]
    second = cloud.json("POST", "/simulator/keys/rotate")["kid"]
    assert published(cloud) == [first, second]
    assert read(cloud.machine_token("web"), 200)["access_token"] != before
    third = cloud.json("POST", "/simulator/keys/rotate", {"remove_old": True})["kid"]
    assert published(cloud) == [third]


def test_any_claims_can_be_signed(cloud: Cloud) -> None:
    token = cloud.json("POST", "/simulator/tokens", {"claims": {"sub": "me"}})["token"]
    assert claims_of(token) == {"sub": "me"}


def test_the_clock_moves(cloud: Cloud) -> None:
    assert cloud.json("POST", "/simulator/clock", {"advance": 10})["now"] == NOON + 10
    assert cloud.json("POST", "/simulator/clock", {"advance": -0.5})["now"] == NOON + 9.5
    assert cloud.json("POST", "/simulator/clock", {"set": 1000})["now"] == 1000
    assert cloud.machine_claims("web")["iat"] == 1000


@pytest.mark.parametrize(
    "body", [{}, {"advance": 1, "set": 2}, {"set": -1}, {"set": 10**300}, {"advance": True}, {"advance": "1"}, 5]
)
def test_invalid_clocks_are_refused(cloud: Cloud, body: Any) -> None:
    read(cloud.ask("POST", "/simulator/clock", body), 400)


def test_a_body_that_is_not_json_is_refused(cloud: Cloud) -> None:
    for body in (b"", b"{", b"[" * 100_000, b"\xff"):
        read(cloud.answer("POST", "/simulator/clock", body).response, 400)


def test_reset_starts_again(cloud: Cloud) -> None:
    cloud.create("box")
    cloud.json("POST", "/simulator/clock", {"advance": 10})
    cloud.json("POST", "/simulator/keys/rotate", {"remove_old": True})
    cloud.json("POST", "/simulator/faults", [{"action": {"drop": True}}])
    assert cloud.ask("POST", "/simulator/reset").status == 204
    assert cloud.json("GET", "/simulator/world") == cloud.world
    assert cloud.sign_in() == Cloud().sign_in()


def test_an_application_has_the_permissions_that_were_consented_to(cloud: Cloud) -> None:
    application = cloud.application()
    consent = {"client_id": application["appId"], "permissions": ["Application.ReadWrite.OwnedBy"]}
    assert cloud.ask("POST", "/simulator/permissions", consent).status == 400
    cloud.principal(application)
    secret = cloud.password(f"/applications/{application['id']}")["secretText"]
    own = {"client_id": application["appId"], "client_secret": secret}
    graph = {**own, "scope": f"{GRAPH}/.default"}
    assert claims_of(cloud.access_token(**graph))["roles"] == []
    assert cloud.ask("POST", "/simulator/permissions", consent).status == 204
    assert claims_of(cloud.access_token(**graph))["roles"] == ["Application.ReadWrite.OwnedBy"]
