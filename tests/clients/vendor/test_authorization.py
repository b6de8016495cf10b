"""The vendor's SDK for role definitions and role assignments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import ResourceExistsError

from .conftest import Cloud
from .sdk import sdk

authorization_sdk = sdk("azure.mgmt.authorization")
models = sdk("azure.mgmt.authorization.models")

ONE = "11111111-1111-4111-8111-111111111111"
TWO = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def authorization(cloud: Cloud) -> Iterator[Any]:
    with authorization_sdk.AuthorizationManagementClient(
        cloud.credential, cloud.subscription, **cloud.management
    ) as client:
        yield client


@pytest.mark.parametrize("kind", ["root", "management group", "subscription", "resource group", "resource"])
def test_a_role_is_assigned_found_and_removed_at_every_kind_of_scope(
    cloud: Cloud, authorization: Any, kind: str
) -> None:
    machine = cloud.machine("web")
    scope = {
        "root": "/",
        "management group": "/providers/Microsoft.Management/managementGroups/contoso",
        "subscription": f"/subscriptions/{cloud.subscription}",
        "resource group": f"/subscriptions/{cloud.subscription}/resourceGroups/prod",
        "resource": machine["resource_id"],
    }[kind]
    [principal] = machine["principals"]
    [role] = authorization.role_definitions.list(scope, filter="roleName eq 'Reader'")
    wanted = models.RoleAssignmentCreateParameters(
        role_definition_id=role.id, principal_id=principal, principal_type="ServicePrincipal"
    )
    assignments = authorization.role_assignments
    made = assignments.create(scope, ONE, wanted)
    try:
        assert (made.scope, made.principal_id) == (scope, principal)
        with pytest.raises(ResourceExistsError, match="RoleAssignmentExists"):
            assignments.create(scope, TWO, wanted)
        assert assignments.get(scope, ONE).id == assignments.get_by_id(made.id).id == made.id
        for condition in (f"principalId eq '{principal}'", f"assignedTo('{principal}')", "atScope()"):
            assert made.id in [each.id for each in assignments.list_for_scope(scope, filter=condition)]
    finally:
        assert assignments.delete(scope, ONE).id == made.id
    assert assignments.delete(scope, ONE) is None


def test_assignments_are_listed_by_subscription_group_and_resource(cloud: Cloud, authorization: Any) -> None:
    [principal] = cloud.machine("web")["principals"]
    scope = f"/subscriptions/{cloud.subscription}"
    [role] = authorization.role_definitions.list(scope, filter="roleName eq 'Reader'")
    assignments = authorization.role_assignments
    wanted = models.RoleAssignmentCreateParameters(
        role_definition_id=role.id, principal_id=principal, principal_type="ServicePrincipal"
    )
    made = assignments.create_by_id(f"{scope}/providers/Microsoft.Authorization/roleAssignments/{ONE}", wanted)
    for listed in (
        assignments.list_for_subscription(),
        assignments.list_for_resource_group("prod"),
        assignments.list_for_resource("prod", "Microsoft.Compute", "virtualMachines", "web"),
    ):
        assert [each.id for each in listed if each.principal_id == principal] == [made.id]
    assert assignments.delete_by_id(made.id).id == made.id
