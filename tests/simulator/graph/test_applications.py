"""Applications: created, upserted, found, changed and deleted, and their passwords."""

from __future__ import annotations

from typing import Any

import pytest

from ..cloud import BASE, GRAPH, NOON, Cloud, code_of, read

UPSERT = {"Prefer": "create-if-missing"}
NAMED = "/applications(uniqueName='our-key')"
AT_NOON = "2027-01-15T08:00:00Z"


def test_a_new_application_is_found_in_every_way(cloud: Cloud) -> None:
    made = cloud.application("robot-1", tags=["a", "b"], signInAudience="AzureADMultipleOrgs", uniqueName="it's")
    assert (made["tags"], made["signInAudience"], made["passwordCredentials"]) == (
        ["a", "b"],
        "AzureADMultipleOrgs",
        [],
    )
    assert made["createdDateTime"] == AT_NOON
    for path in (f"/{made['id']}", "(uniqueName='it''s')", f"(appId='{made['appId']}')"):
        assert read(cloud.graph("GET", f"/applications{path}"), 200) == made
    for condition in (
        f"appId eq '{made['appId']}'",
        "displayName eq 'ROBOT-1'",
        "startswith(displayName,'robot-')",
        "tags/any(t:t eq 'b')",
        "uniqueName eq 'it''s'",
    ):
        assert cloud.listed("/applications", condition) == [made]
    assert cloud.listed("/applications", "startswith(displayName,'obot')") == []


def test_applications_may_share_a_display_name_but_no_unique_name(cloud: Cloud) -> None:
    cloud.application("twin", uniqueName="one")
    cloud.application("twin")
    assert len(cloud.listed("/applications", "displayName eq 'twin'")) == 2
    body = {"displayName": "twin", "uniqueName": "one"}
    assert code_of(cloud.graph("POST", "/applications", body), 409) == "Request_MultipleObjectsWithSameKeyValue"


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"displayName": ""},
        {"displayName": "a" * 257},
        {"displayName": "a", "tags": "a"},
        {"displayName": "a", "tags": ["a" * 257]},
        {"displayName": "a", "signInAudience": "Everybody"},
        {"displayName": "a", "passwordCredentials": [{"displayName": "b"}]},
    ],
)
def test_invalid_applications_are_refused(cloud: Cloud, body: Any) -> None:
    assert code_of(cloud.graph("POST", "/applications", body), 400) == "Request_BadRequest"


def test_type_annotations_in_bodies_are_ignored(cloud: Cloud) -> None:
    made = cloud.application("typed", **{"@odata.type": "#microsoft.graph.application"})
    path = f"/applications/{made['id']}"
    cloud.password(path, **{"@odata.type": "#microsoft.graph.passwordCredential"}, displayName="one")
    assert cloud.graph("PATCH", path, {"@odata.type": "#microsoft.graph.application", "tags": ["x"]}).status == 204
    assert "@odata.type" not in read(cloud.graph("GET", path), 200)
    body = {"@odata.type": "#microsoft.graph.servicePrincipal", "appId": made["appId"]}
    assert cloud.graph("POST", "/servicePrincipals", body).status == 201


def test_an_upsert_creates_once_and_then_changes(cloud: Cloud) -> None:
    assert code_of(cloud.graph("PATCH", NAMED, {"displayName": "one"}), 404) == "Request_ResourceNotFound"
    made = read(cloud.graph("PATCH", NAMED, {"displayName": "one"}, headers=UPSERT), 201)
    assert made["uniqueName"] == "our-key"
    assert cloud.graph("PATCH", NAMED, {"displayName": "two"}, headers=UPSERT).status == 204
    assert cloud.graph("PATCH", NAMED, {"tags": ["x"]}).status == 204
    assert read(cloud.graph("GET", NAMED), 200) == {**made, "displayName": "two", "tags": ["x"]}
    assert code_of(cloud.graph("PATCH", NAMED, {"uniqueName": "other"}), 400) == "Request_BadRequest"


def test_an_application_is_changed_by_its_id(cloud: Cloud) -> None:
    path = f"/applications/{cloud.application()['id']}"
    assert cloud.graph("PATCH", path, {"tags": ["x"]}).status == 204
    assert read(cloud.graph("GET", path), 200)["tags"] == ["x"]


def test_a_password_is_shown_once_and_signs_in(cloud: Cloud) -> None:
    made = cloud.application()
    cloud.principal(made)
    path = f"/applications/{made['id']}"
    password = cloud.password(path, displayName="first", endDateTime="2027-01-15T09:00:00.5+00:00")
    secret = password.pop("secretText")
    assert len(secret) == 40
    assert (password["hint"], password["displayName"]) == (secret[:3], "first")
    assert (password["startDateTime"], password["endDateTime"]) == (AT_NOON, "2027-01-15T09:00:00Z")
    assert read(cloud.graph("GET", path), 200)["passwordCredentials"] == [{**password, "secretText": None}]
    assert cloud.sign_in(client_id=made["appId"], client_secret=secret).status == 200
    cloud.wait(3601)
    assert read(cloud.sign_in(client_id=made["appId"], client_secret=secret), 401)["error_codes"] == [7000222]


