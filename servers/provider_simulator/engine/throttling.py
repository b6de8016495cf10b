"""Throttling: buckets of requests that are refilled steadily. A caller whose bucket is empty gets 429."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

from .behaviour import BUCKETS, Rate
from .requests import Call, Refusal

NAMES: Final = {requests: name for name, requests in BUCKETS.items()}
PLENTY: Final = 249
"""What is left of a bucket that never gets empty."""

CODES: Final = {"arm": "SubscriptionRequestsThrottled"}
SUBSCRIPTION: Final = re.compile(r"/arm(/subscriptions/[^/]+)", re.IGNORECASE)


class Throttle:
    """The buckets of a world, by name, caller and subscription."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._buckets: dict[tuple[str, str, str], tuple[float, float]] = {}
        """How many requests each bucket had left, and when."""
        self.counts: dict[str, dict[str, int]] = {}
        """How many requests were admitted, and how many throttled, by the name of their bucket."""

    def take(self, rates: Mapping[str, Rate | None], service: str, call: Call) -> int:
        """Take one request out of its bucket; how many are left. `Refusal` 429 when there was none left."""
        name = NAMES.get((service, call.writes))
        if name is None:
            return PLENTY
        counts = self.counts.setdefault(name, {"admitted": 0, "throttled": 0})
        rate = rates[name]
        if rate is None:
            counts["admitted"] += 1
            return PLENTY
        subscription = SUBSCRIPTION.match(call.path)
        key = (name, call.caller.object_id, subscription[1].lower() if subscription else "")
        burst, per_second = rate
        now = self._now()
        left, since = self._buckets.get(key, (burst, now))
        left = min(burst, left + max(0.0, now - since) * per_second)
        if left < 1:
            counts["throttled"] += 1
            wait = max(1, math.ceil((1 - left) / per_second))
            message = f"The request is being throttled. Try again in {wait} seconds."
            raise Refusal(429, CODES.get(service, "TooManyRequests"), message, {"retry-after": str(wait)})
        counts["admitted"] += 1
        self._buckets[key] = (left - 1, now)
        return int(left - 1)
