"""The longest life of a secret: what is sent to Azure, what leases get, and which stored roles ask for more."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.system.stored_rules import LOOK_PAUSE
from tests.engines import CONFIG, CREDS, ROLE, SecretsEngine, configured_engine

DAY = 86_400
LIMIT = 30 * DAY
STATIC = "cloud/static-roles/app"


@pytest.fixture
def engine() -> SecretsEngine:
    """In a tenant that limits the life of secrets to 30 days."""
    engine = configured_engine()
    engine.behave(max_secret_lifetime=LIMIT)
    return engine


def lives(engine: SecretsEngine) -> list[float]:
    """The times from start to end of all secrets and certificates that the service has made."""
    directory = engine.simulator.world.directory
    made = {each.id for kind in ("password", "certificate") for each in engine.made(kind)}
    holders: Any = directory.applications.all()
    keys = [key for one in holders for key in (*one.passwords, *one.certificates)]
    return [key.ends_at - key.starts_at for key in keys if key.key_id in made]


def problems(engine: SecretsEngine) -> list[dict[str, str]]:
    engine.advance(LOOK_PAUSE)
    engine.perform(engine.service.upkeep())
    details: list[dict[str, str]] = engine.must("GET", "sys/health").body["problem_details"]
    return details


def test_the_policy_of_a_tenant_has_a_code_of_its_own(engine: SecretsEngine) -> None:
    engine.role()
    assert engine.refused("GET", CREDS) == (502, "provider_policy_refused")
    engine.converge()
    assert engine.is_clean()


def test_an_explicit_maximum_is_what_the_secret_lives(engine: SecretsEngine) -> None:
    """The start is the time of the request: nothing is added for clocks that are behind."""
    engine.role(explicit_max_ttl="30d")
    engine.must("GET", CREDS)
    assert lives(engine) == [LIMIT]


@pytest.mark.parametrize("fields", [{}, {"persist_app": True}, {"max_ttl": "31d"}, {"explicit_max_ttl": "60d"}])
def test_secrets_and_leases_end_with_the_configured_maximum(engine: SecretsEngine, fields: dict[str, Any]) -> None:
    engine.must("POST", CONFIG, {"max_secret_ttl": "30d"})
    assert engine.must("GET", CONFIG).data["max_secret_ttl"] == LIMIT
    engine.role(ttl="1h", **fields)
    issued = engine.must("GET", CREDS)
    assert lives(engine) == [LIMIT]
    renewed = engine.must("POST", "sys/leases/renew", {"lease_id": issued.body["lease_id"], "increment": "60d"})
    assert LIMIT - 60 < renewed.body["lease_duration"] <= LIMIT


def test_secrets_for_access_tokens_and_of_static_roles_end_with_it_too(engine: SecretsEngine) -> None:
    engine.behave(max_secret_lifetime=10 * DAY)
    engine.must("POST", CONFIG, {"max_secret_ttl": "10d"})
    scope = "https://management.core.windows.net//.default"
    engine.role(persist_app=True, token_scopes=[scope])
    engine.must("POST", "cloud/token/web")
    for proof in ("secret", "certificate"):
        fields = {"application_object_id": engine.other_application["object_id"], "rotation_period": "4d"}
        engine.must("POST", f"cloud/static-roles/{proof}", {**fields, "proof": proof, "token_scopes": [scope]})
    assert lives(engine) == [10 * DAY] * 3


def test_the_root_secret_ends_with_it_too(engine: SecretsEngine) -> None:
    """The default of 182 days is more than the 180 of a common baseline."""
    engine.behave(max_secret_lifetime=180 * DAY)
    assert engine.refused("POST", "cloud/rotate-root") == (502, "provider_policy_refused")
    engine.must("POST", CONFIG, {"max_secret_ttl": "180d"})
    assert engine.ask("POST", "cloud/rotate-root", {"force": True}).status in (202, 204)
    assert 180 * DAY in lives(engine)


def test_rotations_must_fit_into_it(engine: SecretsEngine) -> None:
    reply = engine.ask("POST", CONFIG, {"max_secret_ttl": "30d", "rotation_period": "30d"})
    assert (reply.status, reply.codes) == (400, ["field_invalid"])
    assert '"max_secret_ttl"' in reply.body["errors"][0]
    assert engine.refused("POST", CONFIG, {"max_secret_ttl": 60}) == (400, "field_invalid")


def test_health_names_stored_roles_that_are_clamped_and_the_write_that_ends_it(engine: SecretsEngine) -> None:
    engine.role(max_ttl="31d", explicit_max_ttl="60d")
    application = {"application_object_id": engine.other_application["object_id"]}
    engine.behave(max_secret_lifetime=None)
    engine.must("POST", STATIC, {**application, "rotation_period": "20d"})
    assert problems(engine) == []
    engine.must("POST", CONFIG, {"max_secret_ttl": "30d"})
    found = problems(engine)
    assert {each["code"] for each in found} == {"secret_ttl_clamped"}
    remedies = [each["remedy"] for each in found]
    assert remedies == [
        f"cloudid write {ROLE} max_ttl={LIMIT}",
        f"cloudid write {ROLE} explicit_max_ttl={LIMIT}",
        f"cloudid write {STATIC} rotation_period={15 * DAY}",
    ]
    engine.must("POST", ROLE, {"max_ttl": LIMIT, "explicit_max_ttl": LIMIT})
    engine.must("POST", STATIC, {"rotation_period": 15 * DAY})
    assert problems(engine) == []


def test_a_write_of_a_role_that_is_clamped_warns(engine: SecretsEngine) -> None:
    engine.must("POST", CONFIG, {"max_secret_ttl": "30d"})
    (warning,) = engine.write_role(azure_roles=engine.grants(), max_ttl="31d").body["warnings"]
    assert warning.startswith('"max_ttl" is longer than "max_secret_ttl"')
