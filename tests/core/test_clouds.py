"""Clouds: the table of the four environments and the spellings of their names."""

from __future__ import annotations

import pytest

from cloudid_core.clouds import CLOUDS, DEFAULT_ENVIRONMENT, Cloud, environment_name


def test_there_are_four_environments_and_one_is_the_default() -> None:
    assert len(CLOUDS) == 4
    assert DEFAULT_ENVIRONMENT in CLOUDS


@pytest.mark.parametrize("name", CLOUDS)
def test_an_environment_is_found_by_any_spelling(name: str) -> None:
    other = name.replace("Cloud", "Azure", 1)
    for spelling in (name, name.lower(), name.upper(), other, other.lower(), other.upper()):
        assert environment_name(spelling) == name


@pytest.mark.parametrize("text", ["", "cloud", "azure", "PublicCloud", "CloudPublicCloud ", "AzureAzurePublicCloud"])
def test_an_unknown_environment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be one of CloudPublicCloud, "):
        environment_name(text)


@pytest.mark.parametrize("cloud", CLOUDS.values(), ids=list(CLOUDS))
def test_endpoints_are_https_addresses_without_a_slash_at_the_end(cloud: Cloud) -> None:
    for endpoint in (cloud.login, cloud.resource_manager, cloud.directory):
        assert endpoint.startswith("https://")
        assert not endpoint.endswith("/")


def test_no_endpoint_serves_two_environments() -> None:
    endpoints = [value for cloud in CLOUDS.values() for value in (cloud.login, cloud.resource_manager, cloud.directory)]
    assert len(set(endpoints)) == len(endpoints)


def test_scopes_are_audience_and_default() -> None:
    public = CLOUDS["CloudPublicCloud"]
    assert public.resource_scope == "https://management.core.windows.net//.default"
    assert public.directory_scope == "https://graph.microsoft.com/.default"
    assert CLOUDS["CloudChinaCloud"].resource_scope == "https://management.core.chinacloudapi.cn/.default"


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        CLOUDS["CloudPublicCloud"] = CLOUDS["CloudChinaCloud"]  # type: ignore[index]
