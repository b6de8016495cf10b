"""Limits, where 0 means that there is none."""

from __future__ import annotations


def least(first: int, second: int) -> int:
    """The smaller of two limits."""
    return min(first or second, second or first)
