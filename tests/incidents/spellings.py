"""Secrets as they may stand in a file: plain, escaped, or encoded."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus


def spellings(secret: str) -> Iterator[bytes]:
    """All ways to write a secret."""
    data = secret.encode()
    yield data
    yield json.dumps(secret)[1:-1].encode()
    yield json.dumps(secret, ensure_ascii=False)[1:-1].encode()
    yield repr(secret)[1:-1].encode()
    yield from (quoted.encode() for quoted in (quote(secret), quote(secret, safe=""), quote_plus(secret)))
    yield from (data.hex().encode(), data.hex().upper().encode())
    for before in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            # The letters at both ends depend on what stands beside the secret.
            encoded = encode(bytes(before) + data).rstrip(b"=")
            yield encoded[before + bool(before) : -1]


def told(secrets: Iterable[str], text: bytes) -> list[str]:
    """Those of the secrets that a text has in any spelling."""
    return [secret for secret in secrets if any(spelling in text for spelling in spellings(secret))]
