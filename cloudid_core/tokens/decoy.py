"""A decoy: do the work of checking a stored token for a text that is not a token.

The time of a refusal must not reveal whether a token's id is in the store. A refusal for an existing id decrypts the
entry, decodes it and compares a keyed hash, so a refusal for an unknown id does the same with this entry. Its key and
its content are not secret.
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..policies import DEFAULT
from ..store import KEY_SIZE, NONCE_SIZE, TokenKeys, decode, encode, open_with, seal_with
from . import encoding
from .record import Token

_NAME: Final = "decoy"
_CIPHER: Final = AESGCM(bytes(KEY_SIZE))
_MAC: Final = "0" * 64
_TOKEN: Final = Token(
    id="0" * encoding.ID_LENGTH,
    mac=_MAC,
    path="auth/cloud/login",
    mount_id="0" * 16,
    policies=(DEFAULT,),
    display_name="cloud-00000000-0000-0000-0000-000000000000",
    created_at=0.0,
    ttl=3600,
    expires_at=3600.0,
    metadata={"role": "web"},
)
_SEALED: Final = seal_with(_CIPHER, 1, _NAME, encode(_TOKEN), bytes(NONCE_SIZE))


def open_record() -> Token:
    """Do the part of reading a token that is not cached."""
    return decode(open_with(_CIPHER, _NAME, _SEALED), Token)


def open_and_compare(shown: str, term_keys: TokenKeys) -> bool:
    """Do the same work as refusing a text whose id is in the store. Return false."""
    return encoding.is_token(shown, open_record().mac, term_keys)
