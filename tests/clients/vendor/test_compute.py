"""The vendor's SDKs for machines and their identities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError

from .conftest import Cloud
from .sdk import sdk

compute_sdk = sdk("azure.mgmt.compute")
msi_sdk = sdk("azure.mgmt.msi")


@pytest.fixture
def compute(cloud: Cloud) -> Iterator[Any]:
    with compute_sdk.ComputeManagementClient(cloud.credential, cloud.subscription, **cloud.management) as client:
        yield client


@pytest.fixture
def msi(cloud: Cloud) -> Iterator[Any]:
    with msi_sdk.ManagedServiceIdentityClient(cloud.credential, cloud.subscription, **cloud.management) as client:
        yield client


def test_a_machine_is_read_with_its_identity_and_state(cloud: Cloud, compute: Any) -> None:
    machine = compute.virtual_machines.get("prod", "web", expand="instanceView")
    assert machine.id == cloud.machine("web")["resource_id"]
    assert [machine.identity.principal_id] == cloud.machine("web")["principals"]
    assert machine.instance_view.statuses[0].code == "PowerState/running"
    assert compute.virtual_machines.instance_view("prod", "web").statuses[0].code == "PowerState/running"


def test_a_machine_is_stopped_and_started(compute: Any) -> None:
    for begin, state in (("power_off", "stopped"), ("deallocate", "deallocated"), ("start", "running")):
        getattr(compute.virtual_machines, f"begin_{begin}")("prod", "web").result()
        assert compute.virtual_machines.instance_view("prod", "web").statuses[0].code == f"PowerState/{state}"


def test_machines_are_listed_page_by_page(compute: Any) -> None:
    assert [machine.name for machine in compute.virtual_machines.list("prod")] == ["web", "web2"]
    assert len(list(compute.virtual_machines.list_all())) > 10


def test_a_missing_machine_is_an_error_with_its_code(compute: Any) -> None:
    with pytest.raises(ResourceNotFoundError, match="ResourceNotFound"):
        compute.virtual_machines.get("prod", "missing")


def test_scale_sets_and_their_instances_are_read_and_listed(cloud: Cloud, compute: Any) -> None:
    sets = {each.name: each for each in compute.virtual_machine_scale_sets.list("fleets")}
    assert {each.orchestration_mode for each in sets.values()} == {"Uniform", "Flexible"}
    assert compute.virtual_machine_scale_sets.get("fleets", "fleet-uniform").id == sets["fleet-uniform"].id
    instances = compute.virtual_machine_scale_set_vms
    [instance] = instances.list("fleets", "fleet-uniform")
    assert instance.id == cloud.machine("fleet-uniform")["instance_id"]
    number = instance.id.rpartition("/")[2]
    assert instances.get("fleets", "fleet-uniform", number).name == instance.name
    assert instances.get_instance_view("fleets", "fleet-uniform", number).statuses


def test_identities_are_read_and_listed(cloud: Cloud, msi: Any) -> None:
    known = {identity["name"]: identity["client_id"] for identity in cloud.world["identities"]}
    users = msi.user_assigned_identities
    assert {each.name: each.client_id for each in users.list_by_subscription()} == known
    assert {each.name: each.client_id for each in users.list_by_resource_group("identities")} == known
    assert users.get("identities", "worker").client_id == known["worker"]
    system = msi.system_assigned_identities.get_by_scope(cloud.machine("web")["resource_id"])
    assert [system.principal_id] == cloud.machine("web")["principals"]
