"""Access tokens of a role's application."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from cloudid_core.provider.propagation import GRACE
from cloudid_core.secrets_engine.access_tokens import PATIENCE
from cloudid_core.secrets_engine.token_secret import LIFE
from tests.engines import CONFIG, ROLE, SecretsEngine, configured_engine

TOKEN = "cloud/token/web"
GRAPH = "https://graph.microsoft.com/.default"
VAULT = "https://vault.azure.net/.default"
ADD_PASSWORD = "/graph/v1.0/applications/[^/]+/addPassword"


def lending_engine(*scopes: str, **fields: Any) -> SecretsEngine:
    """An engine whose role gives tokens of an application that was there before."""
    engine = configured_engine()
    fields = fields or {"application_object_id": engine.other_application["object_id"]}
    engine.role(token_scopes=list(scopes or (GRAPH,)), **fields)
    return engine


def claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    shown: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return shown


def asked(engine: SecretsEngine, since: int) -> int:
    """How often the token endpoint was asked since then."""
    return sum("/oauth2/" in each for each in engine.calls(since))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_token_of_the_application_is_answered_without_a_lease(method: str) -> None:
    engine = lending_engine()
    reply = engine.must(method, TOKEN)
    assert set(reply.data) == {"access_token", "token_type", "expires_in", "expires_at", "scope"}
    assert (reply.data["token_type"], reply.data["scope"]) == ("Bearer", GRAPH)
    shown = claims(reply.data["access_token"])
    assert (shown["appid"], shown["aud"]) == (
        engine.other_application["client_id"],
        GRAPH.removesuffix("/.default"),
    )
    assert 0 < reply.data["expires_in"] <= shown["exp"] - engine.clock + 1
    assert (reply.body["lease_id"], reply.body["lease_duration"], reply.body["renewable"]) == ("", 0, False)
    assert reply.body["warnings"] == [
        f"the access token cannot be revoked: it is valid until {reply.data['expires_at']}"
    ]
    assert (engine.leases(), engine.intents()) == ([], [])


def test_a_role_that_keeps_its_application_gives_tokens_of_that() -> None:
    engine = lending_engine(persist_app=True)
    shown = claims(engine.must("GET", TOKEN).data["access_token"])
    role = engine.stored_role()
    assert role.persistent_app is not None
    assert shown["appid"] == role.persistent_app.provisioned.client_id


def test_a_role_that_makes_an_application_for_each_lease_gives_no_tokens() -> None:
    engine = configured_engine()
    reply = engine.write_role(azure_roles=engine.grants(), token_scopes=GRAPH)
    assert (reply.status, reply.codes) == (400, ["field_required"])
    assert '"persist_app"' in reply.body["errors"][0]


@pytest.mark.parametrize("scope", ["user.read", 'a"/.default', "a b/.default", "/.default", "x" * 501 + "/.default"])
def test_a_scope_of_a_role_is_a_resource_and_default(scope: str) -> None:
    engine = configured_engine()
    other = engine.other_application["object_id"]
    reply = engine.write_role(application_object_id=other, token_scopes=[scope])
    assert (reply.status, reply.codes) == (400, ["field_invalid"])


def test_a_role_lists_a_bounded_number_of_scopes() -> None:
    engine = configured_engine()
    scopes = [f"api://{number}/.default" for number in range(33)]
    other = engine.other_application["object_id"]
    assert engine.write_role(application_object_id=other, token_scopes=scopes).status == 400
    assert engine.write_role(application_object_id=other, token_scopes=scopes[:32]).status == 204


def test_the_scope_is_one_of_the_roles() -> None:
    engine = lending_engine(GRAPH, VAULT)
    assert engine.refused("GET", TOKEN) == (400, "field_required")
    assert engine.refused("POST", TOKEN, {"scope": "https://management.azure.com/.default"}) == (
        400,
        "token_scope_not_allowed",
    )
    assert engine.must("GET", f"{TOKEN}?scope={VAULT}").data["scope"] == VAULT
    assert engine.must("POST", TOKEN, {"scope": GRAPH}).data["scope"] == GRAPH


def test_a_role_without_scopes_gives_no_tokens() -> None:
    engine = configured_engine()
    engine.role(application_object_id=engine.other_application["object_id"])
    assert engine.refused("GET", TOKEN) == (400, "role_without_tokens")
    assert engine.refused("GET", "cloud/token/other") == (400, "role_not_found")


def test_a_token_is_given_again_until_half_its_life_is_over() -> None:
    engine = lending_engine(GRAPH, VAULT)
    first = engine.must("GET", f"{TOKEN}?scope={GRAPH}").data
    since = len(engine.trace)
    engine.advance(first["expires_in"] / 2 - 10)
    again = engine.must("GET", f"{TOKEN}?scope={GRAPH}").data
    assert (again["access_token"], again["expires_at"]) == (first["access_token"], first["expires_at"])
    assert again["expires_in"] < first["expires_in"]
    assert asked(engine, since) == 0
    assert engine.must("GET", f"{TOKEN}?scope={VAULT}").data["access_token"] != first["access_token"]
    engine.advance(20)
    assert engine.must("GET", f"{TOKEN}?scope={GRAPH}").data["access_token"] != first["access_token"]


@pytest.mark.parametrize("path, fields", [(ROLE, {"ttl": 60}), (CONFIG, {"root_password_ttl": "60d"})])
def test_a_change_of_role_or_configuration_drops_the_tokens(path: str, fields: dict[str, Any]) -> None:
    engine = lending_engine()
    first = engine.must("GET", TOKEN).data["access_token"]
    engine.advance(1)
    engine.must("POST", path, fields)
    assert engine.must("GET", TOKEN).data["access_token"] != first


def test_a_cached_token_is_no_decision() -> None:
    """Each request is decided by the role, the ceiling and the identities of that moment."""
    engine = lending_engine(GRAPH, VAULT)
    scoped = {"scope": GRAPH}
    engine.must("POST", TOKEN, scoped)
    engine.must("POST", CONFIG, {"allowed_scopes": engine.scope})
    assert engine.refused("POST", TOKEN, scoped) == (403, "ceiling_exceeded")
    engine.must("POST", CONFIG, {"allowed_application_ids": None})
    engine.must("POST", TOKEN, scoped)
    engine.must("POST", ROLE, {"token_scopes": VAULT})
    assert engine.refused("POST", TOKEN, scoped) == (400, "token_scope_not_allowed")
    engine.must("DELETE", ROLE)
    assert engine.refused("POST", TOKEN, scoped) == (400, "role_not_found")


def test_no_token_is_given_of_an_application_that_the_service_is() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    engine.must("POST", "auth/cloud/config", {"tenant_id": engine.scene["tenant"], "resource": "https://r"})
    engine.must("POST", "auth/cloud/config", {"client_id": engine.other_application["client_id"]})
    assert engine.refused("GET", TOKEN) == (403, "self_target")


def test_policies_decide_each_request() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    engine.must("PUT", "sys/policies/acl/some", {"policy": f'path "{TOKEN}" {{ capabilities = ["read"] }}'})
    engine.must("POST", "auth/token/create", {"id": "caller", "policies": ["some"]})
    assert engine.ask("GET", TOKEN, token="caller").status == 200
    assert engine.ask("POST", TOKEN, token="caller").status == 403
    engine.must("PUT", "sys/policies/acl/some", {"policy": ""})
    assert engine.ask("GET", TOKEN, token="caller").status == 403


def test_all_who_wait_share_one_secret_and_one_token() -> None:
    engine = lending_engine()
    since = len(engine.trace)
    tasks = [engine.spawn(engine.asking("GET", TOKEN)) for _ in range(5)]
    engine.settle()
    assert len({task.result().data["access_token"] for task in tasks}) == 1
    assert len(engine.alive("password")) == 1
    assert sum("/addPassword" in each for each in engine.calls(since)) == 1


def test_a_secret_that_the_provider_has_lost_is_replaced() -> None:
    engine = lending_engine(GRAPH, VAULT)
    engine.must("POST", TOKEN, {"scope": GRAPH})
    (lost,) = engine.alive("password")
    engine.advance(3600)
    stored = engine.stored_role().token_secret
    assert stored is not None
    application = engine.simulator.world.directory.applications.get(stored.provisioned.password_on)
    assert application is not None
    engine.simulator.world.directory.remove_password(application, stored.provisioned.password_key_id)
    engine.must("POST", TOKEN, {"scope": VAULT})
    engine.converge()
    (now,) = engine.alive("password")
    assert now.id != lost.id
    assert engine.intents() == []


def test_a_new_secret_that_the_provider_does_not_know_is_not_given_up() -> None:
    """Its servers learn of a secret one after the other."""
    engine = lending_engine(GRAPH, VAULT)
    engine.must("POST", TOKEN, {"scope": GRAPH})
    stored = engine.stored_role().token_secret
    assert stored is not None
    directory = engine.simulator.world.directory
    application = directory.applications.get(stored.provisioned.password_on)
    assert application is not None
    directory.remove_password(application, stored.provisioned.password_key_id)
    since = len(engine.trace)
    reply = engine.ask("POST", TOKEN, {"scope": VAULT}, x_service_deadline="20")
    assert reply.status in (502, 504)
    assert asked(engine, since) > 1
    assert engine.alive("password") == []


def test_a_refusal_of_the_provider_makes_no_second_secret() -> None:
    """It does not know the resource. The secret is not the cause, whether it is new or not."""
    engine = lending_engine("https://nowhere/.default")
    for _ in range(3):
        assert engine.ask("GET", TOKEN).status == 502
        engine.advance(GRACE + 1)
    assert len(engine.alive("password")) == 1


def test_a_living_secret_is_used_while_no_other_can_be_made() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    (first,) = engine.alive("password")
    engine.advance(LIFE / 2 + 1)
    engine.fail(method="POST", path=ADD_PASSWORD, status=403, code="Authorization_RequestDenied")
    since = engine.clock
    engine.must("GET", TOKEN)
    assert engine.clock - since <= PATIENCE + 1
    engine.heal()
    engine.advance(3600)
    engine.must("GET", TOKEN)
    engine.converge()
    (now,) = engine.alive("password")
    assert now.id != first.id


def test_neither_a_token_nor_a_secret_is_printed_or_stored_in_clear() -> None:
    engine = lending_engine()
    token = engine.must("GET", TOKEN).data["access_token"]
    stored = engine.stored_role()
    assert stored.token_secret is not None
    secret = stored.token_secret.secret.reveal()
    cached = [engine.context.caches.lent_tokens.get(key) for key in engine.context.caches.lent_tokens]
    printed = f"{stored!r} {cached!r} {list(engine.context.caches.lent_tokens)!r} {engine.trace!r}"
    kept = b"".join(entry.value for key in engine.keys("") if (entry := engine.store.read(key)))
    for text in (token, secret):
        assert text not in printed
        assert text.encode() not in kept
        assert text not in str(engine.shown_role())
