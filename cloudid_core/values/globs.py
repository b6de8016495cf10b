"""Globs: patterns in which each `*` matches any text."""

from __future__ import annotations


def is_like(text: str, pattern: str) -> bool:
    """Return whether a text matches a pattern."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == first
    *inner, last = rest
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    place, end = len(first), len(text) - len(last)
    for piece in inner:
        place = text.find(piece, place, end)
        if place < 0:
            return False
        place += len(piece)
    return True


def have_common(first: str, second: str) -> bool:
    """Return whether some text matches both patterns."""
    if "*" not in first:
        return is_like(first, second)
    if "*" not in second:
        return is_like(second, first)
    # All between the ends fits into the stars: what one pattern wants there, the other one's star takes.
    starts = sorted((first.partition("*")[0], second.partition("*")[0]), key=len)
    ends = sorted((first.rpartition("*")[2], second.rpartition("*")[2]), key=len)
    return starts[1].startswith(starts[0]) and ends[1].endswith(ends[0])
