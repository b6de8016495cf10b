"""Sealing: only what was sealed under a name by a key of ours can be opened there."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.store.sealing import (
    NONCE_SIZE,
    RESERVE,
    TURN_OVER,
    DataKey,
    Keyring,
    SealBroken,
    Sealer,
    TokenKeys,
    master_cipher,
    open_with,
    seal_with,
    term_of,
)
from cloudid_core.values.secret import Secret

NONCE = bytes(range(NONCE_SIZE))


def ring(*data_keys: DataKey) -> Keyring:
    return Keyring(
        installation="00" * 8,
        data_keys=data_keys or (DataKey(1, Secret("11" * 32), 0.0),),
        token_keys=(
            TokenKeys(
                term=1,
                hash_key=Secret("c4n4ry-token"),
                accessor_key=Secret("c4n4ry-accessor"),
                batch_key=Secret("c4n4ry-batch"),
            ),
        ),
    )


@given(st.text(max_size=20), st.binary(max_size=100), st.binary(min_size=NONCE_SIZE, max_size=NONCE_SIZE))
def test_what_was_sealed_is_opened(name: str, plain: bytes, nonce: bytes) -> None:
    sealer = Sealer(ring())
    sealed = sealer.seal(name, plain, nonce)
    assert sealer.open(name, sealed) == plain
    assert plain not in sealed[16:] or len(plain) < 3


def test_a_sealed_value_is_term_nonce_and_ciphertext() -> None:
    sealed = Sealer(ring()).seal("name", b"plain", NONCE)
    assert sealed[:4] == b"\0\0\0\1"
    assert sealed[4:16] == NONCE
    assert AESGCM(bytes.fromhex("11" * 32)).decrypt(NONCE, sealed[16:], b"name") == b"plain"


@pytest.mark.parametrize("other", ["", "namf", "name ", "Name", "name/"])
def test_a_sealed_value_is_bound_to_its_name(other: str) -> None:
    """It cannot be moved to another entry."""
    sealer = Sealer(ring())
    with pytest.raises(SealBroken, match="was altered, or belongs to another entry"):
        sealer.open(other, sealer.seal("name", b"plain", NONCE))


def test_a_change_of_any_byte_is_noticed() -> None:
    sealer = Sealer(ring())
    sealed = sealer.seal("name", b"plain", NONCE)
    for place in range(len(sealed)):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        with pytest.raises(SealBroken):
            sealer.open("name", changed)


def test_a_value_that_was_cut_short_is_noticed() -> None:
    sealer = Sealer(ring())
    sealed = sealer.seal("name", b"plain", NONCE)
    for length in range(len(sealed)):
        with pytest.raises(SealBroken):
            sealer.open("name", sealed[:length])


def test_another_installation_cannot_open_it() -> None:
    sealed = Sealer(ring()).seal("name", b"plain", NONCE)
    with pytest.raises(SealBroken):
        Sealer(ring(DataKey(1, Secret("22" * 32), 0.0))).open("name", sealed)


def test_the_failure_tells_nothing_of_the_value() -> None:
    sealed = Sealer(ring()).seal("name", b"c4n4ry", NONCE)
    with pytest.raises(SealBroken) as failure:
        Sealer(ring()).open("other", sealed)
    assert "c4n4ry" not in str(failure.value)
    assert failure.value.__suppress_context__


def test_old_keys_still_open_and_the_newest_seals() -> None:
    sealer = Sealer(ring())
    old = sealer.seal("name", b"old", NONCE)
    fresh = ring(DataKey(1, Secret("11" * 32), 0.0), DataKey(2, Secret("22" * 32), 5.0))
    other = Sealer(fresh)
    with pytest.raises(SealBroken):
        sealer.open("name", other.seal("name", b"new", NONCE))
    sealer.adopt(fresh)
    new = sealer.seal("name", b"new", NONCE)
    assert (term_of(old), term_of(new)) == (1, 2)
    assert (sealer.open("name", old), sealer.open("name", new)) == (b"old", b"new")


def test_a_sealer_counts_its_seals() -> None:
    sealer = Sealer(ring())
    before = sealer.left
    sealer.seal("name", b"", NONCE)
    assert (before, sealer.left) == (RESERVE, RESERVE - 1)
    sealer.adopt(ring())
    assert sealer.left == RESERVE


def test_a_ring_that_is_learnt_opens_more_and_seals_nothing() -> None:
    """Its reserve belongs to another node. Half of our own is given up, so that we soon reserve under the new key."""
    first, second = DataKey(1, Secret("11" * 32), 0.0), DataKey(2, Secret("22" * 32), 5.0)
    sealer, other = Sealer(ring(first)), Sealer(ring(first, second))
    assert [sealer.knows(term) for term in (1, 2)] == [True, False]
    sealer.learn(ring(first, second))
    assert sealer.open("name", other.seal("name", b"theirs", NONCE)) == b"theirs"
    assert (term_of(sealer.seal("name", b"ours", NONCE)), sealer.left) == (1, RESERVE // 2 - 1)
    sealer.learn(ring(first, second))
    assert sealer.left == RESERVE // 2 - 1


def test_a_ring_that_is_learnt_again_costs_no_reserve() -> None:
    sealer = Sealer(ring())
    sealer.learn(ring())
    assert sealer.left == RESERVE


def test_an_older_ring_that_comes_late_takes_no_key_away() -> None:
    first, second = DataKey(1, Secret("11" * 32), 0.0), DataKey(2, Secret("22" * 32), 5.0)
    sealer = Sealer(ring(first, second))
    sealed = sealer.seal("name", b"new", NONCE)
    sealer.adopt(ring(first))
    assert sealer.open("name", sealed) == b"new"
    assert term_of(sealer.seal("name", b"old", NONCE)) == 1


def test_seals_are_reserved_in_blocks() -> None:
    reserved = ring().with_reserve(9.0, b"\3" * 32)
    assert [(key.term, key.reserved) for key in reserved.data_keys] == [(1, RESERVE)]


def test_a_key_that_served_enough_is_followed_by_a_fresh_one() -> None:
    worn = ring(DataKey(1, Secret("11" * 32), 0.0, TURN_OVER))
    turned = worn.with_reserve(9.0, b"\3" * 32)
    assert turned.data_keys == (*worn.data_keys, DataKey(2, Secret("03" * 32), 9.0, RESERVE))
    assert turned.current.term == 2
    assert turned.token_keys == worn.token_keys


def test_no_key_seals_more_than_random_nonces_allow() -> None:
    """NIST SP 800-38D, 8.3: 2^32."""
    assert TURN_OVER + RESERVE < 2**32


@pytest.mark.parametrize("text", ["", "00", "zz" * 32, "00" * 31, "00" * 33])
def test_a_master_key_is_64_hexadecimal_digits(text: str) -> None:
    with pytest.raises(ValueError, match="the master key must ") as refusal:
        master_cipher(Secret(text))
    assert not text or text not in str(refusal.value)


def test_a_master_key_seals_under_its_own_term() -> None:
    cipher = master_cipher(Secret("ab" * 32))
    sealed = seal_with(cipher, 0, "ring", b"plain", NONCE)
    assert term_of(sealed) == 0
    assert open_with(cipher, "ring", sealed) == b"plain"


def test_a_ring_prints_no_key() -> None:
    printed = repr(ring())
    assert "c4n4ry" not in printed
    assert "1111" not in printed
