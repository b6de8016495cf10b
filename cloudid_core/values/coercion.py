"""Weak scalars: a text, number or boolean of a client, read as the type of a field.

Numbers may be as `json_text` leaves them. Error texts are predicates ("must be …"), before which the caller puts the
name of the field.
"""

from __future__ import annotations

import re
from typing import Final

from .json_text import computed

_LARGEST_INTEGER: Final = 2**63 - 1
_LONGEST_INTEGER_TEXT: Final = 128
_INTEGER: Final = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<hexadecimal>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)"
    r"|(?P<decimal>0|[1-9][0-9]*))"
)
_BASES: Final = {"hexadecimal": 16, "binary": 2, "octal": 8, "decimal": 10}
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("", "0", "f", "F", "false", "FALSE", "False"), False),
}


def text(raw: object) -> str:
    """Return a text as it is, a number as its text, a boolean as "1" or "0", null as "". Nothing is trimmed."""
    if isinstance(raw, str):  # most are, and this takes half as long as a pattern
        return raw
    raw = computed(raw)
    match raw:
        case bool():
            return str(int(raw))
        case int() | float():
            return str(raw)
        case None:
            return ""
    raise ValueError("must be a string")


def integer(raw: object) -> int:
    """Return an integer of 64 bits, or the integer in a text (a leading `0x`, `0b`, `0o` or `0` is its base).

    Null and "" are 0; a boolean is 0 or 1.
    """
    raw = computed(raw)
    match raw:
        case None | "":
            return 0
        case str() if len(raw) <= _LONGEST_INTEGER_TEXT and (found := _INTEGER.fullmatch(raw)) and found.lastgroup:
            number = int(found["sign"] + found[found.lastgroup], _BASES[found.lastgroup])
        case int():
            number = int(raw)
        case float() if raw.is_integer():
            number = int(raw)
        case _:
            raise ValueError("must be an integer")
    if not -_LARGEST_INTEGER - 1 <= number <= _LARGEST_INTEGER:
        raise ValueError("must be an integer of at most 64 bits")
    return number


def boolean(raw: object) -> bool:
    """Return a boolean, a number (0 is false), or one of the texts "1", "t", "true", "0", "f", "false" as a boolean.

    Null and "" are false.
    """
    raw = computed(raw)
    match raw:
        case None:
            return False
        case int() | float():
            return bool(raw)
        case str() if raw in _BOOLEANS:
            return _BOOLEANS[raw]
    raise ValueError("must be true or false")
