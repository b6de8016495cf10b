"""Lists of texts in the spellings that clients use: a JSON list, a comma-separated string, `key=value` pairs."""

from __future__ import annotations

from . import coercion
from .json_text import MOST_VALUES


def comma_list(raw: object) -> tuple[str, ...]:
    """Return the trimmed elements of a list, or of a string split at its commas. Null and "" are the empty list.

    Empty elements are kept: the rules of each field define what they mean, and a stray comma must not remove a
    restriction. A bare number or boolean is a list of one. A string may have as many elements as a JSON list.
    """
    if isinstance(raw, (list, tuple)):
        return tuple(element.strip() for element in _elements(raw))
    text = _text(raw, "must be a list of strings, or a comma-separated string").strip()
    if text.count(",") >= MOST_VALUES:
        raise ValueError(f"must have at most {MOST_VALUES} elements")
    return tuple(piece.strip() for piece in text.split(",")) if text else ()


def string_list(raw: object) -> tuple[str, ...]:
    """Return the elements of a list unchanged. A string is one element, even with commas.

    Null and "" are the empty list.
    """
    if isinstance(raw, (list, tuple)):
        return _elements(raw)
    text = _text(raw, "must be a list of strings, or a string")
    return (text,) if text else ()


def key_values(raw: object) -> dict[str, str]:
    """Return the members of an object, or of one or more `key=value` strings. Of equal keys the last wins."""
    if isinstance(raw, dict):
        return {key: _text(value, "must be an object whose values are strings") for key, value in raw.items()}
    pairs = [element.partition("=") for element in string_list(raw)]
    if not all(key and equals for key, equals, _ in pairs):
        raise ValueError("must be an object, or a list of key=value strings")
    return {key: value for key, _, value in pairs}


def _elements(raw: list[object] | tuple[object, ...]) -> tuple[str, ...]:
    return tuple(_text(element, "must be a list of strings") for element in raw)


def _text(raw: object, rule: str) -> str:
    """Return a scalar as a text. Raise `ValueError` with the rule for anything else."""
    try:
        return coercion.text(raw)
    except ValueError:
        raise ValueError(rule) from None
