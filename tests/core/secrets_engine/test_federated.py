"""Roles whose access tokens are asked for by a federated credential or a certificate, without any secret."""

from __future__ import annotations

import pytest
from attrs import evolve

from cloudid_core.secrets_engine.token_secret import LIFE, OVERLAP
from cloudid_core.store import Changes, keys
from cloudid_servers.provider_simulator.world.objects import Certificate
from tests.engines import ROLE, SecretsEngine

from .test_access_tokens import TOKEN, lending_engine

KINDS = ("existing", "kept")
MADE = {"federated_credential": "federation", "certificate": "certificate"}
"""What stands at the provider for each proof."""


def federated_engine(kind: str = "existing", proof: str = "federated_credential") -> SecretsEngine:
    engine = lending_engine(**({"persist_app": True} if kind == "kept" else {}))
    engine.must("POST", ROLE, {"proof": proof})
    return engine


@pytest.mark.parametrize("proof", MADE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["no scopes", "deletion", "secret", "mount"])
def test_it_is_made_with_the_first_token_and_goes_with_its_purpose(end: str, kind: str, proof: str) -> None:
    engine = federated_engine(kind, proof)
    since = len(engine.trace)
    engine.must("GET", TOKEN)
    assert engine.alive("password") == []
    assert len(engine.alive(MADE[proof])) == 1
    assert not any("addPassword" in each for each in engine.calls(since))
    accepted = engine.simulator.world.assertions[-1]
    assert accepted["subject"].startswith(
        "plugin-identity:app:" if proof == "federated_credential" else accepted["client_id"]
    )
    assert accepted["lifetime"] <= 600
    if end == "deletion":
        engine.must("DELETE", ROLE)
    elif end == "mount":
        engine.must("DELETE", "sys/mounts/cloud")
    else:
        engine.must("POST", ROLE, {"token_scopes": ""} if end == "no scopes" else {"proof": "secret"})
    engine.converge()
    assert (engine.alive(MADE[proof]), engine.intents()) == ([], [])
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


@pytest.mark.parametrize("proof", MADE)
def test_it_is_proven_within_the_deadline(proof: str) -> None:
    engine = federated_engine(proof=proof)
    engine.behave(delays={"sign_in": 12})
    engine.must("GET", TOKEN)
    engine.converge()
    assert len(engine.alive(MADE[proof])) == 1
    assert engine.intents() == []


@pytest.mark.parametrize("proof", MADE)
def test_one_whose_answer_is_lost_is_found_by_its_name(proof: str) -> None:
    engine = federated_engine(proof=proof)
    engine.fail(method="(POST|PATCH)", path="/graph/v1.0/applications/.*", after_work=True, drop=True, times=1)
    engine.must("GET", TOKEN)
    engine.converge()
    assert len(engine.alive(MADE[proof])) == 1


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


@pytest.mark.parametrize("proof", MADE)
def test_one_that_somebody_removed_is_made_anew(proof: str) -> None:
    engine = federated_engine(proof=proof)
    engine.must("GET", TOKEN)
    engine.simulator.world.federations.clear()
    certify(engine)
    engine.advance(3600)
    assert engine.must("GET", TOKEN).data["access_token"]
    assert len(engine.simulator.world.federations) + len(certificates(engine)) == 1


def test_a_certificate_is_made_at_any_fraction_of_a_second() -> None:
    engine = federated_engine(proof="certificate")
    engine.advance(0.75)
    engine.must("GET", TOKEN)


def test_a_certificate_is_replaced_after_half_its_life_beside_those_of_others() -> None:
    engine = federated_engine(proof="certificate")
    others = Certificate("0f000000-0000-4000-8000-000000000000", "theirs", b"", 0.0, 1e10)
    certify(engine, others)
    engine.advance(0.7)  # the certificate has whole seconds, and ends no earlier than what is registered
    engine.must("GET", TOKEN)
    (first,) = engine.alive("certificate")
    engine.advance(LIFE / 2 + 1)
    engine.must("GET", TOKEN)
    assert len(engine.alive("certificate")) == 2
    engine.advance(OVERLAP + 1)
    engine.converge()
    (second,) = engine.alive("certificate")
    assert second.id != first.id
    assert [one.key_id for one in certificates(engine)] == [others.key_id, second.id]
    engine.must("GET", TOKEN)


