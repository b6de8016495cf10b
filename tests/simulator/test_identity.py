"""The identity provider: documents, keys, and tokens for client secrets."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from .cloud import BASE, Cloud, claims_of, read


@pytest.mark.parametrize("by", ["tenant", "tenant_domain"])
def test_discovery_names_both_issuers_and_follows_to_the_keys(cloud: Cloud, by: str) -> None:
    tenant, asked = cloud.world["tenant"], cloud.world[by]
    v1 = cloud.json("GET", f"/login/{asked}/.well-known/openid-configuration")
    v2 = cloud.json("GET", f"/login/{asked}/v2.0/.well-known/openid-configuration")
    assert v1["issuer"] == f"https://sts.windows.net/{tenant}/"
    assert v2["issuer"] == f"{BASE}/login/{tenant}/v2.0"
    keys = [cloud.json("GET", document["jwks_uri"].removeprefix(BASE)) for document in (v1, v2)]
    assert keys[0] == keys[1]
    assert [key["kty"] for key in keys[0]["keys"]] == ["RSA"]


def test_an_unknown_tenant_is_an_error_of_its_kind(cloud: Cloud) -> None:
    answer = read(cloud.ask("GET", "/login/nobody.example/v2.0/.well-known/openid-configuration"), 400)
    assert answer["error"] == "invalid_tenant"
    assert answer["error_codes"] == [90002]


def test_instance_discovery_leads_to_the_tenant(cloud: Cloud) -> None:
    answer = cloud.json("GET", "/login/common/discovery/instance", query={"api-version": "1.1"})
    assert cloud.json("GET", answer["tenant_discovery_endpoint"].removeprefix(BASE))["issuer"].endswith("/v2.0")
    assert answer["metadata"][0]["aliases"] == ["cloud.test"]


def test_a_secret_buys_a_token_for_the_audience_of_the_scope(cloud: Cloud) -> None:
    answer = read(cloud.sign_in(), 200)
    claims = claims_of(answer["access_token"])
    assert answer["expires_in"] == claims["exp"] - claims["iat"] == 3599
    assert claims["aud"] == "https://management.core.windows.net/"
    assert claims["appid"] == cloud.world["applications"][0]["client_id"]
    assert claims["tid"] == cloud.world["tenant"]


def test_the_older_endpoint_answers_numbers_as_strings(cloud: Cloud) -> None:
    service = cloud.world["applications"][0]
    form = {
        "grant_type": "client_credentials",
        "client_id": service["client_id"],
        "client_secret": service["client_secret"],
        "resource": "https://graph.microsoft.com",
    }
    path = f"/login/{cloud.world['tenant_domain']}/oauth2/token"
    answer = read(cloud.answer("POST", path, urlencode(form).encode()).response, 200)
    assert answer["expires_in"] == "3599"
    assert claims_of(answer["access_token"])["aud"] == "https://graph.microsoft.com"


@pytest.mark.parametrize(
    "form, status, error, number",
    [
        ({"client_secret": "wrong"}, 401, "invalid_client", 7000215),
        ({"client_secret": ""}, 401, "invalid_client", 7000218),
        ({"client_assertion": "a.b.c"}, 401, "invalid_client", 700213),
        ({"client_id": "00000000-0000-4000-8000-000000000000"}, 400, "unauthorized_client", 700016),
        ({"client_id": ""}, 400, "invalid_request", 900144),
        ({"grant_type": "password"}, 400, "unsupported_grant_type", 70003),
        ({"scope": "https://management.azure.com/"}, 400, "invalid_scope", 1002012),
        ({"scope": "https://unknown.example/.default"}, 400, "invalid_resource", 500011),
    ],
)
def test_refusals_carry_their_number(cloud: Cloud, form: dict[str, str], status: int, error: str, number: int) -> None:
    answer = read(cloud.sign_in(**form), status)
    assert (answer["error"], answer["error_codes"]) == (error, [number])
    assert answer["error_description"].startswith(f"AADSTS{number}: ")


def test_an_expired_secret_is_not_a_wrong_one(cloud: Cloud) -> None:
    cloud.json("POST", "/simulator/clock", {"advance": 181 * 86400})
    assert read(cloud.sign_in(), 401)["error_codes"] == [7000222]
    assert read(cloud.sign_in(client_secret="wrong"), 401)["error_codes"] == [7000215]
