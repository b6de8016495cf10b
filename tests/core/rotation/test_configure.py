"""What both components do with their configurations."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from cloudid_core.rotation.configure import root_password_expiration
from cloudid_core.secrets_engine.config import Config
from cloudid_core.values.secret import Secret
from tests.engines import SecretsEngine, engine_config

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
    assert "of the environment is not" in reply.body["warnings"][0]
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
