"""The documents of the issuer."""

from __future__ import annotations

import pytest

from tests.installation import Installation

PATH = "identity/oidc/plugins/.well-known"
BOTH = pytest.mark.parametrize("name", ["openid-configuration", "keys"])


def test_the_configuration_names_the_issuer_and_its_keys() -> None:
    world = Installation(issuer="https://id.test:8200/base")
    issuer = "https://id.test:8200/base/v1/identity/oidc/plugins"
    assert world.must("GET", f"{PATH}/openid-configuration", token="").body == {
        "issuer": issuer,
        "jwks_uri": f"{issuer}/.well-known/keys",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


@BOTH
def test_documents_may_be_kept_for_half_a_period(name: str) -> None:
    world = Installation(issuer="https://id.test", signing_key_period=100)
    headers = world.must("GET", f"{PATH}/{name}", token="").response.headers
    assert headers["cache-control"] == "public, max-age=50"
    assert headers["content-type"] == "application/json"


def test_without_a_public_address_there_is_no_configuration() -> None:
    reply = Installation(issuer="").ask("GET", f"{PATH}/openid-configuration", token="")
    assert reply.status == 404
    assert "issuer" in reply.body["errors"][0]


@BOTH
def test_documents_are_only_read(name: str) -> None:
    assert Installation().ask("POST", f"{PATH}/{name}", {}).status == 405
