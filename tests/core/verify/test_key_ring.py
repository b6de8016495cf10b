"""Key rings: how often keys are fetched, how long they are used, and that tenants share nothing."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from cloudid_core.verify import Admitted, Fetch, KeyRing, RefusalCode, Refused, Verdict, Verifier
from tests.minting import AUDIENCE, HEADER, KEY_ID, NOW, PRINCIPAL, TENANT, mint, said

from .test_verifier import jwks

OTHER_TENANT: Final = "0b1ec700-0000-4000-8000-00000000000a"
DAY: Final = 24 * 3600.0


def verifier(tenant: str = TENANT, **changes: Any) -> Verifier:
    given: dict[str, Any] = {"tenant_id": tenant, "audience": AUDIENCE, "bound_service_principal_ids": [PRINCIPAL]}
    return Verifier(**{**given, **changes})


def token(kid: str = KEY_ID, **claims: Any) -> str:
    lasting = {"exp": NOW + 10 * DAY, **claims}
    return mint(said(**lasting), header={**HEADER, "kid": kid}, key=kid)


def published(*kids: str) -> str:
    return json.dumps(jwks(*kids))


def code_of(verdict: Verdict | Fetch) -> RefusalCode | None:
    return verdict.code if isinstance(verdict, Refused) else None


def verify(ring: KeyRing, text: str, now: float, keys: str | None) -> tuple[Verdict | Fetch, int]:
    """The verdict, and how many fetches it took; each brings `keys`."""
    fetches = 0
    while isinstance(verdict := ring.verify(text, now), Fetch):
        fetches += 1
        ring.fetched(verdict, keys, now)
    return verdict, fetches


@pytest.fixture
def ring() -> KeyRing:
    """A ring that has just fetched its keys."""
    ring = KeyRing(verifier())
    verdict, fetches = verify(ring, token(), NOW, published(KEY_ID))
    assert isinstance(verdict, Admitted)
    assert fetches == 1
    return ring


def test_the_first_token_makes_it_fetch_where_azure_publishes_the_keys() -> None:
    fetch = KeyRing(verifier()).verify(token(), NOW)
    assert fetch == Fetch(f"https://login.microsoftonline.com/{TENANT}/discovery/v2.0/keys", TENANT)


def test_a_rotated_key_is_fetched_when_a_token_names_it(ring: KeyRing) -> None:
    verdict, fetches = verify(ring, token("newer"), NOW + 60, published("newer"))
    assert isinstance(verdict, Admitted)
    assert fetches == 1
    assert code_of(ring.verify(token(), NOW + 61)) is RefusalCode.KEY_UNKNOWN, "the older key is withdrawn"


def test_there_is_one_fetch_in_30_seconds_whichever_keys_tokens_name(ring: KeyRing) -> None:
    for second in range(1, 61):
        for kid in ("other", "newer"):
            fetches = verify(ring, token(kid), NOW + second, published(KEY_ID))[1]
            assert fetches == (1 if second in (30, 60) and kid == "other" else 0), second
    assert isinstance(ring.verify(token(), NOW + 61), Admitted)


def test_there_is_one_fetch_in_30_seconds_when_fetches_fail() -> None:
    ring = KeyRing(verifier())
    fetches = [verify(ring, token(), NOW + second, None)[1] for second in range(61)]
    assert [second for second, count in enumerate(fetches) if count] == [0, 30, 60]
    assert code_of(ring.verify(token(), NOW + 61)) is RefusalCode.KEYS_UNAVAILABLE


def test_while_one_caller_fetches_the_others_use_the_older_keys(ring: KeyRing) -> None:
    fetch = ring.verify(token("newer"), NOW + 60)
    assert isinstance(fetch, Fetch)
    assert ring.is_fetching(NOW + 60)
    assert isinstance(ring.verify(token(), NOW + 61), Admitted)
    assert code_of(ring.verify(token("newer"), NOW + 61)) is RefusalCode.KEY_UNKNOWN
    ring.fetched(fetch, published(KEY_ID, "newer"), NOW + 62)
    assert not ring.is_fetching(NOW + 62)
    assert isinstance(ring.verify(token("newer"), NOW + 62), Admitted)


def test_a_fetch_whose_outcome_never_comes_does_not_prevent_the_next(ring: KeyRing) -> None:
    assert isinstance(ring.verify(token("newer"), NOW + 60), Fetch)
    assert isinstance(ring.verify(token("newer"), NOW + 90), Fetch)
    assert not ring.is_fetching(NOW + 120)


def test_keys_are_fetched_again_every_hour_so_that_withdrawn_keys_end(ring: KeyRing) -> None:
    assert verify(ring, token(), NOW + 3599, published("newer"))[1] == 0
    verdict, fetches = verify(ring, token(), NOW + 3600, published("newer"))
    assert code_of(verdict) is RefusalCode.KEY_UNKNOWN
    assert fetches == 1


@pytest.mark.parametrize("body", [None, "", "<html>", "{}", '{"keys": []}', '{"keys": [{"kty": "EC"}]}', b"\xff"])
def test_keys_are_kept_for_24_hours_when_a_fetch_fails(ring: KeyRing, body: Any) -> None:
    verdict, fetches = verify(ring, token(), NOW + DAY - 1, body)
    assert isinstance(verdict, Admitted)
    assert fetches == 1
    verdict, fetches = verify(ring, token(), NOW + DAY, body)
    assert code_of(verdict) is RefusalCode.KEYS_UNAVAILABLE
    verdict, fetches = verify(ring, token(), NOW + DAY + 30, published(KEY_ID))
    assert isinstance(verdict, Admitted)


def test_a_clock_that_was_set_back_does_not_prevent_fetches(ring: KeyRing) -> None:
    assert verify(ring, token("newer"), NOW - 1000, published("newer"))[1] == 1


def test_keys_that_a_verifier_was_given_are_used_until_the_first_fetch_succeeds() -> None:
    ring = KeyRing(verifier(keys=jwks()))
    assert isinstance(verify(ring, token(), NOW, None)[0], Admitted)
    assert code_of(verify(ring, token(), NOW + 30, published("newer"))[0]) is RefusalCode.KEY_UNKNOWN


def test_tenants_are_apart() -> None:
    """A tenant whose keys cannot be fetched, or that strangers name keys for, costs the other one nothing."""
    ring = KeyRing(verifier(), verifier(OTHER_TENANT))
    here = token()
    there = token("theirs", tid=OTHER_TENANT, iss=f"https://sts.windows.net/{OTHER_TENANT}/")
    keys = {TENANT: published(KEY_ID), OTHER_TENANT: None}
    fetched = []
    while isinstance(verdict := ring.verify(here, NOW), Fetch):
        fetched.append(verdict.tenant_id)
        ring.fetched(verdict, keys[verdict.tenant_id], NOW)
    assert fetched == [TENANT, OTHER_TENANT]
    assert isinstance(verdict, Admitted)
    assert code_of(ring.verify(there, NOW)) in (RefusalCode.KEYS_UNAVAILABLE, RefusalCode.KEY_UNKNOWN)
    fetch = ring.verify(there, NOW + 30)
    assert isinstance(fetch, Fetch)
    assert fetch.tenant_id == OTHER_TENANT
    ring.fetched(fetch, published("theirs"), NOW + 30)
    assert isinstance(verify(ring, there, NOW + 30, published(KEY_ID))[0], Admitted)
    stolen = token("theirs")
    assert not isinstance(verify(ring, stolen, NOW + 61, published(KEY_ID))[0], Admitted), "keys of the other tenant"


def test_there_is_one_verifier_for_each_tenant() -> None:
    for verifiers in ((), (verifier(), verifier())):
        with pytest.raises(ValueError, match="one verifier for each tenant"):
            KeyRing(*verifiers)


def test_no_time_is_an_error(ring: KeyRing) -> None:
    with pytest.raises(ValueError, match="now must be"):
        ring.verify(token(), float("nan"))
