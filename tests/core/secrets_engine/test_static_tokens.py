"""Access tokens of static roles: one of the listed scopes, without a lease, decided anew for each request."""

from __future__ import annotations

from typing import Final

import pytest

from tests.engines import NO_ID, SecretsEngine, configured_engine

from .test_access_tokens import claims

GRAPH: Final = "https://graph.microsoft.com/.default"
ROLE: Final = "cloud/static-roles/app"
TOKEN: Final = "cloud/static-creds/app/token"


@pytest.fixture
def engine() -> SecretsEngine:
    engine = configured_engine()
    application = engine.other_application["object_id"]
    engine.must("POST", ROLE, {"application_object_id": application, "token_scopes": GRAPH, "ttl": "30d"})
    return engine


def test_a_token_is_that_of_the_roles_application(engine: SecretsEngine) -> None:
    answer = engine.must("POST", TOKEN)
    assert claims(answer.data["access_token"])["appid"] == engine.other_application["client_id"]
    assert (answer.data["scope"], answer.body["lease_id"]) == (GRAPH, "")


def test_all_who_ask_have_one_token_until_the_secret_is_another(engine: SecretsEngine) -> None:
    first = engine.must("POST", TOKEN).data["access_token"]
    assert engine.must("POST", TOKEN, {"scope": GRAPH}).data["access_token"] == first
    engine.must("POST", "cloud/rotate-role/app", {"force": True})
    engine.advance(1)
    assert engine.must("POST", TOKEN).data["access_token"] != first


def test_no_token_is_given_that_the_role_or_the_ceiling_does_not_allow(engine: SecretsEngine) -> None:
    assert engine.refused("POST", TOKEN, {"scope": "api://x/.default"}) == (400, "token_scope_not_allowed")
    engine.must("POST", TOKEN)
    engine.must("POST", "cloud/config", {"allowed_application_ids": [NO_ID]})
    assert engine.refused("POST", TOKEN) == (403, "ceiling_exceeded")
    engine.must("POST", "cloud/config", {"allowed_application_ids": None})
    engine.must("POST", ROLE, {"token_scopes": ""})
    assert engine.refused("POST", TOKEN) == (400, "role_without_tokens")
    engine.must("DELETE", ROLE)
    assert engine.refused("POST", TOKEN) == (400, "role_not_found")


def test_a_role_that_changes_while_a_token_is_asked_for_decides(engine: SecretsEngine) -> None:
    engine.fail("login", delay=3)
    asking = engine.spawn(engine.asking("POST", TOKEN))
    engine.advance(1)
    engine.must("POST", "cloud/config", {"allowed_application_ids": [NO_ID]})
    engine.settle()
    assert asking.result().codes == ["ceiling_exceeded"]


def test_a_role_without_a_secret_gives_no_token() -> None:
    engine = configured_engine()
    engine.fail(path="/graph/v1.0/applications/.*/addPassword", status=403)
    application = engine.other_application["object_id"]
    engine.must("POST", ROLE, {"application_object_id": application, "token_scopes": GRAPH})
    assert engine.refused("POST", TOKEN) == (503, "role_without_secret")
