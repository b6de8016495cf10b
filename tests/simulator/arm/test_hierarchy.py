"""Tenants, management groups, subscriptions and resource groups."""

from __future__ import annotations

from ..cloud import Cloud, code_of, read

MANAGEMENT = "/providers/Microsoft.Management/managementGroups"


def test_subscriptions_and_tenants_are_listed_and_read(cloud: Cloud) -> None:
    assert [each["subscriptionId"] for each in cloud.arm_list("/subscriptions")] == cloud.world["subscriptions"]
    assert [each["tenantId"] for each in cloud.arm_list("/tenants")] == [cloud.world["tenant"]]
    own_id = cloud.world["subscriptions"][1]
    assert read(cloud.arm(f"/subscriptions/{own_id}"), 200)["subscriptionId"] == own_id


def test_resource_groups_are_listed_and_read(cloud: Cloud) -> None:
    listed = cloud.arm_list(f"{cloud.subscription}/resourceGroups")
    prod = next(each for each in listed if each["name"] == "prod")
    assert read(cloud.arm(f"{cloud.subscription}/resourcegroups/PROD"), 200) == prod
    assert code_of(cloud.arm(f"{cloud.subscription}/resourceGroups/none"), 404) == "ResourceGroupNotFound"
    exist = [cloud.ask_arm("HEAD", f"{cloud.subscription}/resourceGroups/{name}").status for name in ("prod", "none")]
    assert exist == [204, 404]


def test_locations_are_listed(cloud: Cloud) -> None:
    assert "westeurope" in [each["name"] for each in cloud.arm_list(f"{cloud.subscription}/locations")]


def test_management_groups_are_a_tree_with_the_subscriptions_below(cloud: Cloud) -> None:
    root, group = cloud.arm_list(MANAGEMENT)
    assert (root["name"], group["name"]) == (cloud.world["tenant"], "contoso")
    shown = read(cloud.arm(group["id"], **{"$expand": "children"}), 200)["properties"]
    assert shown["details"]["parent"]["id"] == root["id"]
    assert [child["name"] for child in shown["children"]] == cloud.world["subscriptions"]
    below = cloud.arm_list(f"{root['id']}/descendants")
    assert [each["name"] for each in below] == ["contoso", *cloud.world["subscriptions"]]
    assert below[1]["properties"]["parent"]["id"] == group["id"]
    assert "children" not in read(cloud.arm(root["id"]), 200)["properties"]
    assert code_of(cloud.arm(f"{MANAGEMENT}/none"), 404) == "NotFound"
