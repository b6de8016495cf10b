"""Throttling: buckets of requests that are refilled steadily; who finds one empty is told when to come back."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from .routing import Call, Refusal

if TYPE_CHECKING:
    from .world import World

BUCKETS: Final = {
    ("arm", False): "arm_reads",
    ("arm", True): "arm_writes",
    ("graph", False): "graph_reads",
    ("graph", True): "graph_writes",
    ("login", False): "login",
}
"""By family, and whether the request changes anything."""

CODES: Final = {"arm": "SubscriptionRequestsThrottled"}
SUBSCRIPTION: Final = re.compile(r"/arm(/subscriptions/[^/]+)", re.IGNORECASE)


def throttle(world: World, family: str, call: Call) -> None:
    """Take one request out of its bucket; `Refusal` 429 when there is none left."""
    name = BUCKETS.get((family, call.writes))
    rate = world.behaviour.throttle[name] if name else None
    if name is None or rate is None:
        return
    subscription = SUBSCRIPTION.match(call.path)
    key = (name, call.caller.object_id, subscription[1].lower() if subscription else "")
    burst, per_second = rate
    now = world.now()
    left, since = world.buckets.get(key, (burst, now))
    left = min(burst, left + max(0.0, now - since) * per_second)
    if left < 1:
        wait = max(1, math.ceil((1 - left) / per_second))
        message = f"The request is being throttled. Try again in {wait} seconds."
        raise Refusal(429, CODES.get(family, "TooManyRequests"), message, {"retry-after": str(wait)})
    world.buckets[key] = (left - 1, now)
