"""Discovery documents and published keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ..cloud import BASE, Cloud, read


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


def test_an_unknown_tenant_has_an_error_of_its_own(cloud: Cloud) -> None:
    answer = read(cloud.ask("GET", "/login/nobody.example/v2.0/.well-known/openid-configuration"), 400)
    assert answer["error"] == "invalid_tenant"
    assert answer["error_codes"] == [90002]


def published(cloud: Cloud) -> list[Any]:
    tenant = cloud.world["tenant"]
    return list(cloud.json("GET", f"/login/{tenant}/discovery/v2.0/keys")["keys"])


def test_keys_say_for_what_and_for_whose_tokens_they_are(cloud: Cloud) -> None:
    [key] = published(cloud)
    assert (key["use"], key["alg"], key["key_ops"]) == ("sig", "RS256", ["verify"])
    issuer = cloud.json("GET", f"/login/{cloud.world['tenant']}/v2.0/.well-known/openid-configuration")["issuer"]
    assert key["issuer"].replace("{tenantid}", cloud.world["tenant"]) == issuer != key["issuer"]


def test_members_of_a_published_key_can_be_changed_until_a_reset(cloud: Cloud) -> None:
    [before] = published(cloud)
    path = f"/simulator/keys/{before['kid']}"
    changed = cloud.json("POST", path, {"use": "enc", "alg": None})
    assert published(cloud) == [changed]
    assert changed == {name: value for name, value in before.items() if name != "alg"} | {"use": "enc"}
    assert cloud.json("POST", path, {"issuer": "https://other.example/"})["use"] == "enc"
    assert read(cloud.ask("POST", "/simulator/keys/unknown", {"use": "enc"}), 404)
    assert read(cloud.ask("POST", path, ["use"]), 400)
    cloud.ask("POST", "/simulator/reset")
    assert published(cloud) == [before]


DOCUMENTS = (
    "/.well-known/openid-configuration",
    "/v2.0/.well-known/openid-configuration",
    "/discovery/keys",
    "/discovery/v2.0/keys",
)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_documents_speak_in_the_form_of_the_address_they_were_asked_at(cloud: Cloud, path: str) -> None:
    """The tenant may be the first segment of the path; what a document names then begins with it too."""
    tenant = cloud.world["tenant"]
    short, long = (cloud.json("GET", f"{prefix}/{tenant}{path}") for prefix in ("", "/login"))
    assert "/login" not in json.dumps(short)
    assert json.loads(json.dumps(long).replace("/login", "")) == short != long
    for document in (short, long):
        if "keys" not in document:
            assert cloud.json("GET", document["jwks_uri"].removeprefix(BASE))["keys"]
            asked = cloud.ask("POST", document["token_endpoint"].removeprefix(BASE))
            assert read(asked, 400)["error_codes"] == [900144]


@pytest.mark.parametrize("prefix", ["", "/login"])
def test_instance_discovery_leads_to_the_tenant(cloud: Cloud, prefix: str) -> None:
    answer = cloud.json("GET", f"{prefix}/common/discovery/instance", query={"api-version": "1.1"})
    document = answer["tenant_discovery_endpoint"].removeprefix(BASE)
    assert document.startswith(f"{prefix}/{cloud.world['tenant']}/")
    assert cloud.json("GET", document)["issuer"].endswith("/v2.0")
    assert answer["metadata"][0]["aliases"] == ["cloud.test"]


@pytest.mark.parametrize("path", ["/T/T/oauth2/v2.0/token", "/login/T/T/oauth2/token", "/a/b/oauth2/elsewhere"])
def test_errors_below_a_token_path_have_the_form_of_the_token_endpoint(cloud: Cloud, path: str) -> None:
    """Also where there is none: the vendor's libraries show `error` and `error_description` to people."""
    answer = read(cloud.ask("POST", path), 404)
    assert (answer["error"], answer["error_codes"]) == ("invalid_request", [])
    assert answer["error_description"] == "NotFound: There is nothing at this path."
