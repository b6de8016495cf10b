"""UUIDs, made of random bytes that somebody else has drawn."""

from __future__ import annotations


def uuid_text(random: bytes) -> str:
    """Sixteen random bytes as the text of a version 4 UUID (RFC 9562)."""
    digits = random.hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
