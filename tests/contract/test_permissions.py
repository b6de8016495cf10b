"""What a mount's credential must be permitted to do at the provider, and what happens while it is not."""

from __future__ import annotations

import pytest

from cloudid_servers.provider_simulator.world.access import permit as grant
from tests.engines import CREDS, ROLE, SecretsEngine, configured_engine, engine_config
from tests.installation import Installation

from .logins import ROLE as LOGIN_ROLE
from .logins import configured, form, log_in, machine, refused

DENIED = (502, "provider_permission_denied")


def permit(service: Installation, *, reading: bool, writing: bool) -> None:
    """Let the credential of both components read and write everything at the provider, or nothing."""
    world = service.simulator.world
    principal = world.directory.principal_of(engine_config(service)["client_id"])
    assert principal is not None
    grant(world, principal.id, reading=reading, writing=writing)


@pytest.mark.contract("authentication: logins need a credential that may read compute resources")
@pytest.mark.parametrize("kind", ["vm", "vmss_uniform", "vmss_flexible"])
def test_logins_need_a_credential_that_may_read_compute_resources(kind: str) -> None:
    """Reading is enough. Without it a role that binds a resource admits nobody; one that binds principals does."""
    service = configured()
    member = machine(service, kind)
    permit(service, reading=True, writing=False)
    assert log_in(service, form(service, member)).status == 200
    permit(service, reading=False, writing=False)
    service.advance(120)
    assert refused(service, form(service, member)) == DENIED
    missing = {need["any_of"][0] for need in service.must("GET", "auth/cloud/permissions").data["missing"]}
    assert {"Microsoft.Compute/virtualMachines/read", "Microsoft.Compute/virtualMachineScaleSets/read"} <= missing
    service.must("POST", LOGIN_ROLE, {"bound_subscription_ids": [], "bound_service_principal_ids": "*"})
    assert log_in(service, form(service, member)).status == 200


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


@pytest.mark.contract("authentication: the engine needs a credential that may read roles and write service principals")
def test_roles_are_read_when_a_role_is_written(engine: SecretsEngine) -> None:
    """A credential that may not read them cannot tell whether they exist; one that may only read is enough."""
    permit(engine, reading=False, writing=True)
    assert engine.refused("POST", ROLE, {"azure_roles": engine.grants()}) == DENIED
    permit(engine, reading=True, writing=False)
    engine.must("POST", ROLE, {"azure_roles": engine.grants()})


@pytest.mark.contract("authentication: the engine needs a credential that may read roles and write service principals")
def test_service_principals_are_created_and_deleted_with_the_permission_to_write_them(engine: SecretsEngine) -> None:
    """Without it none is created; and one that exists stays listed until the permission is back."""
    engine.role()
    lease = engine.issue("web")
    permit(engine, reading=True, writing=False)
    assert engine.refused("GET", CREDS) == DENIED
    engine.advance(2 * 3600)  # access tokens say what was permitted when they were made
    missing = {need["any_of"][0] for need in engine.must("GET", "cloud/permissions").data["missing"]}
    assert {"Application.ReadWrite.OwnedBy", "Microsoft.Authorization/roleAssignments/write"} <= missing
    assert engine.refused("PUT", "sys/leases/revoke", {"lease_id": lease}) == (502, "revocation_pending", DENIED[1])
    assert engine.leases() == [lease]
    permit(engine, reading=True, writing=True)
    engine.revoke_all()
    assert (engine.leases(), engine.alive()) == ([], [])
    engine.must("GET", CREDS)
