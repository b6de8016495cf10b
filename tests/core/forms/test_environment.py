"""The process environment's say in configurations."""

from __future__ import annotations

import pytest

from cloudid_core.auth_method.config import Config
from cloudid_core.forms.environment import effective, supplied
from cloudid_core.values.secret import Secret

STORED = Config(tenant_id="stored", resource="", client_secret=Secret("stored"))


@pytest.mark.parametrize(
    "environment, tenant, resource",
    [
        ({}, "stored", ""),
        ({"CLOUD_TENANT_ID": "cloud"}, "cloud", ""),
        ({"AZURE_TENANT_ID": "azure"}, "stored", ""),
        ({"AZURE_AD_RESOURCE": "azure"}, "stored", "azure"),
        ({"CLOUD_AD_RESOURCE": "cloud", "AZURE_AD_RESOURCE": "azure"}, "stored", "cloud"),
        ({"CLOUD_TENANT_ID": ""}, "stored", ""),
        ({"CLOUD_UNKNOWN": "x"}, "stored", ""),
    ],
)
def test_what_counts(environment: dict[str, str], tenant: str, resource: str) -> None:
    """`CLOUD_*` overrides; `AZURE_*` only fills what is empty; an empty variable is none."""
    config = effective(STORED, {name: Secret(value) for name, value in environment.items()})
    assert (config.tenant_id, config.resource) == (tenant, resource)


def test_secrets_stay_secrets() -> None:
    """A client secret from the environment is as masked as a stored one."""
    config = effective(STORED, {"CLOUD_CLIENT_SECRET": Secret("from the environment")})
    assert config.client_secret == Secret("from the environment")
    assert "from the environment" not in repr(config)


def test_only_an_override_supplies() -> None:
    """A fallback variable does not take a field away from those who write it."""
    assert supplied(Config, "client_secret", {"CLOUD_CLIENT_SECRET": Secret("x")})
    assert not supplied(Config, "client_secret", {"AZURE_CLIENT_SECRET": Secret("x")})
    assert not supplied(Config, "max_retries", {"CLOUD_CLIENT_SECRET": Secret("x")})
