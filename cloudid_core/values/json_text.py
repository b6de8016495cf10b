"""JSON (RFC 8259) from outside, decoded with work that is limited by its length, whatever it contains.

A text has at most `MOST_VALUES` values, of which `MOST_CONTAINERS` are arrays and objects, nested `DEEPEST` times. A
number with a fraction or an exponent stays as it is written (`msgspec.Raw`) until its value is needed, because
computing it takes up to seven hundred times as long as reading it.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import Any, Final

import msgspec

MOST_VALUES: Final = 32_768
"""Maximum elements of arrays and members of objects, on all levels together. An empty container counts as one more."""

MOST_CONTAINERS: Final = 10_000
DEEPEST: Final = 32

_MOST_QUOTES: Final = 4 * MOST_VALUES
"""A member has two strings, its name and its value."""

_CONTAINERS: Final = frozenset({dict, list})
decode_own: Final = msgspec.json.Decoder(float_hook=msgspec.Raw).decode
"""Decode like `decode` without its limits, for JSON that this service has written."""


class TooComplex(ValueError):
    """A text has too many values, or is nested too deeply."""


def decode(text: bytes | str) -> Any:
    """Return the value of a JSON text: None, bool, int, str, list, dict, or a number as it is written.

    Of equal names the last wins. Raise `TooComplex`, or `ValueError` if it is not JSON.
    """
    raw = text if isinstance(text, bytes) else text.encode()
    if len(raw) > MOST_CONTAINERS and _has_too_many_values(raw):
        raise TooComplex("has too many values")
    try:
        value = decode_own(raw)
    except RecursionError:
        raise TooComplex("is nested too deeply") from None
    is_flat = raw.find(b"{", 1) < 0 and raw.find(b"[") < 0  # as that of a login is
    if not is_flat and is_deeper(value, DEEPEST):
        raise TooComplex("is nested too deeply")
    return value


def computed(value: object) -> object:
    """Return a value with its number as a float, if `decode` left it as it is written.

    Raise `ValueError` if it is infinite.
    """
    if not isinstance(value, msgspec.Raw):
        return value
    number = float(bytes(value))
    if math.isinf(number):
        raise ValueError("must be a number in the range of a double")
    return number


def _has_too_many_values(raw: bytes) -> bool:
    if not _are_too_many(raw):  # even with what is in strings
        return False
    pieces = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return pieces.count(b'"') > _MOST_QUOTES or _are_too_many(b"".join(pieces.split(b'"')[::2]))


def _are_too_many(raw: bytes) -> bool:
    """Return whether JSON may have too many values if none of it is in a string."""
    containers = raw.count(b"[") + raw.count(b"{")
    return containers > MOST_CONTAINERS or containers + raw.count(b",") > MOST_VALUES


def is_deeper(value: object, limit: int) -> bool:
    """Return whether containers are nested more than `limit` times."""
    level: list[Any] = [value] if type(value) in _CONTAINERS else []
    for _ in range(limit):
        elements = (each.values() if type(each) is dict else each for each in level)
        level = [item for item in chain.from_iterable(elements) if type(item) in _CONTAINERS]
        if not level:
            return False
    return bool(level)
