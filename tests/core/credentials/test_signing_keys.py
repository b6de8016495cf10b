"""Which key signs when, and which keys are published."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from cloudid_core.credentials.signing_keys import (
    CLOCK_SKEW,
    LONGEST_MAX_AGE,
    LONGEST_TOKEN,
    SigningKeys,
    first_keys,
    max_age,
)
from cloudid_core.store.records import decode, encode
from cloudid_core.testing.rsa_keys import private_key_pem
from cloudid_core.values.secret import Secret

START: Final = 1_800_000_000.0
PERIOD: Final = 3600
FIRST, SECOND, THIRD = (Secret(private_key_pem(f"key {number} of a world")) for number in range(3))


def rolled(times: int = 2) -> SigningKeys:
    """Keys that were followed so often, each time when that was due."""
    made = first_keys(FIRST, START, PERIOD)
    for number in range(times):
        made = made.with_next((SECOND, THIRD)[number % 2], made.due_at, PERIOD)
    return made


def signing(keys: SigningKeys, now: float, place: str = "") -> Secret | None:
    key = keys.signing_at(now, place)
    return key.private if key else None


def test_the_first_key_signs_at_once() -> None:
    made = first_keys(FIRST, START, PERIOD)
    assert signing(made, START) == FIRST
    assert made.due_at == START + PERIOD


def test_a_key_is_published_one_period_before_it_signs() -> None:
    made = rolled(1)
    assert [key.private for key in made.keys] == [FIRST, SECOND]
    assert made.keys[1].signs_from == START + 2 * PERIOD
    assert signing(made, START + 2 * PERIOD - 1) == FIRST
    assert signing(made, START + 2 * PERIOD) == SECOND
    assert made.due_at == START + 2 * PERIOD


def test_a_clock_that_was_set_back_signs_with_the_key_that_is_known_longest() -> None:
    assert signing(rolled(), 0.0) == FIRST


def test_a_key_is_kept_until_its_last_token_has_expired() -> None:
    made = rolled()
    end = made.keys[1].signs_from + LONGEST_TOKEN + CLOCK_SKEW
    assert made.without_expired(end - 1) == made
    assert made.without_expired(end).keys == made.keys[1:]


def test_the_last_key_is_never_dropped() -> None:
    assert [key.private for key in rolled().without_expired(START * 2).keys] == [THIRD]


def test_the_same_key_at_another_time_has_another_name() -> None:
    assert first_keys(FIRST, START, PERIOD).keys[0].kid != first_keys(FIRST, START + 1, PERIOD).keys[0].kid


def test_only_the_public_half_is_published() -> None:
    (key,) = first_keys(FIRST, START, PERIOD).keys
    jwk = key.jwk
    assert set(jwk) == {"use", "kty", "kid", "alg", "n", "e"}
    n, e = (int.from_bytes(urlsafe_b64decode(jwk[name] + "==")) for name in ("n", "e"))
    assert key.loaded.public_key().public_numbers() == RSAPublicNumbers(e, n)


def test_keys_read_back_from_the_store_and_print_no_secret() -> None:
    made = rolled()
    assert decode(encode(made), SigningKeys) == made
    assert "PRIVATE" not in repr(made)


@pytest.mark.parametrize("period, age", [(10, 5), (86_400, LONGEST_MAX_AGE), (3600, 1800)])
def test_documents_are_kept_for_half_a_period_at_most(period: int, age: int) -> None:
    assert max_age(period) == age


def test_where_documents_are_published_no_key_signs_before_it_is_there() -> None:
    made = first_keys(FIRST, START, PERIOD)
    assert signing(made, START, "there") is None
    there = made.published("there", START + 5, PERIOD)
    assert signing(there, START + 5, "there") == FIRST
    assert signing(there, START + 5, "elsewhere") is None
    late = START + 10 * PERIOD
    followed = there.with_next(SECOND, START, PERIOD)
    assert signing(followed, late, "there") == FIRST
    known = followed.published("there", late, PERIOD)
    assert signing(known, late + max_age(PERIOD) - 1, "there") == FIRST
    assert signing(known, late + max_age(PERIOD), "there") == SECOND


def test_a_key_is_kept_while_nobody_has_the_next_one() -> None:
    made = first_keys(FIRST, START, PERIOD).published("there", START, PERIOD).with_next(SECOND, START, PERIOD)
    late = START + LONGEST_TOKEN * 10
    assert made.without_expired(late, "there") == made
    known = made.published("there", late, PERIOD)
    end = late + max_age(PERIOD) + LONGEST_TOKEN + CLOCK_SKEW
    assert known.without_expired(end - 1, "there") == known
    assert [key.private for key in known.without_expired(end, "there").keys] == [SECOND]
