"""Case folding in which only the two cases of one letter are equal."""

from __future__ import annotations

import re
from typing import Final

_LETTERS: Final = (
    "\u0130\u01c5\u01c8\u01cb\u01f2\u03f4\u1e9e\u1f88-\u1f8f\u1f98-\u1f9f\u1fa8-\u1faf"
    "\u1fbc\u1fcc\u1ffc\u2126\u212a\u212b"
)
"""The letters that `str.lower` maps to another letter of which they are not the upper case."""
_APART: Final = re.compile(f"([{_LETTERS}]+)")
_CAPITAL_SIGMA: Final = "\N{GREEK CAPITAL LETTER SIGMA}"
_SMALL_SIGMA: Final = "\N{GREEK SMALL LETTER SIGMA}"


def fold(text: str) -> str:
    """Return the text in lower case, for comparisons.

    `str.casefold` equates more than Azure does ("ß" with "ss", the Kelvin sign with "k"), so two resource groups would
    become one. Here, a letter folds only to a lower-case letter whose upper case it is.
    """
    if text.isascii():
        return text.lower()
    text = text.replace(_CAPITAL_SIGMA, _SMALL_SIGMA)  # `str.lower` has another one for the end of a word
    pieces = _APART.split(text)
    pieces[::2] = map(str.lower, pieces[::2])
    return "".join(pieces)


def folds_to(text: str, folded: str) -> bool:
    """Return whether `folded` is the text in lower case. Most texts already are."""
    return text == folded or fold(text) == folded


def fold_location(raw: object) -> str:
    """Return an Azure location (region) for comparisons: in lower case, without spaces.

    "West US 2" and "westus2" are the same location. Raise `ValueError` for anything but a text.
    """
    if not isinstance(raw, str):
        raise ValueError("must be a location")
    return "".join(fold(raw).split())
