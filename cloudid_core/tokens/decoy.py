"""A decoy: the work that a token of the store costs, for a text that is none.

Whether a token's id is in the store must not show in the time of a refusal. A refusal for an id that is there opens the
entry, decodes it and compares a keyed hash; so one for an id that is not does the same with this entry. Its key is no
secret, and nothing that it seals is.
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
    """What reading a token does that is not remembered."""
    return decode(open_with(_CIPHER, _NAME, _SEALED), Token)


def open_and_compare(shown: str, term_keys: TokenKeys) -> bool:
    """What refusing a text does whose id is in the store: false."""
    return encoding.is_token(shown, open_record().mac, term_keys)
