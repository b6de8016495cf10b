"""Randomness that the same seed repeats."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections import Counter
from uuid import UUID


class Randomness:
    """All ids and secrets: derived from the seed, a label, and how often that label was used."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._uses: Counter[str] = Counter()

    def bytes(self, label: str, size: int) -> bytes:
        self._uses[label] += 1
        return hashlib.shake_256(f"{self._seed} {self._uses[label]} {label}".encode()).digest(size)

    def guid(self, label: str) -> str:
        """A random UUID (RFC 9562, version 4)."""
        return str(UUID(bytes=self.bytes(label, 16), version=4))

    def text(self, label: str, length: int = 40) -> str:
        """Letters, digits, `-` and `_`."""
        return urlsafe_b64encode(self.bytes(label, length)).decode()[:length]
