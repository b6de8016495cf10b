"""The text of tokens: ids, secrets, accessors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.context.keyring import KEYRING_BYTES, make_keyring
from cloudid_core.tokens import encoding

RING = make_keyring(0.0, bytes(range(256))[:KEYRING_BYTES]).token_keys[0]
OTHER_RING = make_keyring(0.0, bytes(KEYRING_BYTES)).token_keys[0]
IDS = st.binary(min_size=10, max_size=10).flatmap(
    lambda random: st.floats(0, 2**37).map(lambda now: encoding.time_ordered_id(now, random))
)


def test_a_new_token_carries_its_id() -> None:
    fresh = encoding.new_token(1_700_000_000.0, bytes(encoding.RANDOM_SIZE))
    assert len(fresh.text) == encoding.LENGTH
    assert fresh.text.startswith("cs.")
    assert encoding.id_of(fresh.text, RING) == fresh.id
    assert fresh.text not in repr(fresh)


def test_a_chosen_text_that_contains_a_token_does_not_have_its_id() -> None:
    fresh = encoding.new_token(1_700_000_000.0, bytes(encoding.RANDOM_SIZE))
    for text in (f"{fresh.text}x", f"xx.{fresh.text[3:]}"):
        assert encoding.id_of(text, RING) not in (fresh.id, None)


def test_no_two_new_tokens_are_alike() -> None:
    """Every random byte counts."""
    randoms = [bytes(at) + b"\1" + bytes(encoding.RANDOM_SIZE - at - 1) for at in range(encoding.RANDOM_SIZE)]
    assert len({encoding.new_token(1.0, random).text for random in randoms}) == encoding.RANDOM_SIZE


@given(st.floats(0, 2**37), st.floats(0, 2**37))
def test_ids_sort_by_the_time_of_their_making(first: float, second: float) -> None:
    ids = [encoding.time_ordered_id(at, bytes(10)) for at in (first, second)]
    milliseconds = [int(at * 1000) for at in (first, second)]
    assert (ids[0] < ids[1]) == (milliseconds[0] < milliseconds[1])


@given(st.integers(1, 2**40), st.integers(0, 2**40))
def test_the_time_of_an_id_stands_before_it_and_after_all_earlier_ones(milliseconds: int, earlier: int) -> None:
    at = (milliseconds + 0.5) / 1000
    before = (min(earlier, milliseconds - 1) + 0.5) / 1000
    latest_before = encoding.time_ordered_id(before, bytes([255]) * encoding.ID_RANDOM_SIZE)
    assert latest_before < encoding.id_time(at) < encoding.time_ordered_id(at, bytes(encoding.ID_RANDOM_SIZE))


@given(st.floats(0, 2**37), st.binary(min_size=10, max_size=10))
def test_an_id_is_its_milliseconds_in_twelve_digits_and_its_random_bytes(at: float, random: bytes) -> None:
    assert encoding.time_ordered_id(at, random) == f"{int(at * 1000):012x}{random.hex()}"


@given(IDS)
def test_an_accessor_gives_the_id_of_its_token_only_with_the_key_ring(token_id: str) -> None:
    """A permutation of ids: no index is needed, and a token does not reveal its accessor."""
    accessor = encoding.accessor_of(token_id, RING)
    assert encoding.is_id(accessor)
    assert accessor != token_id
    assert encoding.id_of_accessor(accessor, RING) == token_id
    assert encoding.id_of_accessor(accessor, OTHER_RING) != token_id


@pytest.mark.parametrize("accessor", ["", "x", "z" * 26, "0" * 25, "0" * 27, "A" * 26, "0" * 25 + "/"])
def test_a_text_that_is_no_accessor_gives_no_id(accessor: str) -> None:
    assert encoding.id_of_accessor(accessor, RING) is None


def test_the_id_of_a_chosen_text_does_not_contain_it() -> None:
    fresh = encoding.custom_token("my-token", RING)
    assert encoding.is_id(fresh.id)
    assert fresh.id == encoding.id_of("my-token", RING) != encoding.id_of("my-token", OTHER_RING)


@pytest.mark.parametrize("chosen", ["", "a b", "a.b", "cs.x", "tab\t", "ü", "x" * 129])
def test_a_chosen_text_with_other_than_visible_ascii_is_refused(chosen: str) -> None:
    with pytest.raises(ValueError, match="visible ASCII"):
        encoding.custom_token(chosen, RING)


@pytest.mark.parametrize("chosen", ["x", "x" * 128])
def test_a_chosen_text_has_one_to_128_characters(chosen: str) -> None:
    assert encoding.custom_token(chosen, RING).id == encoding.id_of(chosen, RING)


@pytest.mark.parametrize("shown", ["", "a b", "\n", "x" * 129, "ü"])
def test_a_text_that_is_no_token_has_no_id(shown: str) -> None:
    assert encoding.id_of(shown, RING) is None


@given(st.text(max_size=140))
def test_every_id_may_become_part_of_a_key(shown: str) -> None:
    token_id = encoding.id_of(shown, RING)
    assert token_id is None or encoding.is_id(token_id)


def test_a_token_is_recognised_by_its_keyed_hash() -> None:
    mac = encoding.mac_of("cs.secret", RING)
    assert encoding.is_token("cs.secret", mac, RING)
    assert not encoding.is_token("cs.secreT", mac, RING)
    assert not encoding.is_token("cs.secret", mac, OTHER_RING)
    assert not encoding.is_token("cs.secret", "", RING)


def test_a_token_has_one_possible_id_for_each_term_unless_it_carries_its_id() -> None:
    fresh = encoding.new_token(1.0, bytes(encoding.RANDOM_SIZE))
    assert list(encoding.ids_of(fresh.text, (RING, OTHER_RING))) == [fresh.id]
    chosen = [encoding.id_of("my-token", each) for each in (OTHER_RING, RING)]
    assert list(encoding.ids_of("my-token", (RING, OTHER_RING))) == chosen
    assert list(encoding.ids_of("not a token", (RING, OTHER_RING))) == []
