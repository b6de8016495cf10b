"""The token bucket: so many at once, and as many again in each interval."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import msgspec

from ..effects import Instant
from ..foundation.caches import Bounded

ROUNDING: Final = 1e-9
"""What arithmetic may lose of a whole one."""


class Bucket(msgspec.Struct, frozen=True):
    """What is left at a time. Nothing is let through before `blocked_until`."""

    left: float
    at: Instant
    blocked_until: Instant = 0.0


def take(
    buckets: Bounded[Hashable, Any], key: Hashable, now: Instant, *, size: float, interval: float, block: float = 0.0
) -> float:
    """Take one from a bucket that holds `size` and fills up in `interval` seconds.

    Returns 0, or after how many seconds to come again if it is empty. `block`: for how long it is closed then.
    """
    bucket: Bucket = buckets.get(key) or Bucket(max(size, 1.0), now)
    if now < bucket.blocked_until:
        return bucket.blocked_until - now
    passed = max(0.0, now - bucket.at)
    left = min(max(size, 1.0), bucket.left + passed * size / interval)
    if left >= 1 - ROUNDING:
        buckets.put(key, Bucket(left - 1, now))
        return 0.0
    buckets.put(key, Bucket(left, now, now + block))
    return block or (1 - left) * interval / size
