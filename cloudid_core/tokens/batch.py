"""Batch tokens: `cb.` and the encrypted token itself. They are not stored.

The text is base64url of: the term of its key in the ring (1 byte) · salt (16 random bytes) · nonce (12 random bytes) ·
ciphertext and tag. Each token is sealed with its own key, derived from the ring's key with the salt, so that no number
of logins comes near the limit for random nonces (NIST SP 800-38D, 8.3).
"""

from __future__ import annotations

import hmac
from base64 import b64decode, urlsafe_b64encode
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..errors import Code, Refused
from ..store import NONCE_SIZE, Keyring, TokenKeys, decode, encode
from .encoding import BATCH_PREFIX
from .record import Token

SALT_SIZE: Final = 16
RANDOM_SIZE: Final = SALT_SIZE + NONCE_SIZE
TEXT_LIMIT: Final = 8192
"""Maximum characters. A longer text does not fit into the headers that common proxies accept."""
_PURPOSE: Final = b"batch token"


def seal(token: Token, keyring: Keyring, random: bytes) -> str:
    """Return the text of a batch token. Needs `RANDOM_SIZE` random bytes.

    Refuse if policies and metadata are too long.
    """
    salt, nonce = random[:SALT_SIZE], random[SALT_SIZE:]
    keys = keyring.token_keys_at(token.created_at)
    sealed = _cipher(keys, salt).encrypt(nonce, encode(token), _PURPOSE)
    text = BATCH_PREFIX + _encoded(bytes([keys.term]) + random + sealed)
    if len(text) > TEXT_LIMIT:
        raise Refused(Code.BATCH_TOKEN_UNSUPPORTED, "policies and metadata are too long")
    return text


def unseal(text: str, keyring: Keyring) -> Token | None:
    """Return the token with this text. `None` if none of the ring's keys has sealed it."""
    encoded = text.removeprefix(BATCH_PREFIX)
    if len(text) > TEXT_LIMIT or encoded == text:
        return None
    try:
        raw = b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
        if _encoded(raw) != encoded:  # padding, or bits that the decoder ignores: one token has one text
            return None
        salt, rest = raw[1 : 1 + SALT_SIZE], raw[1 + SALT_SIZE :]
        keys = keyring.token_keys_of(raw[0]) if raw else None
        if keys is None:
            return None
        plain = _cipher(keys, salt).decrypt(rest[:NONCE_SIZE], rest[NONCE_SIZE:], _PURPOSE)
        return decode(plain, Token)
    except (InvalidTag, ValueError, msgspec.DecodeError):
        return None


def _encoded(raw: bytes) -> str:
    """Return base64url without padding (RFC 4648 section 5)."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _cipher(keys: TokenKeys, salt: bytes) -> AESGCM:
    return AESGCM(hmac.digest(bytes.fromhex(keys.batch_key.reveal()), _PURPOSE + salt, "sha256"))
