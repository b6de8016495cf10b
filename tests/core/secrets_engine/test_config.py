"""The configuration of a secrets engine: fields, rules, and what may not be stranded."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.values.secret import Secret
from tests.engines import CONFIG, CREDS, DAY, ROLE, SecretsEngine, configured_engine

EMPTY = {
    "client_id": "",
    "identity_token_audience": "",
    "identity_token_ttl": 3600,
    "root_password_ttl": 182 * DAY,
    "rotation_period": 0,
    "rotation_schedule": "",
    "rotation_window": 0,
    "disable_automated_rotation": False,
    "subscription_id": "",
    "tenant_id": "",
    "environment": "",
}
NIGHTLY = {"rotation_schedule": "0 3 * * *"}


@pytest.fixture
def bare() -> SecretsEngine:
    return SecretsEngine()


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def with_lease() -> SecretsEngine:
    engine = configured_engine()
    engine.role()
    engine.must("GET", CREDS)
    return engine


def with_intent() -> SecretsEngine:
    """An engine whose issue was interrupted."""
    engine = configured_engine()
    engine.role()
    engine.fail(
        method="POST",
        path="/graph/v1.0/applications/[^/]+/addPassword",
        times=1,
        status=403,
        code="Authorization_RequestDenied",
    )
    engine.behave(delays={"writes": [30, 30]})
    assert engine.ask("GET", CREDS, x_service_deadline="5").status >= 500
    engine.heal()
    assert engine.intents()
    return engine


def test_without_a_configuration_everything_is_empty(bare: SecretsEngine) -> None:
    """Not the defaults, which would look like a written configuration. There is no secret either."""
    assert bare.must("GET", CONFIG).data == {**EMPTY, "identity_token_ttl": 0, "root_password_ttl": 0}


def test_everything_but_the_secret_is_read_back(bare: SecretsEngine) -> None:
    fields = {
        "subscription_id": "0000000A-0000-0000-0000-000000000001",
        "tenant_id": "t",
        "client_id": "c",
        "client_secret": "hidden",
        "environment": "AzureChinaCloud",
        "root_password_ttl": "90d",
        "identity_token_ttl": "10m",
        "rotation_schedule": "0 3 * * *",
        "rotation_window": "2h",
        "disable_automated_rotation": "true",
    }
    assert bare.ask("PUT", CONFIG, fields).status == 204
    reply = bare.must("GET", CONFIG)
    assert reply.data == {
        **EMPTY,
        **{name: fields[name] for name in ("subscription_id", "tenant_id", "client_id", "environment")},
        "root_password_ttl": 90 * DAY,
        "identity_token_ttl": 600,
        "rotation_schedule": "0 3 * * *",
        "rotation_window": 7200,
        "disable_automated_rotation": True,
    }
    assert "hidden" not in str(reply.body)


@pytest.mark.parametrize("missing", ["subscription_id", "tenant_id"])
def test_what_is_required_may_come_from_the_environment(bare: SecretsEngine, missing: str) -> None:
    fields = {name: value for name, value in bare.config.items() if name != missing}
    assert bare.refused("POST", CONFIG, fields) == (400, "field_required")
    for variable in ("CLOUD_", "AZURE_"):
        bare.restart(environment={f"{variable}{missing.upper()}": Secret(bare.config[missing])})
        bare.must("POST", CONFIG, fields)
        assert bare.must("GET", CONFIG).data[missing] == ""


def test_a_write_keeps_what_it_does_not_name(engine: SecretsEngine) -> None:
    before = engine.must("GET", CONFIG).data
    engine.must("POST", CONFIG, {"root_password_ttl": "10d"})
    assert engine.must("GET", CONFIG).data == {**before, "root_password_ttl": 10 * DAY}
    engine.role()
    assert engine.ask("GET", CREDS).status == 200


@pytest.mark.parametrize("spelling", ["CloudPublicCloud", "cloudusgovernmentcloud", "AzureGermanCloud", ""])
def test_an_environment_is_read_back_as_it_was_written(bare: SecretsEngine, spelling: str) -> None:
    bare.must("POST", CONFIG, {**bare.config, "environment": spelling})
    assert bare.must("GET", CONFIG).data["environment"] == spelling


def test_an_unknown_environment_is_refused(bare: SecretsEngine) -> None:
    assert bare.refused("POST", CONFIG, {**bare.config, "environment": "CloudMoonCloud"}) == (400, "field_invalid")


def test_secret_and_identity_token_exclude_each_other_on_what_counts(engine: SecretsEngine) -> None:
    """One after the other too, and where one comes from the environment; one write can change from one to the other."""
    assert engine.refused("POST", CONFIG, {"identity_token_audience": "api://exchange"}) == (400, "fields_exclusive")
    engine.must("POST", CONFIG, {"identity_token_audience": "api://exchange", "client_secret": ""})
    assert engine.refused("POST", CONFIG, {"client_secret": "secret"}) == (400, "fields_exclusive")
    engine.restart(environment={"CLOUD_CLIENT_SECRET": Secret("secret")})
    assert engine.refused("POST", CONFIG, {"identity_token_ttl": 60}) == (400, "fields_exclusive")


@pytest.mark.parametrize(
    "first, second, code",
    [
        ({"rotation_period": 60}, NIGHTLY, "rotation_conflict"),
        (NIGHTLY, {"rotation_period": 60}, "rotation_conflict"),
        ({"rotation_period": 60}, {"rotation_window": 3600}, "rotation_window_conflict"),
        ({}, {"rotation_window": 3600}, "rotation_window_conflict"),
        ({**NIGHTLY, "rotation_window": 3600}, {"rotation_schedule": ""}, "rotation_window_conflict"),
        ({}, {"rotation_period": 4}, "field_invalid"),
        (NIGHTLY, {"rotation_window": 3599}, "field_invalid"),
        ({}, {"rotation_schedule": "every day"}, "field_invalid"),
        ({}, {"root_password_ttl": -1}, "field_invalid"),
    ],
)
def test_rules_of_rotation_hold_for_what_was_written_at_any_time(
    engine: SecretsEngine, first: dict[str, Any], second: dict[str, Any], code: str
) -> None:
    engine.must("POST", CONFIG, first)
    before = engine.must("GET", CONFIG).data
    assert code in engine.refused("POST", CONFIG, second)
    assert engine.must("GET", CONFIG).data == before


def test_a_schedule_can_take_the_place_of_a_period(engine: SecretsEngine) -> None:
    engine.must("POST", CONFIG, {"rotation_period": 60})
    engine.must("POST", CONFIG, {"rotation_period": 0, "rotation_schedule": "0 3 * * *"})


def test_a_broken_environment_variable_is_named(bare: SecretsEngine) -> None:
    """It is a 400 and no 500. Its value is not repeated, since it may be a secret in the wrong variable."""
    bare.restart(environment={"CLOUD_ENVIRONMENT": Secret("hunter2")})
    reply = bare.ask("POST", CONFIG, bare.config)
    assert (reply.status, reply.codes) == (400, ["field_invalid"])
    assert "CLOUD_ENVIRONMENT" in reply.body["errors"][0]
    assert "hunter2" not in str(reply.body)


STRANDING = [
    ("DELETE", CONFIG, None),
    ("DELETE", CONFIG, {}),
    ("POST", CONFIG, {"tenant_id": "another"}),
    ("POST", CONFIG, {"environment": "CloudChinaCloud"}),
]


@pytest.mark.parametrize("make", [with_lease, with_intent])
@pytest.mark.parametrize("method, path, fields", STRANDING)
def test_leases_and_intents_are_not_stranded_without_force(make: Any, method: str, path: str, fields: Any) -> None:
    engine = make()
    before = engine.must("GET", CONFIG).data
    reply = engine.ask(method, path, fields)
    assert (reply.status, reply.codes) == (409, ["leases_alive"])
    holders = (*engine.leases(), *(intent.id for intent in engine.intents()))
    assert all(holder in reply.body["errors"][0] for holder in holders)
    assert "force=true" in reply.body["errors"][0]
    assert engine.must("GET", CONFIG).data == before
    if fields is None:
        path += "?force=true"
    else:
        fields = {**fields, "force": True}
    assert engine.ask(method, path, fields).status == 204
    assert engine.must("GET", CONFIG).data != before


@pytest.mark.parametrize("method, path, fields", STRANDING)
def test_the_application_that_a_role_keeps_is_not_stranded_without_force(method: str, path: str, fields: Any) -> None:
    engine = configured_engine()
    engine.role(persist_app=True)
    reply = engine.ask(method, path, fields)
    assert (reply.status, reply.codes) == (409, ["leases_alive"])
    assert "roles with an app registration or a client secret: 1" in reply.body["errors"][0]
    engine.must("DELETE", ROLE)
    engine.converge()
    assert not engine.alive()
    assert engine.ask(method, path, fields).status == 204


@pytest.mark.parametrize("method, path, fields", [("DELETE", CONFIG, None), ("POST", CONFIG, {"tenant_id": "another"})])
def test_an_issue_that_begins_meanwhile_is_not_stranded(method: str, path: str, fields: Any) -> None:
    """Each time the two requests go on in another order. What begins after the change is made in the new tenant."""
    original = configured_engine()
    original.role()
    outcomes = set()
    for seed in range(60):
        engine = SecretsEngine.copy_of(original, seed)
        engine.spawn(engine.asking("GET", CREDS))
        change = engine.spawn(engine.asking(method, path, fields))
        engine.settle()
        status = change.result().status
        outcomes.add(status)
        if status == 204:
            assert not engine.leases(), seed
            assert {intent.provisioned.tenant for intent in engine.intents()} <= {"another"}, seed
    assert outcomes == {204, 409}


@pytest.mark.parametrize("method, path, fields", STRANDING)
def test_a_configuration_is_changed_and_deleted_freely_while_nothing_is_alive(
    engine: SecretsEngine, method: str, path: str, fields: Any
) -> None:
    assert engine.ask(method, path, fields).status == 204


def test_another_spelling_of_the_same_tenant_strands_nothing() -> None:
    """A stored value that the environment overrides may change too."""
    engine = with_lease()
    engine.must("POST", CONFIG, {"tenant_id": engine.config["tenant_id"].upper(), "environment": "azurepubliccloud"})
    engine.restart(environment={"CLOUD_TENANT_ID": Secret(engine.config["tenant_id"])})
    engine.must("POST", CONFIG, {"tenant_id": "another"})
    engine.must("POST", CONFIG, {"root_password_ttl": "9d"})


def test_stranded_leases_stay_listed_and_are_worked_off_when_a_configuration_returns() -> None:
    engine = with_lease()
    engine.must("DELETE", f"{CONFIG}?force=true")
    assert engine.ask("PUT", "sys/leases/revoke-prefix/cloud").status == 503
    for _ in range(3):
        engine.tick()
        engine.advance(4000)
    assert engine.leases()
    assert engine.alive("application")
    engine.must("POST", CONFIG, engine.config)
    engine.converge()
    assert not engine.leases()
    assert not engine.alive()


def test_another_tenant_is_not_asked_about_the_objects_of_this_one() -> None:
    """It does not know them: that would look as if they were gone."""
    engine = with_lease()
    engine.must("POST", CONFIG, {"tenant_id": "another", "force": True})
    assert engine.ask("PUT", "sys/leases/revoke-prefix/cloud").status == 503
    for _ in range(3):
        engine.tick()
        engine.advance(4000)
    (lease_id,) = engine.leases()
    lease = engine.lease(lease_id)
    assert lease is not None
    assert "tenant" in lease.reason
    engine.must("POST", CONFIG, {"tenant_id": engine.config["tenant_id"], "force": True})
    engine.converge()
    assert not engine.alive()


def test_deleting_a_configuration_that_does_not_exist_succeeds(bare: SecretsEngine) -> None:
    assert bare.ask("DELETE", CONFIG).status == 204


@pytest.mark.parametrize("method, path", [("POST", ROLE), ("POST", "cloud/rotate-root")])
def test_roles_and_credentials_need_a_configuration(bare: SecretsEngine, method: str, path: str) -> None:
    assert bare.refused(method, path, {"azure_roles": bare.grants()}) == (400, "config_missing")


@pytest.mark.parametrize("mount", ["cloud", "auth/cloud"])
def test_the_end_of_a_rotated_secret_is_shown(bare: SecretsEngine, mount: str) -> None:
    """Only while that secret is configured: the end of a secret that an operator wrote is not known."""
    bare.must("POST", f"{mount}/config", {**bare.config, "resource": "r", "root_password_ttl": "10d"})
    assert "root_password_expiration_date" not in bare.must("GET", f"{mount}/config").data
    bare.must("POST", f"{mount}/rotate-root")
    bare.converge()
    shown = bare.must("GET", f"{mount}/config").data
    assert shown["root_password_expiration_date"].startswith("2027-01-25T")
    bare.must("POST", f"{mount}/config", {"client_secret": "by hand"})
    assert "root_password_expiration_date" not in bare.must("GET", f"{mount}/config").data


def test_unknown_fields_are_named_in_a_warning(engine: SecretsEngine) -> None:
    reply = engine.must("POST", CONFIG, {"root_pasword_ttl": "1d"})
    assert reply.status == 200
    assert "root_pasword_ttl" in reply.body["warnings"][0]


def test_two_writes_at_once_both_count(engine: SecretsEngine) -> None:
    writes = ({"root_password_ttl": "9d"}, {"rotation_period": 3600}, {"identity_token_ttl": 60})
    writing = [engine.spawn(engine.asking("POST", CONFIG, fields)) for fields in writes]
    engine.advance(5)
    assert [each.result().status for each in writing] == [204] * 3
    shown = engine.must("GET", CONFIG).data
    assert [shown[name] for fields in writes for name in fields] == [9 * DAY, 3600, 60]


@pytest.mark.parametrize("subscription", ["s", "..", "0000000A-0000-0000-0000-00000000000", "{guid}", "a/b"])
def test_a_subscription_is_a_guid(bare: SecretsEngine, subscription: str) -> None:
    assert bare.refused("POST", CONFIG, {**bare.config, "subscription_id": subscription}) == (400, "field_invalid")


def test_the_mask_of_a_secret_is_no_secret(engine: SecretsEngine) -> None:
    engine.role()
    engine.must("POST", CONFIG, {"client_secret": Secret.MASK})
    assert engine.ask("GET", CREDS).status == 200
