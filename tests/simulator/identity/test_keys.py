"""Signing keys: sound RSA keys, and tokens that another library accepts."""

from __future__ import annotations

import base64

import jwt
from cryptography import x509

from cloudid_servers.provider_simulator.identity.keys import signing_key


def test_a_key_is_2048_bits_and_found_again() -> None:
    key = signing_key(0, 0)
    assert key.private.key_size == 2048
    assert signing_key.__wrapped__(0, 0).kid == key.kid


def test_another_library_verifies_what_it_signs() -> None:
    key = signing_key(0, 0)
    token = key.sign({"aud": "a", "sub": "b"})
    header = jwt.get_unverified_header(token)
    assert header == {"typ": "JWT", "alg": "RS256", "kid": key.kid, "x5t": key.kid}
    assert jwt.PyJWK(key.jwk()).key.public_numbers() == key.private.public_key().public_numbers()
    assert jwt.PyJWS().decode(token, jwt.PyJWK(key.jwk()), algorithms=["RS256"]) == b'{"aud":"a","sub":"b"}'


def test_the_certificate_is_of_the_key() -> None:
    key = signing_key(0, 0)
    certificate = x509.load_der_x509_certificate(base64.b64decode(key.jwk()["x5c"][0]))
    assert certificate.public_key() == key.private.public_key()
