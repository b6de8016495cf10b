"""Settings: the table of what a host tells the core at start."""

from __future__ import annotations

import pytest

from cloudid_core.errors import Refused
from cloudid_core.forms.fields import Field, fields_of, parse
from cloudid_core.settings import Settings
from cloudid_core.values.secret import Secret


@pytest.mark.parametrize("field", fields_of(Settings), ids=lambda field: field.name)
def test_a_setting_is_documented_and_its_default_keeps_its_own_rule(field: Field) -> None:
    assert field.doc.endswith(".")
    assert field.kind.parse(field.kind.show(field.default)) == field.default


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
