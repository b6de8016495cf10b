"""Discovery documents and published keys."""

from __future__ import annotations

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


def test_instance_discovery_leads_to_the_tenant(cloud: Cloud) -> None:
    answer = cloud.json("GET", "/login/common/discovery/instance", query={"api-version": "1.1"})
    assert cloud.json("GET", answer["tenant_discovery_endpoint"].removeprefix(BASE))["issuer"].endswith("/v2.0")
    assert answer["metadata"][0]["aliases"] == ["cloud.test"]
