"""RSA keys that follow from a text."""

from __future__ import annotations

from cloudid_core.testing.rsa_keys import BITS, private_key, private_key_pem


def test_the_same_text_gives_the_same_key_and_another_text_another() -> None:
    first, second = private_key("a"), private_key("b")
    assert first.private_numbers() != second.private_numbers()
    private_key.cache_clear()
    assert private_key("a").private_numbers() == first.private_numbers()
    assert first.key_size == BITS


def test_the_pem_is_not_encrypted() -> None:
    assert private_key_pem("a").startswith("-----BEGIN PRIVATE KEY-----")
