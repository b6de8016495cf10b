"""The secret that a role keeps to ask for access tokens."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from cloudid_core.provider.propagation import GRACE
from cloudid_core.secrets_engine.token_secret import LIFE, LONGEST_WAIT, OVERLAP
from tests.engines import ROLE, SecretsEngine
from tests.installation import SETTLE_TIME

from .test_access_tokens import GRAPH, TOKEN, VAULT, lending_engine

KINDS: dict[str, dict[str, Any]] = {"existing": {}, "kept": {"persist_app": True}}


def secrets(engine: SecretsEngine) -> list[str]:
    return [made.id for made in engine.alive("password")]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_made_with_the_first_token_and_used_for_the_others(kind: str) -> None:
    engine = lending_engine(GRAPH, VAULT, **KINDS[kind])
    assert secrets(engine) == []
    engine.must("POST", TOKEN, {"scope": GRAPH})
    made = secrets(engine)
    engine.must("POST", TOKEN, {"scope": VAULT})
    assert len(made) == 1
    assert secrets(engine) == made
    stored = engine.stored_role().token_secret
    assert stored is not None
    assert engine.signs_in(stored.provisioned.client_id, stored.secret.reveal())


def test_it_is_replaced_after_half_its_life_and_overlaps() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    (first,) = secrets(engine)
    engine.advance(LIFE / 2 - 10)
    engine.must("GET", TOKEN)
    assert secrets(engine) == [first]
    engine.advance(3600)
    engine.must("GET", TOKEN)
    assert len(secrets(engine)) == 2
    engine.tick()
    assert len(secrets(engine)) == 2
    engine.advance(OVERLAP + 1)
    engine.tick()
    engine.tick()
    (second,) = secrets(engine)
    assert second != first
    engine.must("GET", TOKEN)
    assert secrets(engine) == [second]


def test_one_that_nobody_needed_until_it_was_over_is_made_anew() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    (first,) = secrets(engine)
    engine.advance(LIFE + 10)
    engine.must("GET", TOKEN)
    engine.advance(OVERLAP + 1)
    engine.converge()
    (second,) = secrets(engine)
    assert second != first


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["no scopes", "deletion"])
def test_it_is_removed_when_the_role_gives_no_more_tokens(end: str, kind: str) -> None:
    engine = lending_engine(**KINDS[kind])
    engine.must("GET", TOKEN)
    stored = engine.stored_role().token_secret
    assert stored is not None
    if end == "deletion":
        engine.must("DELETE", ROLE)
    else:
        engine.must("POST", ROLE, {"token_scopes": ""})
        assert engine.stored_role().token_secret is None
    engine.tick()
    assert not engine.signs_in(stored.provisioned.client_id, stored.secret.reveal())
    engine.converge()
    assert (secrets(engine), engine.intents()) == ([], [])


def test_it_is_removed_when_the_role_points_elsewhere() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    engine.must("POST", ROLE, {"application_object_id": "", "persist_app": True, "azure_roles": engine.grants()})
    engine.converge()
    assert secrets(engine) == []
    engine.must("GET", TOKEN)
    (made,) = engine.alive("password")
    engine.must("POST", ROLE, {"persist_app": False, "application_object_id": engine.other_application["object_id"]})
    engine.converge()
    assert not engine.alive()
    assert made.id not in secrets(engine)


def test_it_stays_with_a_role_that_is_written_otherwise() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    made = secrets(engine)
    engine.must("POST", ROLE, {"ttl": 60, "token_scopes": [GRAPH, VAULT]})
    engine.must("POST", ROLE, engine.shown_role())
    engine.converge()
    assert secrets(engine) == made


def test_it_goes_with_its_mount() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    engine.must("DELETE", "sys/mounts/cloud")
    engine.converge()
    assert secrets(engine) == []


def test_the_configuration_is_not_deleted_while_a_role_needs_it() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    assert engine.refused("DELETE", "cloud/config") == (409, "leases_alive")


def test_it_is_stored_once_the_provider_accepts_it() -> None:
    engine = lending_engine()
    engine.behave(delays={"sign_in": 12})
    since = engine.clock
    engine.must("GET", TOKEN)
    assert engine.clock - since >= 12


PROOFS = ("secret", "federated_credential", "certificate")


@pytest.mark.parametrize("proof", PROOFS)
def test_one_that_is_not_accepted_in_time_is_kept_for_the_next_request(proof: str) -> None:
    engine = lending_engine()
    engine.must("POST", ROLE, {"proof": proof})
    engine.behave(delays={"sign_in": 600})
    reply = engine.ask("GET", TOKEN)
    assert (reply.status, reply.codes, "retry-after" in reply.response.headers) == (503, ["role_proof_pending"], True)
    assert (len(engine.alive()), engine.intents()) == (1, [])
    made = engine.alive()
    engine.advance(300)
    assert engine.refused("GET", TOKEN) == (503, "role_proof_pending")
    engine.advance(300)
    engine.must("GET", TOKEN)
    engine.converge()
    assert engine.alive() == made


def test_two_certificates_of_an_application_that_are_made_at_the_same_time_both_stay() -> None:
    """They are changed all at once: one who has read an old list would write back a list without a new one."""
    engine = lending_engine()
    engine.must("POST", ROLE, {"proof": "certificate"})
    second = "cloud/token/second"
    engine.must("POST", "cloud/roles/second", {**engine.shown_role(), "proof": "certificate"})
    engine.behave(delays={"reads": 20, "sign_in": 10})
    tasks = [engine.spawn(engine.asking("GET", path)) for path in (TOKEN, second)]
    engine.settle()
    assert [task.result().status for task in tasks] == [200, 200]
    engine.converge()
    assert len(engine.alive("certificate")) == 2


def test_one_that_is_lost_before_it_is_accepted_gives_way_once_it_would_show() -> None:
    """Somebody else writes back an old list of certificates."""
    engine = lending_engine()
    engine.must("POST", ROLE, {"proof": "certificate"})
    engine.behave(delays={"sign_in": 60})
    task = engine.spawn(engine.asking("GET", TOKEN))
    engine.advance(10)
    applications = engine.simulator.world.directory.applications
    (object_id,) = (object_id for made in engine.alive("certificate") for object_id in made.of)
    application = applications.get(object_id)
    assert application is not None
    applications.put(object_id, evolve(application, certificates=()))
    engine.settle()
    assert task.result().status == 503
    engine.advance(GRACE + 1)
    assert engine.refused("GET", TOKEN) == (504, "deadline_passed")
    engine.behave(delays={"sign_in": 0})
    engine.advance(SETTLE_TIME)
    engine.must("GET", TOKEN)


def test_one_that_is_never_accepted_gives_way_to_another() -> None:
    engine = lending_engine()
    engine.behave(delays={"sign_in": 5000})
    assert engine.refused("GET", TOKEN) == (503, "role_proof_pending")
    (first,) = secrets(engine)
    engine.advance(LONGEST_WAIT + 1)
    assert engine.refused("GET", TOKEN) == (503, "role_proof_pending")
    engine.advance(OVERLAP + 1)
    engine.converge()
    (second,) = secrets(engine)
    assert second != first
    engine.must("DELETE", ROLE)
    engine.converge()
    assert (secrets(engine), engine.intents()) == ([], [])


def test_a_replacement_that_is_not_accepted_in_time_is_taken_back_while_the_first_works() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    first = secrets(engine)
    engine.advance(LIFE / 2 + 1)
    engine.behave(delays={"sign_in": 600})
    engine.must("GET", TOKEN)
    engine.converge()
    assert (secrets(engine), engine.intents()) == (first, [])


def test_one_whose_making_is_refused_is_taken_back_at_once() -> None:
    engine = lending_engine()
    engine.fail(method="POST", path=".*/addPassword", after_work=True, status=403, code="Forbidden")
    assert engine.ask("GET", TOKEN).status == 502
    assert len(secrets(engine)) == 1
    engine.heal()
    engine.tick()
    assert secrets(engine) == []
    engine.converge()
    assert engine.intents() == []
    assert engine.stored_role().token_secret is None


def test_the_reconciliation_knows_it_and_tells_when_it_is_gone() -> None:
    engine = lending_engine()
    engine.must("GET", TOKEN)
    engine.advance(3600)
    assert engine.must("GET", "cloud/reconcile").data["unaccounted"] == []
    stored = engine.stored_role().token_secret
    assert stored is not None
    directory = engine.simulator.world.directory
    application = directory.applications.get(stored.provisioned.password_on)
    assert application is not None
    directory.remove_password(application, stored.provisioned.password_key_id)
    engine.advance(3600)
    (missing,) = engine.must("GET", "cloud/reconcile").data["missing"]
    assert (missing["kind"], missing["role"]) == ("password", "web")
