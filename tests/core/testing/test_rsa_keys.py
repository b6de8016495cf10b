"""RSA keys that follow from a text."""

from __future__ import annotations

import pytest

from cloudid_core.testing.rsa_keys import BITS, FIRST_PRIMES, first_primes, private_key, private_key_pem

QUICKLY_FOUND = min(FIRST_PRIMES, key=lambda text: sum(FIRST_PRIMES[text]))


def test_the_same_text_gives_the_same_key_and_another_text_another() -> None:
    first, second = (private_key(f"key {number} of a world") for number in range(2))
    assert first.private_numbers() != second.private_numbers()
    private_key.cache_clear()
    assert private_key("key 0 of a world").private_numbers() == first.private_numbers()


@pytest.mark.parametrize("text", [*FIRST_PRIMES, "a text whose primes nobody has looked for"])
def test_every_text_has_a_key(text: str) -> None:
    """What is taken for a prime, and is none, gives an error."""
    assert private_key(text).key_size == BITS


def test_primes_that_are_known_are_those_that_a_search_finds() -> None:
    assert first_primes(QUICKLY_FOUND) == FIRST_PRIMES[QUICKLY_FOUND]


def test_the_pem_is_not_encrypted() -> None:
    assert private_key_pem("key 0 of a world").startswith("-----BEGIN PRIVATE KEY-----")
