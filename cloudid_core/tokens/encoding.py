"""What a token looks like: `cs.`, a time-ordered id of 32 hexadecimal digits, a secret part of 32 characters.

The store keeps a token under its id, with a keyed hash of the whole text; the text itself is nowhere. The accessor is
the id under a one-block cipher, so it needs no index and cannot be computed from the token without the ring.
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
"""Base64url (RFC 4648 section 5) from base64; 24 bytes need no padding."""
RANDOM_SIZE: Final = ID_RANDOM_SIZE + _SECRET_BYTES


class NewToken(msgspec.Struct, frozen=True):
    """A token that was just made up."""

    id: str
    text: str

    def __repr__(self) -> str:
        return f"<NewToken {self.id}>"


def time_ordered_id(now: Instant, random: bytes) -> str:
    """An id that sorts by its time of making: 48 bits of milliseconds, then ten random bytes."""
    return (int(now * 1000).to_bytes(_TIME_BYTES) + random).hex()


def id_time(instant: Instant) -> str:
    """The start of the ids that are made at an instant; it sorts before them, and after all that were made earlier."""
    return int(instant * 1000).to_bytes(_TIME_BYTES).hex()


def new_token(now: Instant, random: bytes) -> NewToken:
    """A token that cannot be guessed; takes `RANDOM_SIZE` random bytes."""
    token_id = time_ordered_id(now, random[:ID_RANDOM_SIZE])
    secret = b2a_base64(random[ID_RANDOM_SIZE:RANDOM_SIZE], newline=False).translate(_URL_SAFE).decode()
    return NewToken(token_id, f"{SERVICE_PREFIX}{token_id}{secret}")


async def new_id() -> str:
    """A time-ordered id for whatever needs one."""
    return time_ordered_id(await Now(), await RandomBytes(ID_RANDOM_SIZE))


def custom_token(chosen: str, keys: TokenKeys) -> NewToken:
    """A token with a chosen text; `ValueError` when the text cannot be a token, or looks like one that we made."""
    token_id = id_of(chosen, keys)
    if token_id is None or "." in chosen:
        raise ValueError(f"must be 1 to {CUSTOM_LIMIT} visible ASCII characters without a dot")
    return NewToken(token_id, chosen)


def id_of(text: str, keys: TokenKeys) -> str | None:
    """The id of a service token: the one that it carries, or one made from the keyed hash of a text of another form.

    `None` when the text cannot be a token at all.
    """
    is_custom = 0 < len(text) <= CUSTOM_LIMIT and text.isascii() and text.isprintable() and " " not in text
    return carried_id(text) or (mac_of(text, keys)[:ID_LENGTH] if is_custom else None)


def carried_id(text: str) -> str | None:
    """The id in the text of a token that we made up; `None` when it has another form."""
    if len(text) == LENGTH and text.startswith(SERVICE_PREFIX):
        token_id = text[len(SERVICE_PREFIX) : len(SERVICE_PREFIX) + ID_LENGTH]
        if is_id(token_id):
            return token_id
    return None


def ids_of(text: str, terms: Sequence[TokenKeys]) -> Iterable[str]:
    """Every id that a service token with this text can have, the one of the newest term first."""
    carried = carried_id(text)
    if carried:
        return (carried,)
    return dict.fromkeys(token_id for keys in reversed(terms) if (token_id := id_of(text, keys)))


def is_id(text: str) -> bool:
    """Whether a text has the form of an id; only such a text may become part of a key."""
    return len(text) == ID_LENGTH and not text.strip("0123456789abcdef")


def mac_of(text: str, keys: TokenKeys) -> str:
    """The keyed hash under which a token is recognised: 64 hexadecimal digits."""
    return keys.token_hash.hexadecimal(text)


def is_token(text: str, mac: str, keys: TokenKeys) -> bool:
    """Whether a text is the token with this keyed hash; takes the same time either way."""
    return hmac.compare_digest(mac_of(text, keys), mac)


def accessor_of(token_id: str, keys: TokenKeys) -> str:
    return keys.accessor_cipher.hide(bytes.fromhex(token_id)).hex()


def id_of_accessor(accessor: str, keys: TokenKeys) -> str | None:
    """The token id behind an accessor; `None` when the text cannot be an accessor."""
    if not is_id(accessor):
        return None
    return keys.accessor_cipher.show(bytes.fromhex(accessor)).hex()
