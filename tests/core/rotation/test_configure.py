"""What both components do with their configurations."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from cloudid_core.mounts import mount_table
from cloudid_core.rotation.configure import root_password_expiration
from cloudid_core.secrets_engine.config import Config, find_config
from cloudid_core.store.changes import Changes
from cloudid_core.system.stored_rules import LOOK_PAUSE
from cloudid_core.values.secret import Secret
from tests.engines import NO_ID, SecretsEngine, engine_config
from tests.logins import login_config

from .rotating import rotating

EXPIRATION = "root_password_expiration_date"
AUDIENCE: dict[str, Any] = {"client_secret": "", "identity_token_audience": "api://exchange"}


def configured(
    environment: dict[str, str] | None = None, issuer: str = "https://id.test", **fields: Any
) -> SecretsEngine:
    secrets = {name: Secret(value) for name, value in (environment or {}).items()}
    world = SecretsEngine(environment=secrets, issuer=issuer)
    world.must("POST", "cloud/config", {**engine_config(world), **fields})
    return world


@pytest.mark.parametrize(
    "environment, fields, source",
    [
        ({}, {}, "client_secret"),
        ({}, AUDIENCE, "identity_token"),
        ({"AZURE_FEDERATED_TOKEN_FILE": "/token"}, AUDIENCE, "identity_token"),
        ({"AZURE_FEDERATED_TOKEN_FILE": "/token"}, {}, "client_secret"),
        ({"AZURE_FEDERATED_TOKEN_FILE": "/token"}, {"client_secret": ""}, "federated_token_file"),
        ({"CLOUD_FEDERATED_TOKEN_FILE": "/token"}, {"client_secret": ""}, "federated_token_file"),
        ({}, {"client_secret": ""}, "managed_identity"),
        ({"AZURE_CLIENT_SECRET": "outer"}, AUDIENCE, "identity_token"),
        ({"AZURE_CLIENT_SECRET": "outer"}, {"client_secret": ""}, "client_secret"),
    ],
)
def test_the_source_follows_from_what_is_configured(
    environment: dict[str, str], fields: dict[str, Any], source: str
) -> None:
    assert configured(environment, **fields).must("GET", "cloud/rotation").data["credential_source"] == source


def test_an_audience_needs_an_issuer() -> None:
    world = configured(issuer="")
    assert world.refused("POST", "cloud/config", AUDIENCE) == (400, "issuer_missing")


def test_an_audience_without_a_client_id_warns() -> None:
    world = configured()
    reply = world.ask("POST", "cloud/config", {**AUDIENCE, "client_id": ""})
    assert (reply.status, reply.body["warnings"]) == (
        200,
        ["identity_token_audience cannot be used: client_id is not set"],
    )


def test_a_client_secret_that_the_environment_adds_later_is_not_used_and_warns() -> None:
    world = configured(**AUDIENCE)
    world.settings = evolve(world.settings, environment={"CLOUD_CLIENT_SECRET": Secret("outer")})
    world.restart()
    reply = world.must("GET", "cloud/rotation")
    assert reply.data["credential_source"] == "identity_token"
    assert "from the environment is ignored" in reply.body["warnings"][0]
    refused = world.ask("POST", "cloud/config", {"identity_token_ttl": 600})
    assert (refused.status, refused.codes) == (400, ["fields_exclusive"])
    assert "CLOUD_CLIENT_SECRET" in refused.body["errors"][0]


@pytest.mark.parametrize(
    "fields",
    [
        {"root_password_ttl": 182},
        {"root_password_ttl": 7199},
        {"root_password_ttl": "10d", "rotation_period": 10 * 86_400},
        {"root_password_ttl": "30d", "rotation_schedule": "0 0 1 * *"},
        {"rotation_schedule": "0 0 1 1 *"},
        {"identity_token_ttl": 59},
        {"identity_token_ttl": 86_401},
    ],
)
def test_what_would_lock_the_service_out_is_refused(fields: dict[str, Any]) -> None:
    assert configured().ask("POST", "cloud/config", fields).codes == ["field_invalid"]


@pytest.mark.parametrize(
    "fields",
    [
        {"root_password_ttl": 7200},
        {"root_password_ttl": 0},
        {"root_password_ttl": "11d", "rotation_period": 10 * 86_400},
        {"root_password_ttl": "32d", "rotation_schedule": "0 0 1 * *"},
        {"identity_token_ttl": 60},
        {"identity_token_ttl": 86_400},
    ],
)
def test_what_leaves_enough_time_is_accepted(fields: dict[str, Any]) -> None:
    configured().must("POST", "cloud/config", fields)


def test_an_identity_token_ttl_of_zero_is_an_hour() -> None:
    world = configured(identity_token_ttl=600)
    world.must("POST", "cloud/config", {"identity_token_ttl": 0})
    assert world.must("GET", "cloud/config").data["identity_token_ttl"] == 3600


def test_the_end_of_the_secret_is_shown_once_it_is_known() -> None:
    world = rotating()
    assert EXPIRATION not in world.must("GET", "cloud/config").data
    world.must("POST", "cloud/config", {"root_password_ttl": "10d"})
    world.rotate()
    assert world.must("GET", "cloud/config").data[EXPIRATION] == "2027-01-25T08:00:00Z"
    assert world.status()["expires"] == "2027-01-25T08:00:00Z"


def test_the_end_of_a_secret_that_no_rotation_made_is_unknown() -> None:
    world = rotating()
    world.rotate()
    another = Config(client_secret=Secret("another"))
    assert world.perform(root_password_expiration(world.context, world.mount(), another)) == {}


FLAWS = ("{}\n", "{}\r\n", " {}", "{}\u00a0", "a\t{}", "{}\x7f")


@pytest.mark.parametrize("flaw", FLAWS)
@pytest.mark.parametrize("mount", ["cloud", "auth/cloud"])
def test_a_client_secret_with_a_line_break_or_white_space_at_an_end_is_refused(mount: str, flaw: str) -> None:
    world = SecretsEngine()
    written = {**(login_config(world) if mount == "auth/cloud" else world.config)}
    written["client_secret"] = flaw.format(written["client_secret"])
    reply = world.ask("POST", f"{mount}/config", written)
    assert (reply.status, reply.codes) == (400, ["field_invalid"])
    assert '"client_secret"' in reply.body["errors"][0]
    assert world.config["client_secret"] not in str(reply.body)


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_variable_with_a_line_break_is_named_by_warnings_health_and_the_refusal(flaw: str) -> None:
    secret = SecretsEngine().config["client_secret"]
    world = configured({"CLOUD_CLIENT_SECRET": flaw.format(secret)}, client_secret="")
    (warning,) = world.must("GET", "cloud/config").body["warnings"]
    assert "the environment variable CLOUD_CLIENT_SECRET" in warning
    refused = world.write_role(azure_roles=world.grants())
    assert (refused.status, refused.codes) == (502, ["provider_secret_refused"])
    assert "the environment variable CLOUD_CLIENT_SECRET" in refused.body["errors"][0]
    world.advance(LOOK_PAUSE)
    world.perform(world.service.upkeep())
    problem, refusal = world.must("GET", "sys/health").body["problem_details"]
    assert refusal["code"] == "credential_refused"
    assert (problem["code"], "CLOUD_CLIENT_SECRET" in problem["text"]) == ("credential_at_risk", True)
    for shown in (warning, refused.body, problem, refusal):
        assert secret not in str(shown)


def test_a_stored_client_secret_with_a_line_break_stays_in_use_and_health_names_it() -> None:
    world = configured()
    mount = world.perform(mount_table(world.context.records)).record.by_path["cloud"]
    found = world.perform(find_config(world.context, mount))
    assert found is not None
    broken = evolve(found.record, client_secret=Secret(found.record.client_secret.reveal() + "\n"))
    world.perform(world.context.records.commit(Changes(found.expected, {found.key: broken})))
    refused = world.write_role(azure_roles=world.grants())
    assert (refused.status, refused.codes) == (502, ["provider_secret_refused"])
    assert '"client_secret" has a control character' in refused.body["errors"][0]
    world.advance(LOOK_PAUSE)
    world.perform(world.service.upkeep())
    problem, refusal = world.must("GET", "sys/health").body["problem_details"]
    assert (problem["code"], refusal["code"]) == ("credential_at_risk", "credential_refused")
    assert "cloudid write cloud/config" in problem["remedy"]
    world.must("POST", "cloud/config", {"client_secret": world.config["client_secret"]})
    world.must("POST", "cloud/roles/web", {"azure_roles": world.grants()})


def test_a_guid_as_client_secret_is_warned_about() -> None:
    """It is usually the id of the secret."""
    world = SecretsEngine()
    world.must("POST", "cloud/config", world.config)
    reply = world.must("POST", "cloud/config", {"client_secret": NO_ID})
    assert reply.body["warnings"] == [
        '"client_secret" is a GUID: it may be the id of a client secret instead of its value'
    ]
