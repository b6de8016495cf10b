"""Shortened entries for devices with a maximum length: lists and long texts are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

LONGEST_TEXT: Final = 256
"""Maximum characters of a text in a shortened entry."""

ALWAYS: Final = ("id", "operation")
"""The members of a request that the shortest entry keeps."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def shortened(text: bytes, limit: int) -> bytes:
    """Return an entry of at most this many bytes. It contains `truncated` where something was left out.

    First, lists and long texts are left out, then objects whose members the request names, such as its data and
    headers, and finally everything except the request's id. The shortest entry has about 500 bytes.
    """
    if len(text) <= limit:
        return text
    entry = _decode(text)
    request = entry.get("request", {})
    least = {"type": entry.get("type"), "request": {name: request[name] for name in ALWAYS if name in request}}
    for shorter in (_without_lists(entry, 4), _without_lists(entry, 1), _without_lists(least, 1)):
        made = _encode({**shorter, "truncated": True})
        if len(made) <= limit:
            break
    return made


def _without_lists(members: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Return an object without lists, long texts and objects below this depth."""
    kept: dict[str, Any] = {}
    for name, value in members.items():
        if isinstance(value, Mapping):
            if depth:
                kept[name] = _without_lists(value, depth - 1)
        elif not isinstance(value, list) and not (isinstance(value, str) and len(value) > LONGEST_TEXT):
            kept[name] = value
    return kept
