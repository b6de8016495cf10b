"""Client assertions of federated issuers."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from cloudid_core.effects import HttpResponse
from cloudid_servers.provider_simulator.identity.assertions import JWT_BEARER
from cloudid_servers.provider_simulator.identity.keys import SigningKey, signing_key

from ..cloud import NOON, Cloud, read

ISSUER: Final = "https://issuer.test/v1/identity/oidc/plugins"
SUBJECT: Final = "plugin-identity:root:auth:auth_cloud_1"
AUDIENCE: Final = "api://AzureADTokenExchange"
MAX_AGE: Final = 60
FIRST: Final = signing_key(7, 0)
SECOND: Final = signing_key(7, 1)


class Issuer:
    """Publishes keys at two addresses, and counts how often it was asked."""

    def __init__(self, *keys: SigningKey) -> None:
        self.keys = keys
        self.named = ISSUER
        self.asked = 0

    def fetch(self, url: str) -> HttpResponse:
        documents: dict[str, Any] = {
            f"{ISSUER}/.well-known/openid-configuration": {"issuer": self.named, "jwks_uri": f"{ISSUER}/keys"},
            f"{ISSUER}/keys": {"keys": [key.jwk() for key in self.keys]},
        }
        self.asked += 1
        if url not in documents:
            return HttpResponse(404)
        return HttpResponse(200, {"cache-control": f"public, max-age={MAX_AGE}"}, json.dumps(documents[url]).encode())


@pytest.fixture
def issuer(cloud: Cloud) -> Issuer:
    """An issuer that the first application trusts."""
    issuer = Issuer(FIRST)
    cloud.simulator.world.fetch = issuer.fetch
    federate(cloud)
    return issuer


def federate(cloud: Cloud, **changes: str) -> Any:
    client_id = cloud.world["applications"][0]["client_id"]
    wanted = {"client_id": client_id, "issuer": ISSUER, "subject": SUBJECT, "audience": AUDIENCE, **changes}
    return read(cloud.ask("POST", "/simulator/federations", wanted), 201)


def present(cloud: Cloud, key: SigningKey = FIRST, text: str = "", **claims: Any) -> HttpResponse:
    now = cloud.simulator.world.now()
    full = {"iss": ISSUER, "sub": SUBJECT, "aud": [AUDIENCE], "iat": now, "nbf": now, "exp": now + 3600, **claims}
    assertion = text or key.sign({name: value for name, value in full.items() if value is not None})
    return cloud.sign_in(client_secret="", client_assertion_type=JWT_BEARER, client_assertion=assertion)


def code(response: HttpResponse) -> int:
    return int(read(response, 401)["error_codes"][0])


def test_an_assertion_of_a_trusted_issuer_gets_a_token(cloud: Cloud, issuer: Issuer) -> None:
    assert read(present(cloud), 200)["token_type"] == "Bearer"
    (seen,) = cloud.json("GET", "/simulator/world")["assertions"]
    assert (seen["lifetime"], seen["kid"], seen["subject"]) == (3600, FIRST.kid, SUBJECT)


def test_the_audience_may_be_a_text(cloud: Cloud, issuer: Issuer) -> None:
    assert present(cloud, aud=AUDIENCE).status == 200


@pytest.mark.parametrize(
    "claims, number",
    [
        ({"iss": f"{ISSUER}/"}, 700211),
        ({"iss": None}, 700211),
        ({"sub": SUBJECT.upper()}, 7002138),
        ({"sub": f"{SUBJECT}2"}, 700213),
        ({"sub": "/eid1/c/pub/t/x"}, 7002137),
        ({"aud": ["api://azureadtokenexchange"]}, 700212),
        ({"aud": None}, 700212),
        ({"exp": NOON}, 700024),
        ({"exp": None}, 700024),
        ({"iat": NOON + 301}, 700024),
        ({"nbf": NOON + 301}, 700024),
        ({"exp": "soon"}, 50027),
    ],
)
def test_each_mismatch_has_its_own_error(cloud: Cloud, issuer: Issuer, claims: dict[str, Any], number: int) -> None:
    assert code(present(cloud, **claims)) == number
    assert cloud.json("GET", "/simulator/world")["assertions"] == []


@pytest.mark.parametrize("text", ["a.b.c", "a.b", "é", "e30.e30.e30", "W10.W10.W10"])
def test_what_is_no_signed_token_is_malformed(cloud: Cloud, issuer: Issuer, text: str) -> None:
    assert code(present(cloud, text=text)) == 50027


def test_an_unpublished_key_is_not_found(cloud: Cloud, issuer: Issuer) -> None:
    assert code(present(cloud, SECOND)) == 700027


def test_a_signature_must_be_of_the_key_that_is_named(cloud: Cloud, issuer: Issuer) -> None:
    now = NOON
    claims = {"iss": ISSUER, "sub": SUBJECT, "aud": AUDIENCE, "iat": now, "exp": now + 60}
    signed, _, _ = FIRST.sign(claims).rpartition(".")
    _, _, other = FIRST.sign({**claims, "exp": now + 61}).rpartition(".")
    assert code(present(cloud, text=f"{signed}.{other}")) == 50027


def test_an_application_without_federation_takes_no_assertion(cloud: Cloud, issuer: Issuer) -> None:
    (federation,) = cloud.json("GET", "/simulator/federations")
    assert cloud.ask("DELETE", f"/simulator/federations/{federation['id']}").status == 204
    assert code(present(cloud)) == 70021
    assert cloud.ask("DELETE", f"/simulator/federations/{federation['id']}").status == 404


def test_an_application_may_trust_several_subjects(cloud: Cloud, issuer: Issuer) -> None:
    federate(cloud, subject="other")
    assert [present(cloud, sub=subject).status for subject in (SUBJECT, "other", "third")] == [200, 200, 401]


def test_the_documents_are_kept_for_their_max_age(cloud: Cloud, issuer: Issuer) -> None:
    assert [present(cloud).status, present(cloud).status, issuer.asked] == [200, 200, 2]
    issuer.keys = (FIRST, SECOND)
    cloud.wait(MAX_AGE - 1)
    assert code(present(cloud, SECOND)) == 700027
    cloud.wait(1)
    assert (present(cloud, SECOND).status, issuer.asked) == (200, 4)


@pytest.mark.parametrize("trouble", ["unreachable", "another name", "no documents"])
def test_an_issuer_without_documents_cannot_be_believed(cloud: Cloud, issuer: Issuer, trouble: str) -> None:
    def fetch(url: str) -> HttpResponse:
        if trouble == "unreachable":
            raise OSError
        return HttpResponse(200, {}, b"[]") if trouble == "no documents" else issuer.fetch(url)

    issuer.named = "https://other.test"
    cloud.simulator.world.fetch = fetch
    assert code(present(cloud)) == 50166


def test_a_cloud_in_memory_reaches_no_issuer(cloud: Cloud) -> None:
    federate(cloud)
    assert code(present(cloud)) == 50166


@pytest.mark.parametrize("field", ["client_id", "issuer", "subject", "audience"])
def test_a_federation_needs_all_its_fields(cloud: Cloud, field: str) -> None:
    wanted = {"client_id": cloud.world["applications"][0]["client_id"], "issuer": "i", "subject": "s", "audience": "a"}
    assert cloud.ask("POST", "/simulator/federations", {**wanted, field: ""}).status == 400


def test_a_federation_is_of_an_application_that_exists(cloud: Cloud) -> None:
    wanted = {"client_id": "nobody", "issuer": "i", "subject": "s", "audience": "a"}
    assert cloud.ask("POST", "/simulator/federations", wanted).status == 400


def test_calls_of_a_metadata_service_are_counted_even_when_they_fail(cloud: Cloud) -> None:
    name = cloud.world["machines"][0]["name"]
    cloud.machine_token(name)
    cloud.json("POST", "/simulator/faults", [{"match": {"family": "metadata"}, "action": {"drop": True}}])
    cloud.machine_token(name)
    cloud.machine_token("unknown")
    assert cloud.json("GET", "/simulator/world")["metadata_calls"] == {name: 2}


def test_copies_have_their_own_federations(cloud: Cloud, issuer: Issuer) -> None:
    twin = cloud.simulator.copy(fetch=Issuer(SECOND).fetch)
    twin.world.federations.clear()
    assert present(cloud).status == 200
    assert twin.world.assertions == []
