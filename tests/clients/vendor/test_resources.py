"""The vendor's SDKs for resources, subscriptions and management groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Cloud
from .sdk import sdk

resources_sdk = sdk("azure.mgmt.resource.resources")
subscriptions_sdk = sdk("azure.mgmt.resource.subscriptions")
management_groups_sdk = sdk("azure.mgmt.managementgroups")


@pytest.fixture
def resources(cloud: Cloud) -> Iterator[Any]:
    with resources_sdk.ResourceManagementClient(cloud.credential, cloud.subscription, **cloud.management) as client:
        yield client


@pytest.fixture
def subscriptions(cloud: Cloud) -> Iterator[Any]:
    with subscriptions_sdk.SubscriptionClient(cloud.credential, **cloud.management) as client:
        yield client


@pytest.fixture
def management_groups(cloud: Cloud) -> Iterator[Any]:
    with management_groups_sdk.ManagementGroupsMgmtClient(cloud.credential, **cloud.management) as client:
        yield client.management_groups


def test_resource_groups_are_checked_read_and_listed(resources: Any) -> None:
    groups = resources.resource_groups
    assert groups.get("prod").id in [group.id for group in groups.list()]
    assert [groups.check_existence(name) for name in ("prod", "missing")] == [True, False]


def test_providers_are_listed_with_types_that_may_have_no_versions(resources: Any) -> None:
    types = resources.providers.get("Microsoft.HybridCompute").resource_types
    assert {each.resource_type: bool(each.api_versions) for each in types} == {"operations": False, "machines": True}
    assert "Microsoft.Web" in [provider.namespace for provider in resources.providers.list()]


def test_resources_of_any_type_are_listed(cloud: Cloud, resources: Any) -> None:
    shop = cloud.machine("shop")["resource_id"]
    assert [each.id for each in resources.resources.list_by_resource_group("sites")] == [shop]
    assert shop in [each.id for each in resources.resources.list()]


def test_subscriptions_tenants_and_locations_are_listed(cloud: Cloud, subscriptions: Any) -> None:
    listed = [each.subscription_id for each in subscriptions.subscriptions.list()]
    assert listed == cloud.world["subscriptions"]
    assert subscriptions.subscriptions.get(listed[0]).tenant_id == cloud.world["tenant"]
    assert [each.tenant_id for each in subscriptions.tenants.list()] == [cloud.world["tenant"]]
    assert "westeurope" in [each.name for each in subscriptions.subscriptions.list_locations(listed[0])]


def test_management_groups_are_listed_and_read_with_what_they_contain(cloud: Cloud, management_groups: Any) -> None:
    assert [each.name for each in management_groups.list()] == [cloud.world["tenant"], "contoso"]
    children = management_groups.get("contoso", expand="children").children
    assert [child.name for child in children] == cloud.world["subscriptions"]
    below = [each.name for each in management_groups.get_descendants(cloud.world["tenant"])]
    assert below == ["contoso", *cloud.world["subscriptions"]]
