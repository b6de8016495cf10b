"""The record of what the service proves itself with."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from cloudid_core import Secret
from cloudid_core.effects import Instant, PlatformToken
from cloudid_core.errors import Code, Refused
from cloudid_core.provider.identities import (
    MOST_PLATFORM_IDENTITIES,
    Identities,
    PlatformIdentity,
    Proofs,
    identities_for_writing,
    lending,
)
from cloudid_core.store import keys
from tests.engines import SecretsEngine, configured_engine

OTHER = "0Ther-App"


def token_of(claims: str) -> Secret:
    return Secret(f"e30.{urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.sig")


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def noted(engine: SecretsEngine) -> Proofs:
    identities, _ = engine.perform(identities_for_writing(engine.context.records))
    return identities.of(engine.mount().id)


def note(engine: SecretsEngine, token: Secret) -> None:
    engine.perform(PlatformIdentity(engine.context.records, engine.mount().id).note(token))


def test_a_client_id_is_refused_however_its_letters_are_written(engine: SecretsEngine) -> None:
    own = engine.root_application["client_id"]
    for spelling in (own, own.upper()):
        with pytest.raises(Refused) as refused:
            engine.perform(lending(engine.context.records, spelling))
        assert [problem.code for problem in refused.value.problems] == [Code.SELF_TARGET]


def test_a_commit_that_lends_rests_on_the_record(engine: SecretsEngine) -> None:
    entry = engine.store.read(keys.IDENTITIES)
    assert entry is not None
    changes = engine.perform(lending(engine.context.records, OTHER))
    assert (changes.expects, changes.puts) == ({keys.IDENTITIES: entry.version}, {})


@pytest.mark.parametrize("claims", [f'{{"appid": "{OTHER}"}}', f'{{"azp": "{OTHER}"}}'])
def test_the_identity_of_a_platform_is_that_of_its_token(engine: SecretsEngine, claims: str) -> None:
    note(engine, token_of(claims))
    assert noted(engine).platform == (OTHER.lower(),)
    revision = engine.store.revision
    note(engine, token_of(claims))
    assert engine.store.revision == revision


@pytest.mark.parametrize(
    "token", [Secret("opaque"), token_of("[]"), token_of("{}"), token_of('{"appid": 1}'), Secret("a.b")]
)
def test_a_token_that_says_nothing_is_nobodys(engine: SecretsEngine, token: Secret) -> None:
    note(engine, token)
    assert noted(engine).platform == ()


def test_identities_of_machines_that_are_gone_give_way(engine: SecretsEngine) -> None:
    for number in range(MOST_PLATFORM_IDENTITIES + 2):
        note(engine, token_of(f'{{"appid": "app-{number}"}}'))
    platform = noted(engine).platform
    assert (len(platform), platform[0], platform[-1]) == (256, "app-2", "app-257")


def test_the_identity_of_the_host_is_on_record_before_it_is_used() -> None:
    """No role may lend its secrets, in whatever mount."""
    engine = SecretsEngine(verify_credentials=False)
    other = engine.other_application
    principal = engine.simulator.world.directory.principal_of(other["client_id"])
    assert principal is not None
    engine.must("POST", "cloud/config", engine.config)
    engine.must("POST", "cloud/roles/before", {"application_object_id": other["object_id"]})
    engine.must("GET", "cloud/creds/before")
    engine.platform = lambda resource, client_id: platform_token(other["client_id"], engine.clock)
    scene = engine.scene
    login = {"tenant_id": scene["tenant"], "resource": "https://service"}
    engine.must("POST", "auth/cloud/config", login)
    engine.ask("GET", "auth/cloud/permissions")
    assert engine.refused("GET", "cloud/creds/before") == (403, "self_target")
    body = {"application_object_id": other["object_id"]}
    assert engine.refused("POST", "cloud/roles/after", body) == (403, "self_target")
    engine.must("POST", "auth/cloud/config", {"max_retries": 1})
    assert engine.refused("GET", "cloud/creds/before") == (403, "self_target")
    own = {name: engine.config[name] for name in ("client_id", "client_secret")}
    engine.must("POST", "auth/cloud/config", own)  # from here on it is not the host's identity that is used
    engine.must("GET", "cloud/creds/before")


def platform_token(client_id: str, now: Instant) -> PlatformToken:
    return PlatformToken(token_of(f'{{"appid": "{client_id}"}}'), now + 3600)


def test_mounts_are_kept_apart() -> None:
    identities = Identities().having("a", Proofs(current=("x",))).having("b", Proofs(former=("y",)))
    assert identities.client_ids == {"x", "y"}
    assert identities.of_mounts(("b", "c")).client_ids == {"y"}
