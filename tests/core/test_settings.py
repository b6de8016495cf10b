"""Settings: the table of what a host tells the core at start."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve as evolve_settings
from msgspec.structs import replace

from cloudid_core.clouds import CLOUDS
from cloudid_core.errors import Refused
from cloudid_core.forms.fields import Field, fields_of, parse
from cloudid_core.settings import Settings
from cloudid_core.values.secret import Secret


@pytest.mark.parametrize("field", fields_of(Settings), ids=lambda field: field.name)
def test_a_setting_is_documented_and_its_default_keeps_its_own_rule(field: Field) -> None:
    assert field.doc.endswith(".")
    assert field.kind.parse(field.kind.show(field.default)) == field.default


@pytest.mark.parametrize(
    "wrong, rule",
    [
        ({"machine_check": "no"}, '"machine_check" must be one of always, needed'),
        ({"request_deadline": 0.0}, '"request_deadline" must be'),
        ({"jwt_limit": "long"}, '"jwt_limit" must be'),
        ({"trusted_proxies": ("everybody",)}, '"trusted_proxies" must'),
        ({"trusted_proxies": 7}, '"trusted_proxies" '),
    ],
)
def test_a_host_of_ones_own_is_held_to_the_rules_of_a_settings_file(wrong: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        Settings(master_key=Secret("00" * 32), **wrong)


def test_settings_are_kept_as_a_settings_file_would_be_read() -> None:
    settings = Settings(master_key=Secret("00" * 32), issuer="https://id.example/", trusted_proxies=("10.1.2.3",))
    assert (settings.issuer, settings.trusted_proxies) == ("https://id.example", ("10.1.2.3/32",))
    assert Settings(master_key=Secret("00" * 32), machine_check="").machine_check == "always"


def test_settings_print_no_secret() -> None:
    settings = Settings(master_key=Secret("0" * 64), environment={"CLOUD_CLIENT_SECRET": Secret("c4n4ry")})
    assert "0" * 64 not in repr(settings)
    assert "CLOUD_CLIENT_SECRET" not in repr(settings)


def test_leases_do_not_outlive_their_maximum_by_default() -> None:
    settings = Settings(master_key=Secret("00" * 32))
    assert settings.default_lease_ttl <= settings.max_lease_ttl


def test_one_provider_call_fits_into_a_request() -> None:
    settings = Settings(master_key=Secret("00" * 32))
    assert settings.provider_timeout < settings.request_deadline


@pytest.mark.parametrize("version", ["2.2.0", "1.15.6+ent", "2.2.0-rc1", "2.2.0+ent.cloudid.0.1.0"])
def test_the_api_version_is_a_version(version: str) -> None:
    assert parse(Settings, {"api_version": version})["api_version"] == version


@pytest.mark.parametrize("version", ["", "2.2", "v2.2.0", "2.2.0 ent", "2.2.0+", "2.2.0\n", "2.2.0+" + "e" * 64])
def test_an_api_version_that_clients_could_not_read_is_refused(version: str) -> None:
    with pytest.raises(Refused):
        parse(Settings, {"api_version": version})


def test_environments_of_a_host_may_have_any_spelling_and_keep_the_usual_endpoints_of_others() -> None:
    german = replace(CLOUDS["CloudGermanCloud"], login="http://127.0.0.1:8400/login")
    settings = Settings(master_key=Secret("00" * 32), clouds={"azuregermancloud": german})
    assert settings.clouds == {**CLOUDS, "CloudGermanCloud": german}
    assert evolve_settings(settings).clouds == settings.clouds
    assert Settings(master_key=Secret("00" * 32), clouds={}).clouds == CLOUDS


def test_an_unknown_environment_of_a_host_is_refused() -> None:
    """Otherwise each write of a configuration would fail inside the service."""
    with pytest.raises(ValueError, match='"clouds" must be one of CloudPublicCloud, '):
        Settings(master_key=Secret("00" * 32), clouds={"AzureMoonCloud": CLOUDS["CloudPublicCloud"]})