def test_an_application_without_a_principal_cannot_sign_in(cloud: Cloud) -> None:
    made = cloud.application()
    secret = cloud.password(f"/applications/{made['id']}")["secretText"]
    answer = read(cloud.sign_in(client_id=made["appId"], client_secret=secret), 401)
    assert (answer["error"], answer["error_codes"]) == ("invalid_client", [7000229])


def test_a_removed_password_is_gone_and_the_others_stay(cloud: Cloud) -> None:
    made = cloud.application()
    cloud.principal(made)
    path = f"/applications/{made['id']}"
    old, new = cloud.password(path), cloud.password(path)
    assert cloud.graph("POST", f"{path}/removePassword", {"keyId": old["keyId"].upper()}).status == 204
    assert [p["keyId"] for p in read(cloud.graph("GET", path), 200)["passwordCredentials"]] == [new["keyId"]]
    again = read(cloud.graph("POST", f"{path}/removePassword", {"keyId": old["keyId"]}), 400)["error"]
    assert "No password credential found with keyId" in again["message"]
    assert cloud.sign_in(client_id=made["appId"], client_secret=old["secretText"]).status == 401
    assert cloud.sign_in(client_id=made["appId"], client_secret=new["secretText"]).status == 200


@pytest.mark.parametrize(
    "credential",
    [
        {"endDateTime": "tomorrow"},
        {"endDateTime": AT_NOON},
        {"startDateTime": "2030-01-01T00:00:00Z", "endDateTime": "2029-01-01T00:00:00Z"},
        {"displayName": 1},
        {"secretText": "mine"},
    ],
)
def test_invalid_passwords_are_refused(cloud: Cloud, credential: Any) -> None:
    path = f"/applications/{cloud.application()['id']}"
    answer = cloud.graph("POST", f"{path}/addPassword", {"passwordCredential": credential})
    assert code_of(answer, 400) == "Request_BadRequest"
    assert read(cloud.graph("GET", path), 200)["passwordCredentials"] == []


def test_a_deleted_application_cannot_be_found_or_sign_in_nor_can_its_principal(cloud: Cloud) -> None:
    made = cloud.application(uniqueName="our-key")
    principal = cloud.principal(made)
    path = f"/applications/{made['id']}"
    secret = cloud.password(path)["secretText"]
    assert cloud.graph("DELETE", path).status == 204
    for method, gone in (
        ("GET", path),
        ("DELETE", path),
        ("GET", NAMED),
        ("GET", f"/servicePrincipals/{principal['id']}"),
    ):
        assert code_of(cloud.graph(method, gone), 404) == "Request_ResourceNotFound"
    assert code_of(cloud.graph("POST", f"{path}/addPassword", {}), 404) == "Request_ResourceNotFound"
    assert cloud.listed("/applications", f"appId eq '{made['appId']}'") == []
    answer = read(cloud.sign_in(client_id=made["appId"], client_secret=secret), 400)
    assert answer["error_codes"] == [700016]


def test_lists_come_in_pages(cloud: Cloud) -> None:
    names = [cloud.application(f"page-{number}")["displayName"] for number in range(5)]
    query = {"$filter": "startswith(displayName,'page-')", "$top": "2"}
    found = []
    while query:
        answer = read(cloud.graph("GET", "/applications", query=query), 200)
        found.append([item["displayName"] for item in answer["value"]])
        link = answer.get("@odata.nextLink", "")
        query = {**query, "$skiptoken": link.rpartition("=")[2]} if link else {}
        assert not link or link.startswith(f"{BASE}/graph/v1.0/applications?")
    assert found == [names[:2], names[2:4], names[4:]]
    assert cloud.graph("GET", "/applications", query={"$top": "0"}).status == 400


def test_only_writers_change_anything(cloud: Cloud) -> None:
    made = cloud.application()
    cloud.create("reader", reader=True)
    reader = read(cloud.machine_token("reader", GRAPH), 200)["access_token"]
    before = cloud.simulator.ledger.as_json()
    path = f"/applications/{made['id']}"
    for token in (cloud.stranger(f"{GRAPH}/.default"), reader):
        for method, target in (
            ("POST", "/applications"),
            ("PATCH", NAMED),
            ("DELETE", path),
            ("POST", f"{path}/addPassword"),
        ):
            answer = cloud.graph(method, target, {"displayName": "x"}, headers=UPSERT, token=token)
            assert code_of(answer, 403) == "Authorization_RequestDenied"
    assert cloud.simulator.ledger.as_json() == before
    assert cloud.graph("GET", path, token=reader).status == 200
    assert cloud.simulator.world.now() == NOON
