"""Client assertions, and access tokens that they are exchanged for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cloudid_core.errors import Code, ProviderProblem, Refused
from cloudid_core.provider.assertions import FederatedTokenFile, Source, federated_token_file
from cloudid_core.provider.client import Credentials
from cloudid_core.provider.oauth import JWT_BEARER, access_token
from cloudid_core.provider.troubles import Family, trouble_of
from cloudid_core.values.secret import Secret

from .cloud import SCOPE, TOKEN_PATH, Setting, error, form_of, reply, token

FILE = FederatedTokenFile("AZURE_FEDERATED_TOKEN_FILE", "/token")
MISMATCH = reply(401, {"error": "invalid_client", "error_codes": [700213], "error_description": "AADSTS700213: no"})


def setting(**credentials: Any) -> Setting:
    made = Setting()
    made.cloud.script(f"POST {TOKEN_PATH}", token("a"), token("b"))
    made.world.files["/token"] = "header.claims.signature"
    made.client = replace(
        made.client, credentials=Credentials(**{"client_id": "app", "assertions": FILE, **credentials})
    )
    return made


def get(made: Setting) -> str:
    return made.world.perform(access_token(made.client, SCOPE)).reveal()


def test_an_assertion_goes_to_the_token_endpoint() -> None:
    made = setting()
    assert get(made) == "a"
    (request,) = made.cloud.requests
    assert form_of(request) == {
        "grant_type": "client_credentials",
        "client_id": "app",
        "client_assertion_type": JWT_BEARER,
        "client_assertion": "header.claims.signature",
        "scope": SCOPE,
    }


def test_the_file_is_read_anew_for_each_access_token() -> None:
    made = setting()
    get(made)
    made.world.files["/token"] = "renewed"
    made.later(3600)
    get(made)
    assert form_of(made.cloud.requests[-1])["client_assertion"] == "renewed"


def test_an_assertion_goes_before_a_client_secret() -> None:
    made = setting(client_secret=Secret("s"))
    get(made)
    assert "client_secret" not in form_of(made.cloud.requests[0])


def test_a_file_that_cannot_be_read_is_named_and_nothing_else_is_tried() -> None:
    made = setting()
    del made.world.files["/token"]
    with pytest.raises(Refused) as refused:
        get(made)
    assert refused.value.code is Code.CREDENTIAL_UNUSABLE
    assert "AZURE_FEDERATED_TOKEN_FILE" in str(refused.value)
    assert made.cloud.requests == []


def test_an_assertion_needs_a_client_id() -> None:
    with pytest.raises(Refused, match="client_id") as refused:
        get(setting(client_id=""))
    assert refused.value.code is Code.CREDENTIAL_UNUSABLE


def test_the_last_failure_is_remembered_until_a_token_is_given() -> None:
    made = setting()
    made.cloud.script(f"POST {TOKEN_PATH}", MISMATCH, error(400), token("a"))
    with pytest.raises(ProviderProblem):
        get(made)
    trouble = trouble_of(made.client.caches, made.client.owner, Family.LOGIN)
    assert trouble is not None
    assert "AADSTS700213" in trouble.reason
    with pytest.raises(ProviderProblem):
        get(made)
    get(made)
    assert trouble_of(made.client.caches, made.client.owner, Family.LOGIN) is None


def test_access_tokens_are_kept_apart_by_file() -> None:
    made = setting()
    made.world.files["/other"] = "x"
    first = get(made)
    other = FederatedTokenFile("AZURE_FEDERATED_TOKEN_FILE", "/other")
    made.client = replace(made.client, credentials=Credentials(client_id="app", assertions=other))
    assert get(made) != first


@pytest.mark.parametrize(
    "environment, found",
    [
        ({}, None),
        ({"AZURE_FEDERATED_TOKEN_FILE": ""}, None),
        ({"AZURE_FEDERATED_TOKEN_FILE": "/token"}, FILE),
        (
            {"AZURE_FEDERATED_TOKEN_FILE": "/token", "CLOUD_FEDERATED_TOKEN_FILE": "/mine"},
            FederatedTokenFile("CLOUD_FEDERATED_TOKEN_FILE", "/mine"),
        ),
    ],
)
def test_the_environment_names_the_file(environment: dict[str, str], found: FederatedTokenFile | None) -> None:
    assert federated_token_file({name: Secret(value) for name, value in environment.items()}) == found


@pytest.mark.parametrize(
    "credentials, source",
    [
        (Credentials(assertions=FILE), Source.FEDERATED_TOKEN_FILE),
        (Credentials(client_secret=Secret("s")), Source.CLIENT_SECRET),
        (Credentials(), Source.MANAGED_IDENTITY),
    ],
)
def test_credentials_say_where_they_come_from(credentials: Credentials, source: Source) -> None:
    assert credentials.source is source
