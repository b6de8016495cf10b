"""The fields that both configurations share, and their rules."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from cloudid_core.credentials import root_credential
from cloudid_core.credentials.root_credential import (
    AUTH_TYPES,
    ROOT_PASSWORD_TTL,
    RootCredential,
    credentials_of,
)
from cloudid_core.errors import Code, Refused
from cloudid_core.values.bounds import DAY
from cloudid_core.values.secret import Secret
from tests.installation import Installation


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"rotation_period": 5},
        {"rotation_period": 181 * DAY},
        {"root_password_ttl": 7200},
        {"root_password_ttl": 0},
        {"root_password_ttl": 2 * DAY, "rotation_schedule": "0 3 * * *"},
        {"root_password_ttl": 8 * DAY, "rotation_schedule": "0 3 * * 0"},
        {"root_password_ttl": 0, "rotation_schedule": "0 3 1 * *"},
        {"rotation_schedule": "0 3 * * *"},
        {"rotation_schedule": "0 3 * * *", "rotation_window": 3600},
        {"client_secret": Secret("x")},
        {"identity_token_audience": "x"},
    ],
)
def test_what_agrees_is_accepted(fields: dict[str, Any]) -> None:
    root_credential.check(RootCredential(**fields))


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"client_secret": Secret("x"), "identity_token_audience": "x"}, Code.FIELDS_EXCLUSIVE),
        ({"rotation_period": 5, "rotation_schedule": "0 3 * * *"}, Code.ROTATION_CONFLICT),
        ({"rotation_window": 3600}, Code.ROTATION_WINDOW_CONFLICT),
        ({"rotation_window": 3600, "rotation_period": 5}, Code.ROTATION_WINDOW_CONFLICT),
        ({"rotation_period": 4}, Code.FIELD_INVALID),
        ({"root_password_ttl": 7199}, Code.FIELD_INVALID),
        ({"root_password_ttl": 182}, Code.FIELD_INVALID),
        ({"root_password_ttl": 7200, "rotation_period": 10 * DAY}, Code.FIELD_INVALID),
        ({"rotation_period": 181 * DAY + 1}, Code.FIELD_INVALID),
        ({"root_password_ttl": 2 * DAY - 1, "rotation_schedule": "0 3 * * *"}, Code.FIELD_INVALID),
        ({"root_password_ttl": 8 * DAY - 1, "rotation_schedule": "0 3 * * 0"}, Code.FIELD_INVALID),
        ({"rotation_schedule": "0 3 1 1 *"}, Code.FIELD_INVALID),
        ({"rotation_schedule": "0 3 * * *", "rotation_window": 3599}, Code.FIELD_INVALID),
    ],
)
def test_what_contradicts_itself_is_refused(fields: dict[str, Any], code: Code) -> None:
    """Each rule with its own code."""
    with pytest.raises(Refused) as refused:
        root_credential.check(RootCredential(**fields))
    assert code in [problem.code for problem in refused.value.problems]


def test_defaults() -> None:
    """An hour for identity tokens, 182 days for passwords, no rotation."""
    default = RootCredential()
    assert (default.identity_token_ttl, default.root_password_ttl) == (3600, 15_724_800)
    assert (default.rotation_period, default.rotation_schedule, default.rotation_window) == (0, "", 0)


@pytest.mark.parametrize("stored, lifetime", [(20, 7200), (7199, 7200), (7200, 7200), (0, ROOT_PASSWORD_TTL)])
def test_a_lifetime_that_was_stored_before_there_was_a_bound_is_raised(stored: int, lifetime: int) -> None:
    """A secret that lives for seconds would be dead before it is in use."""
    assert RootCredential(root_password_ttl=stored).secret_lifetime == lifetime


FILE = {"AZURE_FEDERATED_TOKEN_FILE": Secret("/var/run/token")}
BY_AUTH_TYPE: dict[str, tuple[dict[str, Any], dict[str, Secret]]] = {
    "root_creds": ({"client_secret": Secret("x")}, FILE),
    "plugin_wif": ({"identity_token_audience": "x"}, FILE),
    "msi": ({}, {}),
    "aks_wi": ({}, FILE),
}


@pytest.mark.parametrize("configured", BY_AUTH_TYPE)
@pytest.mark.parametrize("named", ["", *AUTH_TYPES])
def test_the_credential_that_is_named_must_be_the_one_that_is_configured(configured: str, named: str) -> None:
    fields, environment = BY_AUTH_TYPE[configured]
    config = RootCredential(**fields, auth_type=named)
    if named in ("", configured):
        root_credential.check(config, environment)
        return
    with pytest.raises(Refused) as refused:
        root_credential.check(config, environment)
    assert refused.value.code is Code.FIELD_INVALID
    assert '"auth_type"' in str(refused.value)


def test_the_check_of_the_named_credential_agrees_with_what_mounts_use() -> None:
    world = Installation(environment=FILE)
    mount = world.mount("cloud")
    for fields, _ in BY_AUTH_TYPE.values():
        config = RootCredential(**fields)
        source = credentials_of(world.context, mount, config).source
        (name,) = (name for name, each in AUTH_TYPES.items() if each is source)
        root_credential.check(evolve(config, auth_type=name), FILE)
