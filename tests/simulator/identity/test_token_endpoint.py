"""The token endpoint: tokens for client secrets."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from ..cloud import Cloud, claims_of, read


def test_a_client_secret_gets_a_token_for_the_audience_of_the_scope(cloud: Cloud) -> None:
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


def test_scopes_of_openid_are_ignored_beside_the_one_of_the_audience(cloud: Cloud) -> None:
    claims = claims_of(cloud.access_token(scope="openid https://management.azure.com/.default offline_access profile"))
    assert claims["aud"] == "https://management.azure.com"


@pytest.mark.parametrize(
    "form, status, error, number",
    [
        ({"client_secret": "wrong"}, 401, "invalid_client", 7000215),
        ({"client_secret": ""}, 401, "invalid_client", 7000218),
        ({"client_secret": "", "client_assertion": "a.b.c"}, 401, "invalid_client", 7000218),
        ({"client_id": "00000000-0000-4000-8000-000000000000"}, 400, "unauthorized_client", 700016),
        ({"client_id": ""}, 400, "invalid_request", 900144),
        ({"grant_type": "password"}, 400, "unsupported_grant_type", 70003),
        ({"scope": "https://management.azure.com/"}, 400, "invalid_scope", 1002012),
        ({"scope": "openid profile"}, 400, "invalid_scope", 1002012),
        ({"scope": "https://a.example/.default https://b.example/.default"}, 400, "invalid_scope", 1002012),
        ({"scope": "https://unknown.example/.default"}, 400, "invalid_resource", 500011),
    ],
)
def test_errors_have_their_numbers(cloud: Cloud, form: dict[str, str], status: int, error: str, number: int) -> None:
    answer = read(cloud.sign_in(**form), status)
    assert (answer["error"], answer["error_codes"]) == (error, [number])
    assert answer["error_description"].startswith(f"AADSTS{number}: ")


def test_an_expired_secret_and_a_wrong_one_have_different_errors(cloud: Cloud) -> None:
    cloud.json("POST", "/simulator/clock", {"advance": 181 * 86400})
    assert read(cloud.sign_in(), 401)["error_codes"] == [7000222]
    assert read(cloud.sign_in(client_secret="wrong"), 401)["error_codes"] == [7000215]
