"""Api-versions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cloudid_core.errors import ProviderProblem
from cloudid_core.provider.api_versions import DEFAULT, KNOWN, MAX_AGE, api_version
from cloudid_core.values.resource_id import ResourceId, parse

from .cloud import CLOUD, Setting, error, reply

SUBSCRIPTION = "aaaaaaaa-0000-0000-0000-000000000001"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers"
WEB = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Web"
SITE = parse(f"{GROUP}/Microsoft.Web/sites/shop")


def setting_with(versions: list[str], name: str = "sites") -> Setting:
    setting = Setting()
    types = [{"resourceType": "other", "apiVersions": ["2099-01-01"]}, {"resourceType": name, "apiVersions": versions}]
    setting.cloud.script(f"GET {WEB}", reply(200, {"namespace": "Microsoft.Web", "resourceTypes": types}))
    return setting


def ask(setting: Setting, resource_id: ResourceId = SITE) -> str:
    return setting.world.perform(api_version(setting.client, resource_id))


@pytest.mark.parametrize(
    "versions, chosen",
    [
        (["2023-01-01", "2022-03-01"], "2023-01-01"),
        (["2022-03-01", "2023-01-01"], "2023-01-01"),
        (["2024-01-01-preview", "2023-01-01", "2022-09-01-privatepreview"], "2023-01-01"),
        (["2023-01-01-preview", "2024-01-01-preview"], "2024-01-01-preview"),
        ([], DEFAULT),
        (["2024-01-01&evil=1", "nonsense", "2024-01-01\n", "2024-01-01-preview&evil=1"], DEFAULT),
    ],
)
def test_the_newest_that_is_no_preview_is_chosen(versions: list[str], chosen: str) -> None:
    assert ask(setting_with(versions)) == chosen


def test_case_does_not_matter() -> None:
    assert ask(setting_with(["2023-01-01"], "SITES")) == "2023-01-01"


def test_a_type_that_is_not_listed_has_the_default() -> None:
    assert ask(setting_with(["2023-01-01"], "certificates")) == DEFAULT


def test_a_child_type_is_looked_up_by_its_whole_name() -> None:
    setting = setting_with(["2023-05-05"], "sites/slots")
    assert ask(setting, parse(f"{GROUP}/Microsoft.Web/sites/shop/slots/blue")) == "2023-05-05"


@pytest.mark.parametrize("kind", KNOWN)
def test_the_types_that_we_know_are_not_looked_up(kind: str) -> None:
    setting = Setting()
    space, *types = kind.split("/")
    path = "/".join(f"{each}/name" for each in types)
    assert ask(setting, parse(f"{GROUP}/{space}/{path}")) == KNOWN[kind]
    assert setting.cloud.requests == []


def test_a_version_is_remembered_for_hours_for_all_askers() -> None:
    setting = setting_with(["2023-01-01"])
    assert ask(setting) == ask(setting, parse(f"{GROUP}/microsoft.web/SITES/other".replace("rg", "RG2")))
    setting.client = replace(setting.client, owner="other:1")
    setting.later(MAX_AGE - 1)
    _ = ask(setting)
    assert len(setting.cloud.asked(WEB)) == 1
    setting.later(1)
    _ = ask(setting)
    assert len(setting.cloud.asked(WEB)) == 2


def test_another_cloud_is_asked_again() -> None:
    setting = setting_with(["2023-01-01"])
    _ = ask(setting)
    setting.client = replace(setting.client, cloud=replace(CLOUD, directory="https://other.test"))
    _ = ask(setting)
    assert len(setting.cloud.asked(WEB)) == 2


@pytest.mark.parametrize("listed", [{}, {"apiVersions": None}, {"apiVersions": []}])
def test_a_type_that_lists_no_versions_is_skipped(listed: dict[str, Any]) -> None:
    """Source: "Providers - Get" of the resource manager: all members of a resource type are optional."""
    setting = Setting()
    types = [{"resourceType": "operations", "locations": [], **listed}, {"resourceType": "sites", **listed}]
    types.append({"resourceType": "sites", "apiVersions": ["2023-01-01"]})
    setting.cloud.script(f"GET {WEB}", reply(200, {"resourceTypes": types}))
    assert ask(setting) == "2023-01-01"


@pytest.mark.parametrize("answer", [{}, {"resourceTypes": {}}, {"resourceTypes": [{"apiVersions": "2023-01-01"}]}])
def test_a_list_of_another_shape_is_nonsense(answer: Any) -> None:
    setting = Setting()
    setting.cloud.script(f"GET {WEB}", reply(200, answer))
    with pytest.raises(ProviderProblem):
        ask(setting)


def test_a_failure_is_not_remembered() -> None:
    setting = setting_with(["2023-01-01"])
    setting.cloud.script(f"GET {WEB}", error(403), reply(200, {"resourceTypes": []}))
    with pytest.raises(ProviderProblem):
        ask(setting)
    assert ask(setting) == DEFAULT
