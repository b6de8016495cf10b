"""Roles whose access tokens are asked for by a federated credential, without any secret."""

from __future__ import annotations

import pytest

from cloudid_core.store import keys
from tests.engines import ROLE, SecretsEngine

from .test_access_tokens import TOKEN, lending_engine

KINDS = ("existing", "kept")


def federated_engine(kind: str = "existing") -> SecretsEngine:
    engine = lending_engine(**({"persist_app": True} if kind == "kept" else {}))
    engine.must("POST", ROLE, {"proof": "federated_credential"})
    return engine


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["no scopes", "deletion", "secret", "mount"])
def test_it_is_made_with_the_first_token_and_goes_with_its_purpose(end: str, kind: str) -> None:
    engine = federated_engine(kind)
    since = len(engine.trace)
    engine.must("GET", TOKEN)
    assert engine.alive("password") == []
    assert len(engine.alive("federation")) == 1
    assert not any("addPassword" in each for each in engine.calls(since))
    accepted = engine.simulator.world.assertions[-1]
    assert accepted["subject"].startswith("plugin-identity:app:")
    assert accepted["lifetime"] <= 600
    if end == "deletion":
        engine.must("DELETE", ROLE)
    elif end == "mount":
        engine.must("DELETE", "sys/mounts/cloud")
    else:
        engine.must("POST", ROLE, {"token_scopes": ""} if end == "no scopes" else {"proof": "secret"})
    engine.converge()
    assert (engine.alive("federation"), engine.intents()) == ([], [])
    if end == "secret":
        engine.must("GET", TOKEN)
        assert len(engine.alive("password")) == 1


def test_it_stays_for_years() -> None:
    engine = federated_engine()
    engine.must("GET", TOKEN)
    (made,) = engine.alive("federation")
    engine.advance(100 * 86_400)
    engine.converge()
    engine.must("GET", TOKEN)
    assert engine.alive("federation") == [made]


@pytest.mark.parametrize(("delay", "status"), [(12, 200), (600, 504)])
def test_it_is_proven_within_the_deadline_or_taken_back(delay: int, status: int) -> None:
    engine = federated_engine()
    engine.behave(delays={"sign_in": delay})
    assert engine.ask("GET", TOKEN).status == status
    engine.converge()
    assert len(engine.alive("federation")) == (status == 200)
    assert engine.intents() == []


def test_one_whose_answer_is_lost_is_found_by_its_name() -> None:
    engine = federated_engine()
    engine.fail(method="POST", path=".*/federatedIdentityCredentials", after_work=True, drop=True, times=1)
    engine.must("GET", TOKEN)
    engine.converge()
    assert len(engine.alive("federation")) == 1


def test_an_application_that_has_twenty_is_told_by_a_code() -> None:
    engine = federated_engine()
    other = engine.other_application
    for number in range(20):
        wanted = {"client_id": other["client_id"], "issuer": "https://i", "subject": f"s{number}", "audience": "a"}
        engine.cloud("POST", "/simulator/federations", wanted)
    reply = engine.ask("GET", TOKEN)
    assert reply.codes == ["provider_quota_exceeded"]
    engine.converge()
    assert (engine.alive("federation"), engine.intents()) == ([], [])


def test_it_needs_an_issuer_with_an_https_address() -> None:
    engine = lending_engine()
    engine.restart(issuer="http://127.0.0.1:8200")
    assert engine.refused("POST", ROLE, {"proof": "federated_credential"}) == (400, "issuer_missing")


def test_one_that_somebody_removed_is_made_anew() -> None:
    engine = federated_engine()
    engine.must("GET", TOKEN)
    engine.simulator.world.federations.clear()
    engine.advance(3600)
    assert engine.must("GET", TOKEN).data["access_token"]
    assert len(engine.simulator.world.federations) == 1


def test_the_reconciliation_does_not_miss_it() -> None:
    engine = federated_engine()
    engine.must("GET", TOKEN)
    engine.advance(3600)
    report = engine.must("GET", "cloud/reconcile").data
    assert (report["unaccounted"], report["missing"]) == ([], [])


def opened_entries(engine: SecretsEngine) -> bytes:
    """All that the store holds, as the service reads it; but for the ring, which is sealed under the master key."""
    entries = {key: entry.value for key in engine.keys("") if (entry := engine.store.read(key))}
    unseal = engine.context.records.sealer.open
    return b"".join(unseal(key, value) for key, value in entries.items() if key != keys.RING)


def test_where_passwords_are_forbidden_tokens_are_given_and_no_secret_is_anywhere() -> None:
    engine = federated_engine()
    engine.fail(method="POST", path=".*/addPassword", status=400, code="CredentialTypeNotAllowedAsPerAppPolicy")
    token = engine.must("GET", TOKEN).data["access_token"]
    role = engine.stored_role()
    assert role.token_secret is not None
    assert not role.token_secret.secret
    assert token.encode() not in opened_entries(engine)
    engine.must("POST", ROLE, {"proof": "secret"})
    assert engine.ask("GET", TOKEN).status == 502
    engine.heal()
    engine.must("GET", TOKEN)
    kept = engine.stored_role().token_secret
    assert kept is not None
    assert kept.secret.reveal().encode() in opened_entries(engine)
