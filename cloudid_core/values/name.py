"""Names of roles, policies and the like: case-insensitive, kept in lower case."""

from __future__ import annotations

import re
from typing import Final

NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_])?")


def name(raw: object) -> str:
    """A name in lower case: 1 to 128 ASCII letters, digits and `_`, with `-` and `.` inside."""
    if not isinstance(raw, str) or not NAME.fullmatch(raw):
        raise ValueError("must be 1 to 128 letters, digits and underscores, with hyphens and dots inside only")
    return raw.lower()
