"""Case folding in which only the two cases of one letter are equal."""

from __future__ import annotations


def fold(text: str) -> str:
    """The text in lower case, for comparison.

    `str.casefold` unites more than the cloud provider does ("ß" with "ss", the Kelvin sign with "k"): two resource
    groups would become one. Here a letter folds only to a lower-case letter whose upper case it is.
    """
    if text.isascii():
        return text.lower()
    return "".join(lower if (lower := letter.lower()).upper() == letter else letter for letter in text)


def folds_to(text: str, folded: str) -> bool:
    """Whether `folded` is the text in lower case. Most texts are in lower case already."""
    return text == folded or fold(text) == folded


def fold_location(raw: object) -> str:
    """A location (region) of the cloud, for comparison: in lower case, without blanks.

    "West US 2" and "westus2" are the same location. Raises `ValueError` for anything but a text.
    """
    if not isinstance(raw, str):
        raise ValueError("must be a location")
    return "".join(fold(raw).split())
