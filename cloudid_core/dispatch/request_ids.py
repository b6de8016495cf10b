"""Ids of requests: version 4 UUIDs that cannot be guessed, and that do not tell how many requests there were.

They are a counter under a block cipher (the key stream of counter mode, NIST SP 800-38A section 6.5), whose key is
drawn when the service is opened: random bytes for each request would cost a twentieth of the smallest one.
"""

from __future__ import annotations

from itertools import count
from typing import Final

from ..store import BlockCipher
from ..values import Secret, uuid_text

KEY_SIZE: Final = 32
_BLOCK: Final = 16


class RequestIds:
    """The ids of one service, made of `KEY_SIZE` random bytes."""

    def __init__(self, random: bytes) -> None:
        self._hide = BlockCipher(Secret(random.hex())).hide
        self._numbers = count()

    def next(self) -> str:
        """A new id."""
        return uuid_text(self._hide(next(self._numbers).to_bytes(_BLOCK, "big")))
