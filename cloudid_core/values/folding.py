"""Case folding that only unites the two cases of one letter."""

from __future__ import annotations


def fold(text: str) -> str:
    """The text in lower case, for comparison.

    `str.casefold` unites more than the cloud provider does ("ß" with "ss", the Kelvin sign with "k"): two resource
    groups would become one. Here a letter folds only to a lower-case letter whose upper case it is.
    """
    if text.isascii():
        return text.lower()
    return "".join(lower if (lower := letter.lower()).upper() == letter else letter for letter in text)
