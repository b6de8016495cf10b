"""Rules of HTTP that every server and adapter needs: header lines of one name, and answers without a body."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NO_CONTENT: Final = frozenset({204, 205, 304})
"""Statuses whose answers have no body."""

NO_LENGTH: Final = frozenset({204, 304})
"""Statuses whose answers do not say how long their body is: 205 says 0."""


def joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return header names in lower case; several lines of one name become one (RFC 9110, section 5.3)."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return {name: ", ".join(lines) for name, lines in values.items()}
