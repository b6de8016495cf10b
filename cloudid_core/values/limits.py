"""Limits, of which 0 is none."""

from __future__ import annotations


def least(first: int, second: int) -> int:
    """The smaller of two limits."""
    return min(first or second, second or first)
