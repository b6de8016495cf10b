"""Verification: a signature is proven once; what it is proven for is remembered, and nothing else."""

from __future__ import annotations

from collections import UserDict

import pytest
from attrs import evolve
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from cloudid_core.auth_method.verification import UnknownKey, verify_login_jwt
from cloudid_core.caches import Caches
from cloudid_core.errors import Code
from cloudid_core.provider.signing_keys import KeySet

from ...minting import HEADER, PRINCIPAL, code_of, key_set, mint, new_caches, said

LIMIT = 16_384


class CountingKeys(UserDict[str, RSAPublicKey]):
    """Keys that know how often they were asked for: a signature that is remembered needs none."""

    asked = 0

    def __getitem__(self, key: str) -> RSAPublicKey:
        self.asked += 1
        return super().__getitem__(key)


def counted(*names: str, generation: str = "1") -> tuple[KeySet, CountingKeys]:
    plain = key_set(*names, generation=generation)
    keys = CountingKeys(plain.keys)
    return evolve(plain, keys=keys), keys


@pytest.fixture
def caches() -> Caches:
    return new_caches()


def test_a_good_token_gives_its_claims(caches: Caches) -> None:
    assert verify_login_jwt(mint(), key_set(), caches, "mount", LIMIT).principal_id == PRINCIPAL


def test_a_signature_that_held_is_remembered(caches: Caches) -> None:
    keys, count = counted()
    token = mint()
    first = verify_login_jwt(token, keys, caches, "mount", LIMIT)
    assert verify_login_jwt(token, keys, caches, "mount", LIMIT) is first
    assert count.asked == 1


def test_what_is_remembered_is_neither_token_nor_whole_key(caches: Caches) -> None:
    token = mint()
    verify_login_jwt(token, key_set(), caches, "mount", LIMIT)
    (remembered,) = caches.signatures
    assert token.rpartition(".")[0] not in repr(remembered)
    assert token.split(".")[1] not in repr(remembered)


@pytest.mark.parametrize("other", ["mount", "generation"])
def test_nothing_is_shared_between_mounts_or_sets_of_keys(caches: Caches, other: str) -> None:
    token = mint()
    verify_login_jwt(token, key_set(), caches, "mount", LIMIT)
    keys, count = counted(generation="2" if other == "generation" else "1")
    verify_login_jwt(token, keys, caches, "another" if other == "mount" else "mount", LIMIT)
    assert count.asked == 1


def test_a_removed_key_empties_what_was_verified_with_it(caches: Caches) -> None:
    token = mint()
    verify_login_jwt(token, key_set(), caches, "mount", LIMIT)
    with pytest.raises(UnknownKey):
        verify_login_jwt(token, key_set("key-2", generation="2"), caches, "mount", LIMIT)


def test_a_refusal_is_not_remembered(caches: Caches) -> None:
    assert code_of(verify_login_jwt, mint(key="another"), key_set(), caches, "mount", LIMIT) is Code.LOGIN_REFUSED
    unread = mint(said(oid=None))
    assert code_of(verify_login_jwt, unread, key_set(), caches, "mount", LIMIT) is Code.JWT_CLAIM_MISSING
    assert len(caches.signatures) == 0


def test_another_signature_of_a_remembered_payload_is_checked(caches: Caches) -> None:
    """Who knows what a token says, but not its signature, has nothing."""
    token = mint()
    verify_login_jwt(token, key_set(), caches, "mount", LIMIT)
    signed, _, signature = token.rpartition(".")
    _, _, other = mint(said(uti="other")).rpartition(".")
    for bad in (other, signature[:-4] + "AAAA", signature[4:]):
        assert code_of(verify_login_jwt, f"{signed}.{bad}", key_set(), caches, "mount", LIMIT) is Code.LOGIN_REFUSED
    for bad in ("", signature + "="):
        assert code_of(verify_login_jwt, f"{signed}.{bad}", key_set(), caches, "mount", LIMIT) is Code.JWT_MALFORMED


def test_the_cache_is_bounded() -> None:
    caches = new_caches(signature_cache_size=2)
    for number in range(4):
        verify_login_jwt(mint(said(uti=str(number))), key_set(), caches, "mount", LIMIT)
    assert len(caches.signatures) == 2


def test_a_service_may_do_without_the_cache() -> None:
    caches = new_caches(signature_cache_size=0)
    token = mint()
    assert verify_login_jwt(token, key_set(), caches, "mount", LIMIT) == verify_login_jwt(
        token, key_set(), caches, "mount", LIMIT
    )


def test_a_key_of_the_tenant_signs_in_its_own_name_only(caches: Caches) -> None:
    both = key_set("key-1", "key-2")
    assert code_of(verify_login_jwt, mint(key="key-2"), both, caches, "mount", LIMIT) is Code.LOGIN_REFUSED
    named = mint(header={**HEADER, "kid": "key-2"}, key="key-2")
    assert verify_login_jwt(named, both, caches, "mount", LIMIT).principal_id == PRINCIPAL


def test_an_unknown_key_is_told_but_not_in_the_message(caches: Caches) -> None:
    token = mint(header={**HEADER, "kid": "s3cret"})
    with pytest.raises(UnknownKey) as unknown:
        verify_login_jwt(token, key_set(), caches, "mount", LIMIT)
    assert unknown.value.kid == "s3cret"
    assert "s3cret" not in str(unknown.value)


def test_length_is_limited_before_anything_else(caches: Caches) -> None:
    token = mint()
    assert code_of(verify_login_jwt, token, key_set(), caches, "mount", len(token)) is None
    assert code_of(verify_login_jwt, token, key_set(), caches, "mount", len(token) - 1) is Code.FIELD_INVALID
