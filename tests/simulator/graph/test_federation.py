"""Federated identity credentials by the directory's API."""

from __future__ import annotations

import pytest

from ..cloud import Cloud, code_of, read

WANTED = {"name": "one", "issuer": "https://i", "subject": "s", "audiences": ["a"]}
INVALID = "InvalidFederatedIdentityCredentialValue"


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({}, 409, "Request_MultipleObjectsWithSameKeyValue"),
        ({"name": "two"}, 400, INVALID),
        ({"name": "two", "subject": "t", "audiences": []}, 400, INVALID),
        ({"name": "two", "subject": "t", "audiences": ["a", "b"]}, 400, INVALID),
        ({"name": "two", "subject": ""}, 400, "Request_BadRequest"),
    ],
    ids=["same name", "same subject", "no audience", "two audiences", "no subject"],
)
def test_names_and_subjects_are_unique_and_there_is_one_audience(
    cloud: Cloud, changes: dict[str, object], status: int, code: str
) -> None:
    path = f"/applications/{cloud.application('app')['id']}/federatedIdentityCredentials"
    read(cloud.graph("POST", path, WANTED), 201)
    refused = cloud.graph("POST", path, {**WANTED, **changes})
    assert code_of(refused, status) == code
    assert read(cloud.graph("POST", path, {**WANTED, "name": "two", "subject": "S"}), 201)["subject"] == "S"


def test_they_are_listed_and_removed_and_limited() -> None:
    cloud = Cloud()
    path = f"/applications/{cloud.application('app')['id']}/federatedIdentityCredentials"
    made = [read(cloud.graph("POST", path, {**WANTED, "name": f"n{n}", "subject": f"s{n}"}), 201) for n in range(20)]
    assert read(cloud.graph("GET", path), 200)["value"] == made
    assert cloud.graph("POST", path, WANTED).status == 403
    assert cloud.graph("DELETE", f"{path}/{made[0]['id']}").status == 204
    assert cloud.graph("DELETE", f"{path}/{made[0]['id']}").status == 404
    assert cloud.graph("POST", path, WANTED).status == 201
