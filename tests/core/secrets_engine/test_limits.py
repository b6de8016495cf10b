"""Whether credentials may still be issued: renewal, rotation and access tokens are judged by what is held."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from cloudid_core.effects import CallProvider
from cloudid_core.secrets_engine.limits import is_privileged
from cloudid_core.store import Changes, keys
from tests.engines import CONFIG, CREDS, EVERYTHING, ROLE, SecretsEngine, configured_engine

from .interleaving import raced

EXCEEDED = (403, "ceiling_exceeded")


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def existing(engine: SecretsEngine) -> dict[str, Any]:
    return {"application_object_id": engine.other_application["object_id"], "azure_roles": []}


def lease_of(engine: SecretsEngine) -> str:
    lease_id: str = engine.must("GET", CREDS).body["lease_id"]
    return lease_id


def renewal(engine: SecretsEngine, lease_id: str) -> tuple[int, str]:
    """Status and code of a renewal."""
    reply = engine.ask("PUT", "sys/leases/renew", {"lease_id": lease_id})
    return reply.status, "" if reply.status == 200 else reply.codes[0]


def forget_rights(engine: SecretsEngine, lease_id: str) -> None:
    """Make a lease one of an earlier release, which does not record the rights on a shared application."""
    lease = engine.lease(lease_id)
    assert lease is not None
    assert lease.rights is not None
    engine.perform(engine.context.records.commit(Changes(puts={lease.key: evolve(lease, rights=None)})))


@pytest.mark.parametrize("persist_app", [False, True])
def test_a_lease_with_a_privileged_role_is_not_renewed_once_such_roles_are_denied(
    engine: SecretsEngine, persist_app: bool
) -> None:
    engine.role(azure_roles=engine.grants("Owner"), persist_app=persist_app)
    lease_id = lease_of(engine)
    engine.must("POST", CONFIG, {"deny_privileged_roles": True})
    assert renewal(engine, lease_id) == EXCEEDED
    engine.must("POST", CONFIG, {"deny_privileged_roles": False})
    assert renewal(engine, lease_id) == (200, "")


def test_a_role_definition_that_becomes_privileged_ends_renewals(engine: SecretsEngine) -> None:
    engine.role()
    engine.must("POST", CONFIG, {"deny_privileged_roles": True})
    lease_id = lease_of(engine)
    assert renewal(engine, lease_id) == (200, "")
    definitions = engine.simulator.world.role_definitions
    (guid,) = (guid for guid, each in definitions.items() if each.role_name == "Reader")
    definitions[guid] = evolve(definitions[guid], actions=("*",))
    assert renewal(engine, lease_id) == EXCEEDED


@pytest.mark.parametrize("is_of_an_earlier_release", [False, True])
def test_a_lease_of_an_existing_application_is_judged_by_it_after_its_role_was_rewritten(
    engine: SecretsEngine, is_of_an_earlier_release: bool
) -> None:
    engine.role(**existing(engine), max_ttl="700h")
    lease_id = lease_of(engine)
    if is_of_an_earlier_release:
        forget_rights(engine, lease_id)
    limits = {"allowed_application_ids": [], "allowed_scopes": [engine.scope], "allowed_role_definitions": ["Reader"]}
    engine.must("POST", CONFIG, limits)
    assert renewal(engine, lease_id) == EXCEEDED
    engine.must("POST", ROLE, {"application_object_id": "", "azure_roles": engine.grants("Reader")})
    unrecorded = (400, "lease_not_renewable")
    assert renewal(engine, lease_id) == (unrecorded if is_of_an_earlier_release else EXCEEDED)
    engine.must("PUT", "sys/leases/revoke", {"lease_id": lease_id})


@pytest.mark.parametrize("persist_app", [False, True])
def test_a_lease_of_an_earlier_release_is_renewed_where_its_role_still_says_what_it_holds(
    engine: SecretsEngine, persist_app: bool
) -> None:
    engine.role(**({"persist_app": True} if persist_app else existing(engine)))
    lease_id = lease_of(engine)
    forget_rights(engine, lease_id)
    assert renewal(engine, lease_id) == (200, "")
    engine.must("POST", ROLE, {"persist_app": False, "application_object_id": "", "azure_roles": engine.grants()})
    assert renewal(engine, lease_id) == (400, "lease_not_renewable")


def test_a_lease_is_not_renewed_once_the_service_authenticates_with_its_application(engine: SecretsEngine) -> None:
    engine.role(**existing(engine))
    lease_id = lease_of(engine)
    engine.must("POST", "sys/mounts/victim", {"type": "cloud"})
    credentials = {name: engine.other_application[name] for name in ("client_id", "client_secret")}
    engine.must("POST", "victim/config", {**engine.config, **credentials})
    assert renewal(engine, lease_id) == (403, "self_target")
    engine.must("PUT", "sys/leases/revoke", {"lease_id": lease_id})


def test_a_lease_of_a_kept_application_is_judged_by_what_that_has_now(engine: SecretsEngine) -> None:
    engine.role(azure_roles=engine.grants("Owner"), persist_app=True)
    lease_id = lease_of(engine)
    engine.must("POST", ROLE, {"azure_roles": engine.grants("Reader")})
    engine.converge()
    engine.must("POST", CONFIG, {**EVERYTHING, "allowed_role_definitions": ["Reader"]})
    assert renewal(engine, lease_id) == (200, "")
    engine.must("POST", CONFIG, {"allowed_role_definitions": ["Contributor"]})
    assert renewal(engine, lease_id) == EXCEEDED


def test_a_decision_reads_a_definition_once_however_often_a_role_assigns_it(engine: SecretsEngine) -> None:
    groups = sorted({machine["resource_id"].split("/providers/")[0] for machine in engine.scene["machines"]})
    scopes = [engine.scope, *(group for group in groups if group.startswith(f"{engine.scope}/"))]
    assert len(scopes) > 1
    engine.must("POST", CONFIG, {"deny_privileged_roles": True})
    engine.role(azure_roles=[grant for scope in scopes for grant in engine.grants(scope=scope)])
    lease_id = lease_of(engine)
    engine.trace.clear()
    assert renewal(engine, lease_id) == (200, "")
    calls = [effect.request.url for _, effect in engine.trace if isinstance(effect, CallProvider)]
    assert len([call for call in calls if "/roleDefinitions/" in call]) == 1


def test_an_issue_is_taken_back_when_privileged_roles_are_denied_meanwhile(engine: SecretsEngine) -> None:
    engine.role(azure_roles=engine.grants("Owner"))
    issue = engine.program(engine.request("GET", CREDS))
    response, _ = raced(engine, issue, "lease/", lambda: engine.must("POST", CONFIG, {"deny_privileged_roles": True}))
    assert (response.status, response.codes[0]) == EXCEEDED
    engine.converge()
    assert engine.is_clean()
    assert not engine.keys(keys.LEASES)


@pytest.mark.parametrize(
    "action, expected",
    [
        ("*", True),
        ("*/write", True),
        ("*/read", False),
        ("*/action", True),
        ("Microsoft.Authorization/*", True),
        ("microsoft.authorization/roleAssignments/Write", True),
        ("Microsoft.Authorization/roleAssignments/*", True),
        ("Microsoft.Authorization/*/read", False),
        ("Microsoft.Authorization/elevateAccess/action", True),
        ("Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write", True),
        ("Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/read", False),
        ("Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action", True),
        ("Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", True),
        ("Microsoft.ManagedIdentity/userAssignedIdentities/write", False),
        ("Microsoft.Compute/virtualMachines/*", True),
        ("Microsoft.Compute/virtualMachines/runCommand/action", True),
        ("Microsoft.Compute/virtualMachines/extensions/write", True),
        ("Microsoft.Compute/virtualMachineScaleSets/extensions/*", True),
        ("Microsoft.HybridCompute/machines/extensions/write", True),
        ("Microsoft.HybridCompute/machines/runCommands/write", True),
        ("Microsoft.HybridCompute/machines/extensions/read", False),
        ("Microsoft.Compute/virtualMachines/start/action", False),
        ("Microsoft.Compute/virtualMachines/*/read", False),
        ("Microsoft.Storage/*", False),
        ("Microsoft.*", True),
    ],
)
def test_actions_that_hand_out_rights_or_take_over_identities_are_privileged(action: str, expected: bool) -> None:
    assert is_privileged(action) is expected
