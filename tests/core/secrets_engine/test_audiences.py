"""App registrations are open to the own tenant only, also those that earlier releases made without an audience."""

from __future__ import annotations

import pytest
from attrs import evolve

from cloudid_core.store import Changes
from cloudid_core.system.stored_rules import LOOK_PAUSE
from tests.engines import CREDS, ROLE, SecretsEngine, configured_engine

OPEN = "AzureADandPersonalMicrosoftAccount"
CLOSED = "AzureADMyOrg"


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def audiences(engine: SecretsEngine) -> list[str]:
    """Those of the applications that the service has made."""
    applications = engine.simulator.world.directory.applications.all()
    return [
        each.sign_in_audience for each in applications if each.display_name.startswith(engine.context.marker_prefix)
    ]


def reopen(engine: SecretsEngine) -> None:
    """Make every application, and the record of it, as an earlier release made it."""
    directory = engine.simulator.world.directory
    for application in list(directory.applications.all()):
        if application.display_name.startswith(engine.context.marker_prefix):
            directory.replace(evolve(application, sign_in_audience=OPEN))
    for lease_id in engine.leases():
        lease = engine.lease(lease_id)
        assert lease is not None
        older = evolve(lease, provisioned=evolve(lease.provisioned, audience=""))
        engine.perform(engine.context.records.commit(Changes(puts={lease.key: older})))
    role = engine.stored_role()
    if role.persistent_app:
        (key,) = (key for key in engine.keys("mount/") if key.endswith("/role/web"))
        kept = evolve(role.persistent_app, provisioned=evolve(role.persistent_app.provisioned, audience=""))
        engine.perform(engine.context.records.commit(Changes(puts={key: evolve(role, persistent_app=kept)})))


def counted(engine: SecretsEngine) -> list[str]:
    """The counts of open registrations in health."""
    engine.advance(LOOK_PAUSE)
    engine.perform(engine.service.upkeep())
    details = engine.must("GET", "sys/health").body["problem_details"]
    return [each["text"].rpartition(" ")[2] for each in details if each["code"] == "audience_open"]


@pytest.mark.parametrize("persist_app", [False, True])
def test_an_application_is_open_to_its_own_tenant_only(engine: SecretsEngine, persist_app: bool) -> None:
    engine.role(persist_app=persist_app)
    engine.must("GET", CREDS)
    assert audiences(engine) == [CLOSED]
    assert engine.shown_role()["sign_in_audience"] == ""


@pytest.mark.parametrize("persist_app", [False, True])
def test_registrations_of_earlier_releases_are_closed_once_and_counted_until_then(
    engine: SecretsEngine, persist_app: bool
) -> None:
    engine.role(persist_app=persist_app)
    engine.must("GET", CREDS)
    reopen(engine)
    node = engine.open_node()
    engine.fail(method="PATCH", status=403, code="Authorization_RequestDenied")
    engine.perform(node.upkeep())
    engine.pass_time(5)
    assert (audiences(engine), counted(engine)) == ([OPEN], ["1"])
    engine.heal()
    engine.pass_time(600)
    assert (audiences(engine), counted(engine)) == ([CLOSED], [])


def test_an_audience_that_the_role_asks_for_is_kept(engine: SecretsEngine) -> None:
    engine.role(sign_in_audience="CloudADandPersonalVendorAccount")
    engine.must("GET", CREDS)
    reopen(engine)
    engine.perform(engine.open_node().upkeep())
    engine.pass_time(60)
    assert (audiences(engine), counted(engine)) == ([OPEN], [])


def test_writing_the_role_closes_its_application_too(engine: SecretsEngine) -> None:
    engine.role(persist_app=True)
    reopen(engine)
    engine.must("POST", ROLE, {"ttl": 60})
    assert audiences(engine) == [CLOSED]
