"""HTTP rules for every server and adapter: how to join repeated headers, and which responses have no body."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NO_CONTENT: Final = frozenset({204, 205, 304})
"""Statuses of responses without a body."""

NO_LENGTH: Final = frozenset({204, 304})
"""Statuses of responses without `content-length`. 205 has a `content-length` of 0."""


def joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers with lowercase names. Headers with the same name are joined (RFC 9110, section 5.3)."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return {name: ", ".join(lines) for name, lines in values.items()}
