"""GUIDs, also called UUIDs: 32 hexadecimal digits in groups of 8-4-4-4-12 (RFC 9562 section 4), without braces."""

from __future__ import annotations

import re
from typing import Final

GUID: Final = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")


def guid(raw: object) -> str:
    """Return a GUID in lower case."""
    if not isinstance(raw, str) or not GUID.fullmatch(raw):
        raise ValueError("must be a GUID")
    return raw.lower()


def guid_as_written(raw: object) -> str:
    """Return a GUID in its original case."""
    guid(raw)
    return str(raw)


def uuid_text(random: bytes) -> str:
    """Return the text of a version 4 UUID (RFC 9562 section 5.4) from sixteen random bytes."""
    digits = random.hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
