"""Texts that are not shown: a secret, which does not print itself, and tokens where they do not belong."""

from __future__ import annotations

import hmac
import re
from typing import Final


class Secret:
    """A secret text: its repr, str and format are masked; comparison takes constant time.

    It is not hashable, so that it never becomes the key of a cache or a dictionary.
    """

    __slots__ = ("_text",)
    __hash__ = None  # type: ignore[assignment]  # unhashable on purpose
    MASK: Final = "********"

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself. Review every call of this method."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __repr__(self) -> str:
        return "Secret(********)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return self.MASK


def flaw_of_secret(text: str) -> str:
    """What a client secret of Azure cannot have, usually because it was copied from a file; empty: nothing."""
    if any(letter < " " or "\x7f" <= letter < "\xa0" for letter in text):
        return "has a control character, such as a line break at its end"
    return "begins or ends with white space" if text != text.strip() else ""


_TOKEN: Final = re.compile(r"(?<![\w.-])(?:c[sb]\.|eyJ)[\w.-]{20,}", re.ASCII)
"""What looks like a token of this service, or like a JSON web token."""


def without_tokens(path: str) -> str:
    """The path of a request for logs. What looks like a token in it is masked: some clients put one there."""
    return _TOKEN.sub(Secret.MASK, path)
