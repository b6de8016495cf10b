"""Client certificates of applications: how they are registered, and what is checked of assertions for them."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import jwt
import pytest

from cloudid_core.credentials.application_keys import self_signed, thumbprint
from cloudid_core.effects import HttpResponse
from cloudid_core.testing.rsa_keys import private_key_pem
from cloudid_core.values import Secret
from cloudid_servers.provider_simulator.identity.assertions import JWT_BEARER

from ..cloud import BASE, NOON, Cloud, read

KEY = private_key_pem("key 0 of a world")
OTHER_KEY = private_key_pem("key 1 of a world")
DER = self_signed(Secret(KEY), 1, NOON - 60, NOON + 600)
KEY_ID = "11111111-1111-4111-8111-111111111111"
ENTRY = {
    "keyId": KEY_ID,
    "displayName": "ours",
    "type": "AsymmetricX509Cert",
    "usage": "Verify",
    "key": base64.b64encode(DER).decode(),
}


def certify(cloud: Cloud, *entries: dict[str, Any]) -> HttpResponse:
    """Let the first application have these certificates."""
    object_id = cloud.world["applications"][0]["object_id"]
    return cloud.graph("PATCH", f"/applications/{object_id}", {"keyCredentials": list(entries)})


def shown(cloud: Cloud) -> list[dict[str, Any]]:
    """The certificates of the first application."""
    path = f"/applications/{cloud.world['applications'][0]['object_id']}"
    return list(read(cloud.graph("GET", path), 200)["keyCredentials"])


def present(cloud: Cloud, key: str = KEY, algorithm: str = "PS256", header: Any = None, **changes: Any) -> HttpResponse:
    client_id = cloud.world["applications"][0]["client_id"]
    claims = {
        "aud": f"{BASE}/login/{cloud.world['tenant']}/oauth2/v2.0/token",
        "iss": client_id,
        "sub": client_id,
        "exp": NOON + 60,
        **changes,
    }
    text = jwt.encode(claims, key, algorithm, {"x5t#S256": thumbprint(DER)} if header is None else header)
    return cloud.sign_in(client_secret="", client_assertion_type=JWT_BEARER, client_assertion=text)


def sha1(der: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha1(der, usedforsecurity=False).digest()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("algorithm", "header"), [("PS256", None), ("RS256", None), ("RS256", {"x5t": sha1(DER)})], ids=str
)
def test_an_assertion_for_a_certificate_gets_a_token(cloud: Cloud, algorithm: str, header: Any) -> None:
    assert certify(cloud, ENTRY).status == 204
    assert read(present(cloud, algorithm=algorithm, header=header), 200)["token_type"] == "Bearer"
    (seen,) = cloud.json("GET", "/simulator/world")["assertions"]
    assert (seen["kid"], seen["subject"]) == (KEY_ID, cloud.world["applications"][0]["client_id"])


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        (700027, {"key": OTHER_KEY}),
        (700027, {"header": {"x5t#S256": thumbprint(DER + b"x")}}),
        (700027, {"header": {"x5t#S256": thumbprint(DER), "x5t": "other"}}),
        (700027, {"header": {}}),
        (700023, {"aud": "https://other.test/"}),
        (700023, {"aud": None}),
        (700021, {"iss": "other"}),
        (700021, {"sub": "other"}),
        (700024, {"exp": NOON}),
        (700024, {"nbf": NOON + 301}),
        (50027, {"algorithm": "RS384"}),
    ],
    ids=str,
)
def test_each_mismatch_has_its_own_error(cloud: Cloud, number: int, changes: dict[str, Any]) -> None:
    certify(cloud, ENTRY)
    assert read(present(cloud, **changes), 401)["error_codes"] == [number]


def test_a_certificate_that_is_over_or_removed_is_not_found(cloud: Cloud) -> None:
    certify(cloud, ENTRY)
    cloud.wait(600)
    late = cloud.simulator.world.now() + 60
    assert read(present(cloud, exp=late), 401)["error_codes"] == [700027]
    assert certify(cloud).status == 204
    assert read(present(cloud), 401)["error_codes"] == [700027]


@pytest.mark.parametrize(
    "changes",
    [
        {"key": None},
        {"keyId": KEY_ID},
        {"type": "Symmetric"},
        {"usage": "Sign"},
        {"key": "AAAA"},
        {"key": "é"},
        {"endDateTime": "2100-01-01T00:00:00Z"},
        {"startDateTime": "soon"},
        {"more": 1},
    ],
    ids=str,
)
def test_what_cannot_be_registered_is_refused(cloud: Cloud, changes: dict[str, Any]) -> None:
    certify(cloud, ENTRY)
    [kept] = shown(cloud)
    another = {**ENTRY, "keyId": "22222222-2222-4222-8222-222222222222"}
    assert certify(cloud, kept, {**another, **changes}).status == 400
    assert certify(cloud, kept, another).status == 204


@pytest.mark.parametrize("changes", [{"customKeyIdentifier": None}, {"endDateTime": "2099-01-01T00:00:00Z"}], ids=str)
def test_a_certificate_is_sent_back_as_it_is_shown(cloud: Cloud, changes: dict[str, Any]) -> None:
    certify(cloud, ENTRY)
    [kept] = shown(cloud)
    assert certify(cloud, {**kept, **changes}).status == 400
    assert certify(cloud, kept).status == 204
    assert shown(cloud) == [kept]


def test_a_certificate_without_a_name_has_that_of_its_subject(cloud: Cloud) -> None:
    assert certify(cloud, {**ENTRY, "displayName": None}).status == 204
    assert [one["displayName"][:3] for one in shown(cloud)] == ["CN="]


def test_the_list_never_shows_a_key(cloud: Cloud) -> None:
    certify(cloud, ENTRY)
    [one] = shown(cloud)
    assert (one["keyId"], one["key"], one["customKeyIdentifier"]) == (
        KEY_ID,
        None,
        hashlib.sha1(DER).hexdigest().upper(),
    )
    (made,) = [made for made in cloud.simulator.ledger.alive() if made.kind == "certificate"]
    assert made.id == KEY_ID
    made = read(cloud.graph("POST", "/applications", {"displayName": "new", "keyCredentials": [ENTRY]}), 201)
    assert [one["displayName"] for one in made["keyCredentials"]] == ["ours"]
