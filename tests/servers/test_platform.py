"""Platform tokens: the request on either platform, and answers good and bad."""

from __future__ import annotations

import pytest

from cloudid_core.effects import HttpResponse
from cloudid_core.errors import PlatformTokenUnavailable
from cloudid_core.values.secret import Secret
from cloudid_servers.machine.platform_identity import Platform, read


def test_a_machine_asks_its_metadata_service() -> None:
    request = Platform.of("http://169.254.169.254", {}).ask("https://vault.test", "")
    assert (request.method, dict(request.headers)) == ("GET", {"metadata": "true"})
    query = "api-version=2018-02-01&resource=https%3A%2F%2Fvault.test"
    assert request.url == f"http://169.254.169.254/metadata/identity/oauth2/token?{query}"


def test_an_application_service_asks_where_its_environment_says() -> None:
    environment = {"IDENTITY_ENDPOINT": "http://127.0.0.1:41741/msi/token/", "IDENTITY_HEADER": "hunter2"}
    platform = Platform.of("http://169.254.169.254", environment)
    request = platform.ask("https://vault.test", "id")
    assert dict(request.headers) == {"x-identity-header": "hunter2"}
    query = "api-version=2019-08-01&resource=https%3A%2F%2Fvault.test&client_id=id"
    assert request.url == f"http://127.0.0.1:41741/msi/token/?{query}"
    assert "hunter2" not in repr((platform, request))


@pytest.mark.parametrize("expires_on", [b"1700000000", b'"1700000000"'])
def test_the_expiry_may_be_a_number_or_a_text(expires_on: bytes) -> None:
    token = read(HttpResponse(200, {}, b'{"access_token": "t", "expires_on": ' + expires_on + b"}"))
    assert (token.token, token.expires_at) == (Secret("t"), 1_700_000_000.0)


@pytest.mark.parametrize(
    "response",
    [
        HttpResponse(404, {}, b'{"access_token": "t", "expires_on": 1}'),
        HttpResponse(200, {}, b"no json"),
        HttpResponse(200, {}, b"[]"),
        HttpResponse(200, {}, b"\xff"),
        HttpResponse(200, {}, b'{"access_token": "t"}'),
        HttpResponse(200, {}, b'{"access_token": "t", "expires_on": "soon"}'),
        HttpResponse(200, {}, b'{"access_token": "t", "expires_on": null}'),
        HttpResponse(200, {}, b'{"access_token": "t", "expires_on": 1' + b"0" * 400 + b"}"),
        HttpResponse(200, {}, b"[" * 100_000),
    ],
)
def test_anything_else_is_no_token(response: HttpResponse) -> None:
    with pytest.raises(PlatformTokenUnavailable):
        read(response)


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500])
def test_a_refusal_tells_its_status(status: int) -> None:
    """The core decides by it whether to ask again."""
    with pytest.raises(PlatformTokenUnavailable) as unavailable:
        read(HttpResponse(status, {}, b"{}"))
    assert unavailable.value.status == status
