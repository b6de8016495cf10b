"""Entries for a device that bounds them: all members but lists and long texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

LONGEST_TEXT: Final = 256
"""Most characters of a text in an entry that is shortened."""

ALWAYS: Final = ("id", "operation")
"""What is left of a request in the shortest entry."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def shortened(text: bytes, limit: int) -> bytes:
    """An entry of at most so many bytes, which has `truncated` where something was left out.

    First lists and long texts go, then objects whose members the request names, as its data and headers, and at last
    all but the request's id. The shortest entry has some 500 bytes.
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
    """An object without lists, long texts, and objects that are deeper in it than that."""
    kept: dict[str, Any] = {}
    for name, value in members.items():
        if isinstance(value, Mapping):
            if depth:
                kept[name] = _without_lists(value, depth - 1)
        elif not isinstance(value, list) and not (isinstance(value, str) and len(value) > LONGEST_TEXT):
            kept[name] = value
    return kept
