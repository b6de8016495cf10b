"""The documents of both issuers."""

from __future__ import annotations

import pytest

from tests.installation import Installation

ISSUERS = ("identity/oidc/plugins", "identity/oidc")
EACH = pytest.mark.parametrize("path", ISSUERS)
BOTH = pytest.mark.parametrize(
    "path", [f"{issuer}/.well-known/{name}" for issuer in ISSUERS for name in ("openid-configuration", "keys")]
)


@EACH
def test_the_configuration_names_the_issuer_and_its_keys(path: str) -> None:
    world = Installation(issuer="https://id.test:8200/base")
    issuer = f"https://id.test:8200/base/v1/{path}"
    assert world.must("GET", f"{path}/.well-known/openid-configuration", token="").body == {
        "issuer": issuer,
        "jwks_uri": f"{issuer}/.well-known/keys",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


@BOTH
def test_documents_may_be_kept_for_half_a_period(path: str) -> None:
    world = Installation(issuer="https://id.test", signing_key_period=100)
    headers = world.must("GET", path, token="").response.headers
    assert headers["cache-control"] == "public, max-age=50"
    assert headers["content-type"] == "application/json"


@EACH
def test_without_a_public_address_there_is_no_configuration(path: str) -> None:
    reply = Installation(issuer="").ask("GET", f"{path}/.well-known/openid-configuration", token="")
    assert reply.status == 404
    assert "issuer" in reply.body["errors"][0]


@BOTH
def test_documents_are_only_read(path: str) -> None:
    assert Installation().ask("POST", path, {}).status == 405


def test_issuers_have_no_key_in_common() -> None:
    world = Installation()
    kids = [{key["kid"] for key in world.must("GET", f"{path}/.well-known/keys").body["keys"]} for path in ISSUERS]
    assert all(kids)
    assert not set.intersection(*kids)
