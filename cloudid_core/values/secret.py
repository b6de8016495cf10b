"""Texts that are not shown: secrets, which do not print themselves, and tokens in unexpected places."""

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
        """Return the text itself. Review every call of this method."""
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
    """Return what is wrong with the form of an Azure client secret, usually from copying it from a file.

    Empty: nothing.
    """
    if any(letter < " " or "\x7f" <= letter < "\xa0" for letter in text):
        return "has a control character, such as a line break at its end"
    return "begins or ends with white space" if text != text.strip() else ""


_TOKEN: Final = re.compile(r"(?<![\w.-])(?:c[sb]\.|eyJ)[\w.-]{20,}", re.ASCII)
"""What looks like a token of this service, or like a JSON Web Token."""


def without_tokens(path: str) -> str:
    """Return the path of a request for logs.

    Anything that looks like a token is masked, because some clients put one there.
    """
    return _TOKEN.sub(Secret.MASK, path)
