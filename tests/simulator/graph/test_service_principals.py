"""Service principals, memberships, and deleted items."""

from __future__ import annotations

from typing import Any

import pytest

from ..cloud import BASE, Cloud, code_of, read

UPSERT = {"Prefer": "create-if-missing"}
DAY = 86_400.0


def reference(principal: Any, root: str = f"{BASE}/graph") -> dict[str, str]:
    return {"@odata.id": f"{root}/v1.0/directoryObjects/{principal['id']}"}


def test_a_new_principal_is_found_in_every_way(cloud: Cloud) -> None:
    application = cloud.application("robot", tags=["ours"])
    made = cloud.principal(application)
    assert (made["appId"], made["displayName"]) == (application["appId"], "robot")
    assert made["servicePrincipalType"] == "Application"
    for path in (f"/{made['id']}", f"(appId='{application['appId']}')"):
        assert read(cloud.graph("GET", f"/servicePrincipals{path}"), 200) == made
    for condition in (f"appId eq '{application['appId']}'", "tags/any(x:x eq 'ours')", "startswith(displayName,'rob')"):
        assert cloud.listed("/servicePrincipals", condition) == [made]


def test_an_application_has_one_principal(cloud: Cloud) -> None:
    application = cloud.application()
    path = f"/servicePrincipals(appId='{application['appId']}')"
    body = {"appId": application["appId"]}
    assert code_of(cloud.graph("PATCH", path, body), 404) == "Request_ResourceNotFound"
    made = read(cloud.graph("PATCH", path, body, headers=UPSERT), 201)
    assert cloud.graph("PATCH", path, body, headers=UPSERT).status == 204
    assert read(cloud.graph("GET", path), 200) == made
    answer = cloud.graph("POST", "/servicePrincipals", body)
    assert code_of(answer, 409) == "Request_MultipleObjectsWithSameKeyValue"


def test_a_principal_needs_an_application(cloud: Cloud) -> None:
    answer = cloud.graph("POST", "/servicePrincipals", {"appId": cloud.world["tenant"]})
    assert code_of(answer, 400) == "Request_BadRequest"


def test_a_principals_password_signs_its_application_in(cloud: Cloud) -> None:
    application = cloud.application()
    principal = cloud.principal(application)
    path = f"/servicePrincipals/{principal['id']}"
    password = cloud.password(path, displayName="p")
    assert cloud.sign_in(client_id=application["appId"], client_secret=password["secretText"]).status == 200
    assert cloud.graph("POST", f"{path}/removePassword", {"keyId": password["keyId"]}).status == 204
    assert cloud.sign_in(client_id=application["appId"], client_secret=password["secretText"]).status == 401


def test_a_principal_joins_and_leaves_a_group(cloud: Cloud) -> None:
    principal = cloud.principal(cloud.application())
    members = f"/groups/{cloud.world['groups'][3]['id']}/members"
    assert cloud.graph("POST", f"{members}/$ref", reference(principal)).status == 204
    assert [m["id"] for m in read(cloud.graph("GET", members), 200)["value"]] == [principal["id"]]
    assert code_of(cloud.graph("POST", f"{members}/$ref", reference(principal)), 400) == "Request_BadRequest"
    assert cloud.graph("DELETE", f"{members}/{principal['id']}/$ref").status == 204
    assert code_of(cloud.graph("DELETE", f"{members}/{principal['id']}/$ref"), 404) == "Request_ResourceNotFound"
    assert read(cloud.graph("GET", members), 200)["value"] == []


def test_memberships_of_missing_objects_are_refused(cloud: Cloud) -> None:
    principal = cloud.principal(cloud.application())
    group = cloud.world["groups"][0]["id"]
    path = f"/groups/{group}/members/$ref"
    assert cloud.graph("POST", path, reference({"id": group})).status == 404
    assert cloud.graph("POST", f"/groups/{principal['id']}/members/$ref", reference(principal)).status == 404
    assert code_of(cloud.graph("POST", path, reference(principal, "https://other.test")), 400) == "Request_BadRequest"


def test_a_deleted_principal_leaves_its_groups_and_its_application_stays(cloud: Cloud) -> None:
    application = cloud.application()
    principal = cloud.principal(application)
    members = f"/groups/{cloud.world['groups'][3]['id']}/members"
    cloud.graph("POST", f"{members}/$ref", reference(principal))
    assert cloud.graph("DELETE", f"/servicePrincipals/{principal['id']}").status == 204
    assert read(cloud.graph("GET", members), 200)["value"] == []
    assert cloud.graph("GET", f"/applications/{application['id']}").status == 200
    assert cloud.principal(application)["id"] != principal["id"]


def test_a_machines_principal_cannot_be_deleted(cloud: Cloud) -> None:
    answer = cloud.graph("DELETE", f"/servicePrincipals/{cloud.machine('web')['principals'][0]}")
    assert code_of(answer, 403) == "Authorization_RequestDenied"


@pytest.mark.parametrize("which", ["application", "principal"])
def test_a_deleted_item_can_be_read_until_it_is_purged(cloud: Cloud, which: str) -> None:
    application = cloud.application()
    principal = cloud.principal(application)
    path = f"/directory/deletedItems/{(application if which == 'application' else principal)['id']}"
    assert code_of(cloud.graph("GET", path), 404) == "Request_ResourceNotFound"
    assert cloud.graph("DELETE", f"/applications/{application['id']}").status == 204
    assert read(cloud.graph("GET", path), 200)["appId"] == application["appId"]
    assert cloud.graph("DELETE", path).status == 204
    assert code_of(cloud.graph("DELETE", path), 404) == "Request_ResourceNotFound"


def test_deleted_items_are_purged_after_a_month(cloud: Cloud) -> None:
    application = cloud.application()
    cloud.graph("DELETE", f"/applications/{application['id']}")
    cloud.wait(29 * DAY)
    assert cloud.graph("GET", f"/directory/deletedItems/{application['id']}").status == 200
    cloud.wait(DAY)
    assert cloud.graph("GET", f"/directory/deletedItems/{application['id']}").status == 404


def test_deleted_items_are_listed_and_read_by_type(cloud: Cloud) -> None:
    application = cloud.application("robot")
    principal = cloud.principal(application)
    cloud.application("kept")
    cloud.graph("DELETE", f"/applications/{application['id']}")
    items = "/directory/deletedItems"

    def ids(path: str, **query: str) -> list[str]:
        return [each["id"] for each in read(cloud.graph("GET", f"{items}/{path}", query=query), 200)["value"]]

    for prefix in ("microsoft.graph", "graph"):
        assert ids(f"{prefix}.application") == [application["id"]]
        assert ids(f"{prefix}.servicePrincipal") == [principal["id"]]
        assert ids(f"{prefix}.group") == []
        assert read(cloud.graph("GET", f"{items}/{application['id']}/{prefix}.application"), 200)["deletedDateTime"]
        assert cloud.graph("GET", f"{items}/{application['id']}/{prefix}.servicePrincipal").status == 404
    condition = f"appId eq '{application['appId']}'"
    assert ids("microsoft.graph.application", **{"$filter": condition}) == [application["id"]]
    assert cloud.graph("GET", f"{items}/microsoft.graph.thing").status == 400
