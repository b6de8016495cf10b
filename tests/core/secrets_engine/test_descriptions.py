"""What the engine's app registrations are called and refer to, as the tenant's rules want it."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.leases.record import find_lease
from cloudid_servers.provider_simulator.world.objects import Application
from tests.engines import CONFIG, CREDS, ROLE, SecretsEngine, configured_engine
from tests.installation import SETTLE_TIME

REFERENCE = "96524024-75b0-497b-ab38-0381399a6aaa"
PREFIX = "team payments "
RECONCILE = "cloud/reconcile"


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def made(engine: SecretsEngine) -> list[Application]:
    """The app registrations that the service has made and not deleted."""
    found = [engine.simulator.world.directory.applications.get(each.id) for each in engine.alive("application")]
    return [each for each in found if each is not None]


def references(engine: SecretsEngine) -> list[str | None]:
    return [each.service_management_reference for each in made(engine)]


def test_without_a_reference_a_tenant_that_requires_one_refuses(engine: SecretsEngine) -> None:
    engine.behave(requires_reference=True)
    engine.role()
    assert engine.refused("GET", CREDS) == (502, "provider_policy_refused")


@pytest.mark.parametrize("upsert", [None, 400])
@pytest.mark.parametrize("fields", [{}, {"persist_app": True}])
def test_the_reference_of_the_configuration_is_sent(
    engine: SecretsEngine, fields: dict[str, Any], upsert: int | None
) -> None:
    engine.behave(requires_reference=True, upsert=upsert)
    engine.must("POST", CONFIG, {"service_management_reference": REFERENCE})
    assert engine.must("GET", CONFIG).data["service_management_reference"] == REFERENCE
    engine.role(**fields)
    engine.must("GET", CREDS)
    assert references(engine) == [REFERENCE]


def test_the_reference_of_a_role_takes_its_place(engine: SecretsEngine) -> None:
    engine.must("POST", CONFIG, {"service_management_reference": REFERENCE})
    engine.role(service_management_reference="of the role")
    assert engine.shown_role()["service_management_reference"] == "of the role"
    engine.must("GET", CREDS)
    assert references(engine) == ["of the role"]


def test_a_kept_application_gets_the_reference_at_the_next_write_of_its_role(engine: SecretsEngine) -> None:
    engine.role(persist_app=True, tags=["a"])
    assert references(engine) == [None]
    engine.must("POST", ROLE, {"service_management_reference": REFERENCE})
    assert references(engine) == [REFERENCE]
    engine.must("POST", ROLE, {"service_management_reference": ""})
    assert references(engine) == [None]


@pytest.mark.parametrize("upsert", [None, 400])
@pytest.mark.parametrize("fields", [{}, {"persist_app": True, "tags": ["a"]}])
def test_display_names_have_the_prefix_and_everything_is_found_without_it(
    engine: SecretsEngine, fields: dict[str, Any], upsert: int | None
) -> None:
    """Also where another prefix is configured by then, and after the tags of a kept application were changed."""
    engine.behave(upsert=upsert)
    engine.must("POST", CONFIG, {"display_name_prefix": PREFIX})
    engine.role(permanently_delete=True, **fields)
    if fields:
        engine.must("POST", ROLE, {"tags": ["b"]})
    lease_id = engine.must("GET", CREDS).body["lease_id"]
    (application,) = made(engine)
    assert application.display_name.startswith(f"{PREFIX}cloudid-")
    engine.must("POST", CONFIG, {"display_name_prefix": "other "})
    engine.advance(SETTLE_TIME + 1)
    report = engine.must("GET", RECONCILE).data
    assert (report["unaccounted"], report["missing"]) == ([], [])
    engine.must("PUT", "sys/leases/revoke", {"lease_id": lease_id})
    engine.must("DELETE", ROLE)
    engine.converge()
    assert engine.is_clean()


@pytest.mark.parametrize("upsert", [None, 400])
def test_a_prefixed_application_without_a_record_is_found_and_removed(
    engine: SecretsEngine, upsert: int | None
) -> None:
    engine.behave(upsert=upsert)
    engine.must("POST", CONFIG, {"display_name_prefix": PREFIX})
    engine.role()
    lease_id = engine.must("GET", CREDS).body["lease_id"]
    (application,) = made(engine)
    engine.must("POST", CONFIG, {"display_name_prefix": ""})
    records = engine.context.records
    lease = engine.perform(find_lease(engine.context, lease_id))
    assert lease is not None
    engine.perform(records.commit(lease.record.removal))
    engine.advance(SETTLE_TIME + 1)
    found = engine.must("GET", RECONCILE).data["unaccounted"]
    assert ("application", application.id) in [(each["kind"], each["id"]) for each in found]
    engine.must("POST", RECONCILE, {})
    engine.converge()
    assert made(engine) == []


@pytest.mark.parametrize("value", ["a\nb", "p" * 101])
def test_a_prefix_that_no_name_can_have_is_refused(engine: SecretsEngine, value: str) -> None:
    assert engine.refused("POST", CONFIG, {"display_name_prefix": value}) == (400, "field_invalid")


def test_an_issue_that_is_cut_off_is_undone_under_another_prefix(engine: SecretsEngine) -> None:
    engine.must("POST", CONFIG, {"display_name_prefix": PREFIX})
    engine.role()
    engine.fail(method="PATCH", path="/graph/v1.0/applications", after_work=True, drop=True)
    assert engine.ask("GET", CREDS).status == 503
    engine.must("POST", CONFIG, {"display_name_prefix": "other "})
    engine.heal()
    engine.converge()
    assert engine.is_clean()
