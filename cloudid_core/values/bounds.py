"""Bounds: the longest durations that a request or a setting may give, in seconds, and the lower of two limits.

The reference has them beside each field.
"""

from __future__ import annotations

from typing import Final

DAY: Final = 24 * 3600
YEAR: Final = 365 * DAY

LONGEST_LIFE: Final = 2**31
"""Of tokens and leases, and of what limits those: 68 years."""
LONGEST_SECRET: Final = 10 * YEAR
"""Of a root secret, and so between two rotations of it."""
LONGEST_INTERVAL: Final = YEAR
"""In which a rotation has time, requests are counted, or a source is refused."""
LONGEST_BELIEF: Final = 31 * DAY
"""For which an answer of the provider is reused or mistrusted."""
LONGEST_DELAY: Final = 3600
"""Before a call is tried again: nobody waits longer for an answer."""


def least(first: int, second: int) -> int:
    """The smaller of two limits, where 0 means that there is none."""
    return min(first or second, second or first)
