"""The form of a token: `cs.`, a time-ordered id of 32 hexadecimal digits, and a secret part of 32 characters.

The store has a token under its id, with a keyed hash of the whole text, and never the text itself. The accessor is the
id encrypted with a one-block cipher. So it needs no index, and cannot be computed from the token without the ring.
"""

from __future__ import annotations

import hmac
from binascii import b2a_base64
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ..effects import Instant, Now, RandomBytes
from ..store import TokenKeys

SERVICE_PREFIX: Final = "cs."
BATCH_PREFIX: Final = "cb."
ID_LENGTH: Final = 32
SECRET_LENGTH: Final = 32
LENGTH: Final = len(SERVICE_PREFIX) + ID_LENGTH + SECRET_LENGTH
CUSTOM_LIMIT: Final = 128
_TIME_BYTES: Final = 6
_ID_BYTES: Final = 16
ID_RANDOM_SIZE: Final = _ID_BYTES - _TIME_BYTES
_SECRET_BYTES: Final = 24
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
"""Converts base64 to base64url (RFC 4648 section 5). 24 bytes need no padding."""
RANDOM_SIZE: Final = ID_RANDOM_SIZE + _SECRET_BYTES


class NewToken(msgspec.Struct, frozen=True):
    """A token that was just generated."""

    id: str
    text: str

    def __repr__(self) -> str:
        return f"<NewToken {self.id}>"


def time_ordered_id(now: Instant, random: bytes) -> str:
    """Return an id that sorts by its time: 48 bits of milliseconds, then ten random bytes."""
    return (int(now * 1000).to_bytes(_TIME_BYTES) + random).hex()


def id_time(instant: Instant) -> str:
    """Return the prefix of ids at an instant, which sorts before them and after all earlier ids."""
    return int(instant * 1000).to_bytes(_TIME_BYTES).hex()


def new_token(now: Instant, random: bytes) -> NewToken:
    """Return a token that cannot be guessed. Needs `RANDOM_SIZE` random bytes."""
    token_id = time_ordered_id(now, random[:ID_RANDOM_SIZE])
    secret = b2a_base64(random[ID_RANDOM_SIZE:RANDOM_SIZE], newline=False).translate(_URL_SAFE).decode()
    return NewToken(token_id, f"{SERVICE_PREFIX}{token_id}{secret}")


async def new_id() -> str:
    """Return a time-ordered id for any use."""
    return time_ordered_id(await Now(), await RandomBytes(ID_RANDOM_SIZE))


def custom_token(chosen: str, keys: TokenKeys) -> NewToken:
    """Return a token with a chosen text.

    Raise `ValueError` if the text cannot be a token, or looks like a generated one.
    """
    token_id = id_of(chosen, keys)
    if token_id is None or "." in chosen:
        raise ValueError(f"must be 1 to {CUSTOM_LIMIT} visible ASCII characters without a dot")
    return NewToken(token_id, chosen)


def id_of(text: str, keys: TokenKeys) -> str | None:
    """Return the id of a service token: the one in it, or one derived from the keyed hash of a chosen text.

    `None` if the text cannot be a token at all.
    """
    is_custom = 0 < len(text) <= CUSTOM_LIMIT and text.isascii() and text.isprintable() and " " not in text
    return carried_id(text) or (mac_of(text, keys)[:ID_LENGTH] if is_custom else None)


def carried_id(text: str) -> str | None:
    """Return the id in the text of a generated token. `None` if it has another form."""
    if len(text) == LENGTH and text.startswith(SERVICE_PREFIX):
        token_id = text[len(SERVICE_PREFIX) : len(SERVICE_PREFIX) + ID_LENGTH]
        if is_id(token_id):
            return token_id
    return None


def ids_of(text: str, terms: Sequence[TokenKeys]) -> Iterable[str]:
    """Return every id that a service token with this text can have, the one of the newest term first."""
    carried = carried_id(text)
    if carried:
        return (carried,)
    return dict.fromkeys(token_id for keys in reversed(terms) if (token_id := id_of(text, keys)))


def is_id(text: str) -> bool:
    """Return whether a text has the form of an id. Only such a text may become part of a key."""
    return len(text) == ID_LENGTH and not text.strip("0123456789abcdef")


def mac_of(text: str, keys: TokenKeys) -> str:
    """Return the keyed hash by which a token is recognised: 64 hexadecimal digits."""
    return keys.token_hash.hexadecimal(text)


def is_token(text: str, mac: str, keys: TokenKeys) -> bool:
    """Return whether a text is the token with this keyed hash, in constant time."""
    return hmac.compare_digest(mac_of(text, keys), mac)


def accessor_of(token_id: str, keys: TokenKeys) -> str:
    return keys.accessor_cipher.hide(bytes.fromhex(token_id)).hex()


def id_of_accessor(accessor: str, keys: TokenKeys) -> str | None:
    """Return the token id behind an accessor. `None` if the text cannot be an accessor."""
    if not is_id(accessor):
        return None
    return keys.accessor_cipher.show(bytes.fromhex(accessor)).hex()
