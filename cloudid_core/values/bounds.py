"""Limits: the longest durations that requests and settings may set, in seconds, and the lower of two limits.

The reference lists them with each field.
"""

from __future__ import annotations

from typing import Final

DAY: Final = 24 * 3600
YEAR: Final = 365 * DAY

LONGEST_LIFE: Final = 2**31
"""Maximum lifetime of tokens and leases, and of their limits: 68 years."""
LONGEST_SECRET: Final = 10 * YEAR
"""Maximum validity of a client secret, and therefore between two rotations."""
LONGEST_INTERVAL: Final = YEAR
"""Maximum window of a rotation, interval of a rate limit, and time for which a source is refused."""
LONGEST_BELIEF: Final = 31 * DAY
"""Maximum time for which a response of Azure is reused or mistrusted."""
LONGEST_DELAY: Final = 3600
"""Maximum delay before a call is retried."""


def least(first: int, second: int) -> int:
    """Return the smaller of two limits. 0 means no limit."""
    return min(first or second, second or first)