def certificates(engine: SecretsEngine) -> tuple[Certificate, ...]:
    """Those of the application that was there before."""
    application = engine.simulator.world.directory.applications.get(engine.other_application["object_id"])
    assert application is not None
    return application.certificates


def certify(engine: SecretsEngine, *certificates: Certificate) -> None:
    """Leave that application with these alone."""
    directory = engine.simulator.world.directory
    application = directory.applications.get(engine.other_application["object_id"])
    assert application is not None
    directory.replace(evolve(application, certificates=certificates))


@pytest.mark.parametrize("proof", MADE)
def test_the_reconciliation_knows_it_and_tells_when_it_is_gone(proof: str) -> None:
    engine = federated_engine(proof=proof)
    engine.must("GET", TOKEN)
    engine.advance(3600)
    report = engine.must("GET", "cloud/reconcile").data
    assert (report["unaccounted"], report["missing"]) == ([], [])
    engine.simulator.world.federations.clear()
    certify(engine)
    engine.advance(3600)
    (missing,) = engine.must("GET", "cloud/reconcile").data["missing"]
    assert (missing["kind"], missing["role"]) == (proof, "web")


@pytest.mark.parametrize("proof", MADE)
def test_one_that_no_record_lists_is_reported_and_removed(proof: str) -> None:
    engine = federated_engine(proof=proof)
    engine.must("GET", TOKEN)
    (key,) = (key for key in engine.keys("mount/") if key.endswith("/role/web"))
    forgetful = evolve(engine.stored_role(), token_secret=None)
    engine.perform(engine.context.records.commit(Changes(puts={key: forgetful})))
    (made,) = engine.alive(MADE[proof])
    engine.advance(3600)
    (unaccounted,) = engine.must("GET", "cloud/reconcile").data["unaccounted"]
    assert (unaccounted["kind"], unaccounted["id"]) == (proof, made.id)
    assert engine.must("POST", "cloud/reconcile").data["repaired"] == 1
    engine.converge()
    assert (engine.alive(MADE[proof]), engine.intents()) == ([], [])
    assert engine.must("GET", "cloud/reconcile").data["unaccounted"] == []


def opened_entries(engine: SecretsEngine) -> bytes:
    """All that the store holds, as the service reads it; but for the ring, which is sealed under the master key."""
    entries = {key: entry.value for key in engine.keys("") if (entry := engine.store.read(key))}
    unseal = engine.context.records.sealer.open
    return b"".join(unseal(key, value) for key, value in entries.items() if key != keys.RING)


@pytest.mark.parametrize("proof", MADE)
def test_where_passwords_are_forbidden_tokens_are_given_and_no_secret_is_anywhere(proof: str) -> None:
    engine = federated_engine(proof=proof)
    engine.fail(method="POST", path=".*/addPassword", status=400, code="CredentialTypeNotAllowedAsPerAppPolicy")
    token = engine.must("GET", TOKEN).data["access_token"]
    kept = engine.stored_role().token_secret
    assert kept is not None
    assert token.encode() not in opened_entries(engine)
    assert (kept.secret.reveal() == kept.proof_id) is (proof == "federated_credential")  # there is no secret but a key
    if proof == "certificate":
        printed = f"{engine.trace!r} {kept!r}"
        body = kept.secret.reveal().splitlines()[1]
        assert body not in printed
        assert not any(body.encode() in entry.value for key in engine.keys("") if (entry := engine.store.read(key)))
    engine.must("POST", ROLE, {"proof": "secret"})
    assert engine.ask("GET", TOKEN).status == 502
    engine.heal()
    engine.must("GET", TOKEN)
    kept = engine.stored_role().token_secret
    assert kept is not None
    assert kept.secret.reveal().encode() in opened_entries(engine)
