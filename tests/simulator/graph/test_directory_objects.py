"""Directory objects of any type, and memberships."""

from __future__ import annotations

from typing import Any

import pytest

from ..cloud import Cloud, code_of, read


@pytest.fixture
def groups(cloud: Cloud) -> dict[str, str]:
    return {group["display_name"]: group["id"] for group in cloud.world["groups"]}


def listed(cloud: Cloud, path: str) -> list[Any]:
    return list(read(cloud.graph("GET", path), 200)["value"])


def test_an_object_of_any_type_is_read_with_its_type(cloud: Cloud, groups: dict[str, str]) -> None:
    application = cloud.application()
    found = {
        "application": application["id"],
        "servicePrincipal": cloud.principal(application)["id"],
        "group": groups["cloud-admins"],
    }
    for name, object_id in found.items():
        shown = read(cloud.graph("GET", f"/directoryObjects/{object_id}"), 200)
        assert (shown["@odata.type"], shown["id"]) == (f"#microsoft.graph.{name}", object_id)
    ids = [*found.values(), cloud.world["tenant"]]
    by_ids = read(cloud.graph("POST", "/directoryObjects/getByIds", {"ids": ids}), 200)["value"]
    assert [each["id"] for each in by_ids] == ids[:3]
    only = read(cloud.graph("POST", "/directoryObjects/getByIds", {"ids": ids, "types": ["group"]}), 200)["value"]
    assert [each["id"] for each in only] == [found["group"]]
    missing = cloud.graph("GET", f"/directoryObjects/{cloud.world['tenant']}")
    assert code_of(missing, 404) == "Request_ResourceNotFound"


def test_members_are_principals_and_groups_and_can_be_listed_by_type(cloud: Cloud, groups: dict[str, str]) -> None:
    [web] = cloud.machine("web")["principals"]
    members = f"/groups/{groups['all-machines']}/members"
    assert {each["id"] for each in listed(cloud, members)} == {groups["web-machines"], groups["batch-machines"]}
    assert {each["@odata.type"] for each in listed(cloud, members)} == {"#microsoft.graph.group"}
    assert listed(cloud, f"{members}/microsoft.graph.servicePrincipal") == []
    everybody = f"/groups/{groups['all-machines']}/transitiveMembers"
    assert web in [each["id"] for each in listed(cloud, f"{everybody}/graph.servicePrincipal")]
    assert len(listed(cloud, everybody)) == 2 + len(listed(cloud, f"{everybody}/graph.servicePrincipal"))
    assert cloud.graph("GET", f"{members}/microsoft.graph.device").status == 400


def test_one_member_of_a_group_is_read_by_its_id(cloud: Cloud, groups: dict[str, str]) -> None:
    members = f"/groups/{groups['all-machines']}/members"
    link = read(cloud.graph("GET", f"{members}/{groups['web-machines'].upper()}/$ref"), 200)
    assert link["@odata.id"].endswith(f"/v1.0/directoryObjects/{groups['web-machines']}")
    indirect = cloud.graph("GET", f"{members}/{cloud.machine('web')['principals'][0]}/$ref")
    assert code_of(indirect, 404) == "Request_ResourceNotFound"


def test_an_object_is_in_groups_directly_and_through_others(cloud: Cloud, groups: dict[str, str]) -> None:
    path = f"/servicePrincipals/{cloud.machine('web')['principals'][0]}"
    direct, all_of_them = groups["web-machines"], {groups["web-machines"], groups["all-machines"]}
    assert [each["id"] for each in listed(cloud, f"{path}/memberOf")] == [direct]
    assert {each["id"] for each in listed(cloud, f"{path}/transitiveMemberOf/microsoft.graph.group")} == all_of_them
    nested = listed(cloud, f"/groups/{direct}/memberOf")
    assert [each["id"] for each in nested] == [groups["all-machines"]]


@pytest.mark.parametrize("collection", ["directoryObjects", "servicePrincipals"])
@pytest.mark.parametrize("action", ["getMemberGroups", "getMemberObjects"])
def test_member_objects_are_asked_of_every_collection(
    cloud: Cloud, groups: dict[str, str], collection: str, action: str
) -> None:
    path = f"/{collection}/{cloud.machine('web')['principals'][0]}"
    found = read(cloud.graph("POST", f"{path}/{action}", {"securityEnabledOnly": True}), 200)["value"]
    assert set(found) == {groups["web-machines"], groups["all-machines"]}
    asked = {"groupIds": [groups["all-machines"], groups["cloud-admins"]]}
    checked = read(cloud.graph("POST", f"{path}/checkMemberGroups", asked), 200)["value"]
    assert checked == [groups["all-machines"]]


def test_an_object_of_another_type_is_missing_from_a_collection(cloud: Cloud, groups: dict[str, str]) -> None:
    path = f"/servicePrincipals/{groups['web-machines']}/getMemberGroups"
    assert code_of(cloud.graph("POST", path, {"securityEnabledOnly": False}), 404) == "Request_ResourceNotFound"
