"""The directory as a whole: look-ups, memberships, pages and rights."""

from __future__ import annotations

from ..cloud import BASE, Cloud, read


def test_an_application_is_found_by_its_client_id_and_read(cloud: Cloud) -> None:
    service = cloud.world["applications"][0]
    [found] = read(cloud.graph("GET", "/applications", query={"$filter": f"appId eq '{service['client_id']}'"}), 200)[
        "value"
    ]
    assert found["id"] == service["object_id"]
    assert found == read(cloud.graph("GET", f"/applications/{service['object_id']}"), 200)
    [password] = found["passwordCredentials"]
    assert service["client_secret"].startswith(password["hint"])
    assert password["secretText"] is None


def test_a_group_is_found_by_its_name_and_read(cloud: Cloud) -> None:
    group = cloud.world["groups"][0]
    [found] = read(cloud.graph("GET", "/groups", query={"$filter": f"displayName eq '{group['display_name']}'"}), 200)[
        "value"
    ]
    assert found["id"] == group["id"]
    assert read(cloud.graph("GET", f"/groups/{group['id']}"), 200) == found


def test_a_quote_in_a_filter_is_doubled(cloud: Cloud) -> None:
    cloud.create("m", groups=["it's"])
    found = read(cloud.graph("GET", "/groups", query={"$filter": "displayName eq 'it''s'"}), 200)["value"]
    assert [group["displayName"] for group in found] == ["it's"]
    assert cloud.graph("GET", "/groups", query={"$filter": "displayName eq 'it's'"}).status == 400
    assert cloud.graph("GET", "/groups", query={"$filter": "startswith(mailNickname,'a')"}).status == 400


def test_conditions_with_and_between_have_to_hold_all(cloud: Cloud) -> None:
    named = {"displayName": "a and b", "mailNickname": "it's", "mailEnabled": False, "securityEnabled": True}
    made = read(cloud.graph("POST", "/groups", named), 201)
    assert cloud.listed("/groups", "displayName eq 'a and b' and mailNickname eq 'it''s'") == [made]
    assert cloud.listed("/groups", "displayName eq 'a and b' and mailNickname eq 'its'") == []
    assert cloud.graph("DELETE", f"/groups/{made['id']}").status == 204
    assert cloud.graph("GET", f"/groups/{made['id']}").status == 404


def test_missing_objects(cloud: Cloud) -> None:
    for family in ("applications", "groups", "servicePrincipals"):
        answer = read(cloud.graph("GET", f"/{family}/{cloud.world['tenant']}"), 404)
        assert answer["error"]["code"] == "Request_ResourceNotFound"


def test_memberships_count_through_groups(cloud: Cloud) -> None:
    ids = {group["display_name"]: group["id"] for group in cloud.world["groups"]}
    [principal] = cloud.machine("web")["principals"]
    path = f"/servicePrincipals/{principal}"
    found = read(cloud.graph("POST", f"{path}/getMemberGroups", {"securityEnabledOnly": False}), 200)
    assert set(found["value"]) == {ids["web-machines"], ids["all-machines"]}
    listed = read(cloud.graph("GET", f"{path}/transitiveMemberOf"), 200)["value"]
    assert {group["id"] for group in listed} == set(found["value"])
    assert cloud.graph("POST", f"{path}/getMemberGroups", {}).status == 400


def test_long_lists_come_in_pages(cloud: Cloud) -> None:
    machine = cloud.create("joiner", groups=[f"group-{number}" for number in range(120)])
    path = f"/servicePrincipals/{machine['principals'][0]}/transitiveMemberOf"
    first = read(cloud.graph("GET", path), 200)
    assert len(first["value"]) == 100
    path, _, query = first["@odata.nextLink"].removeprefix(f"{BASE}/graph/v1.0").partition("?")
    second = read(cloud.graph("GET", path, query={"$skiptoken": query.rpartition("=")[2]}), 200)
    assert len(second["value"]) == 20
    assert "@odata.nextLink" not in second


def test_tokens_and_rights_are_checked(cloud: Cloud) -> None:
    answer = read(cloud.ask("GET", "/graph/v1.0/groups"), 401)
    assert answer["error"]["code"] == "InvalidAuthenticationToken"
    headers = {"Authorization": f"Bearer {cloud.access_token()}"}
    assert cloud.answer("GET", "/graph/v1.0/groups", headers=headers).response.status == 401
    other = cloud.world["applications"][1]
    token = cloud.access_token(
        client_id=other["client_id"], client_secret=other["client_secret"], scope=f"{BASE}/graph/.default"
    )
    denied = cloud.answer("GET", "/graph/v1.0/groups", headers={"Authorization": f"Bearer {token}"}).response
    assert read(denied, 403)["error"]["code"] == "Authorization_RequestDenied"
