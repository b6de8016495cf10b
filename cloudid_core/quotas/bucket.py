"""The token bucket: so many at once, and as many again in each interval."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import msgspec

from ..caches import Bounded
from ..effects import Instant

ROUNDING: Final = 1e-9
"""What arithmetic may lose of a whole one."""


class Bucket(msgspec.Struct, frozen=True):
    """What is left at a time. Nothing is let through before `blocked_until`."""

    left: float
    at: Instant
    blocked_until: Instant = 0.0


class Taken(msgspec.Struct, frozen=True):
    """What came of taking one from a bucket. Times are in seconds from now."""

    wait: float
    """0: one was there. Otherwise, when to come again."""
    limit: int
    """How many a full bucket holds."""
    remaining: int
    """How many can still be taken at once."""
    full_in: float
    """When the bucket is full again if nothing more is taken."""


def take(
    buckets: Bounded[Hashable, Any], key: Hashable, now: Instant, *, size: float, interval: float, block: float = 0.0
) -> Taken:
    """Take one from a bucket that holds `size` and fills up in `interval` seconds.

    `block`: for how many seconds a bucket is closed when one is taken that is not there.
    """
    capacity = max(size, 1.0)
    bucket: Bucket = buckets.get(key) or Bucket(capacity, now)
    passed = max(0.0, now - bucket.at)
    left = min(capacity, bucket.left + passed * size / interval)
    if now < bucket.blocked_until:
        wait = bucket.blocked_until - now
    elif left >= 1 - ROUNDING:
        wait, left = 0.0, left - 1
        buckets.put(key, Bucket(left, now))
    else:
        wait = block or (1 - left) * interval / size
        buckets.put(key, Bucket(left, now, now + block))
    remaining = 0 if wait else int(left + ROUNDING)
    return Taken(wait, int(capacity), remaining, max(wait, (capacity - left) * interval / size))
