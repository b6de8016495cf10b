"""Rate limits: each node counts the requests of each source, by the most specific quota, and failed logins.

A login with a valid token is never delayed, so that machines that share an address with an attacker can still log in.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import msgspec

from ..caches import Bounded
from ..context import Context
from ..effects import Instant
from ..errors import Code, HostFailure, Refused
from ..store import keys
from ..values import network
from .record import Quotas, RateLimit

READ_AGAIN: Final = 5.0
"""Seconds for which a node uses the quotas that it has read. A node's own changes apply immediately."""
ROUNDING: Final = 1e-9
"""Rounding error that is tolerated below a whole number."""
ALLOWED: Final = 20.0
OPERATORS: Final = 10.0
"""How many tokens of a source are checked per second at the paths that manage a quota which refuses."""
INTERVAL: Final = 60.0
"""The interval in seconds for failed logins."""


class Bucket(msgspec.Struct, frozen=True):
    """What is left at a time. Nothing is allowed before `blocked_until`."""

    left: float
    at: Instant
    blocked_until: Instant = 0.0


class Taken(msgspec.Struct, frozen=True):
    """The result of taking one from a bucket. Times are in seconds from now."""

    wait: float
    """0: one was available. Otherwise, when to retry."""
    limit: int
    """The size of the bucket."""
    remaining: int
    """How many are still available."""
    full_in: float
    """When the bucket is full again if nothing more is taken."""


def take(
    buckets: Bounded[Hashable, Any], key: Hashable, now: Instant, *, size: float, interval: float, block: float = 0.0
) -> Taken:
    """Take one from a bucket that holds `size` and fills up in `interval` seconds.

    `block`: seconds for which the bucket is closed after an attempt to take more than there is.
    """
    capacity = max(size, 1.0)
    bucket: Bucket = buckets.get(key) or Bucket(capacity, now)
    passed = max(0.0, now - bucket.at)
    left = min(capacity, bucket.left + passed * size / interval)
    if now < bucket.blocked_until <= now + block:  # longer: the clock was set back, or the interval shortened
        wait = bucket.blocked_until - now
    elif left >= 1 - ROUNDING:
        wait, left = 0.0, left - 1
        buckets.put(key, Bucket(left, now))
    else:
        wait = block or (1 - left) * interval / size
        buckets.put(key, Bucket(left, now, now + block))
    remaining = 0 if wait else int(left + ROUNDING)
    return Taken(wait, int(capacity), remaining, max(wait, (capacity - left) * interval / size))


class _Read(msgspec.Struct, frozen=True):
    quotas: Quotas
    at: Instant


def take_request(context: Context, limit: RateLimit, remote_address: str, now: Instant) -> Taken:
    """Count a request against a quota, for its source."""
    return take(
        context.caches.requests,
        (limit, network.source(remote_address)),
        now,
        size=limit.rate,
        interval=limit.interval,
        block=limit.block,
    )


def may_look_at_operator(context: Context, remote_address: str, now: Instant) -> bool:
    """Return whether the token of a refused request, at the quota's own path, may still be checked.

    Each source has its own bucket. Without one, requests with invented tokens would be unlimited work; with one shared
    bucket, a single source could empty it and lock the operators out.
    """
    source = network.source(remote_address)
    return not take(context.caches.operators, source, now, size=OPERATORS, interval=1.0).wait


def known_quotas(context: Context, now: Instant) -> Quotas | None:
    """Return the recently read quotas, or `None` if they must be read."""
    read: _Read | None = context.caches.quotas.peek(keys.QUOTAS)
    return read.quotas if read is not None and 0 <= now - read.at < READ_AGAIN else None


async def read_quotas(context: Context, now: Instant) -> Quotas:
    """Read the quotas, or return the last ones if the store fails.

    A damaged record counts as empty, so that it can be replaced.
    """
    try:
        found, _ = await context.records.find_for_writing(keys.QUOTAS, Quotas)
    except HostFailure:
        return last_quotas(context)
    quotas = found.record if found else Quotas()
    context.caches.quotas.put(keys.QUOTAS, _Read(quotas, now))
    return quotas


def last_quotas(context: Context) -> Quotas:
    """Return the last read quotas."""
    last: _Read | None = context.caches.quotas.peek(keys.QUOTAS)
    return last.quotas if last else Quotas()


def forget_quotas(context: Context) -> None:
    """Make the next request read the quotas again, because they were changed."""
    context.caches.quotas.clear()


def count_failed_login(context: Context, remote_address: str, now: Instant) -> None:
    """Count a login without a valid token. Refuse with `LOGINS_THROTTLED` if its source has sent too many."""
    taken = take(context.caches.failed_logins, network.source(remote_address), now, size=ALLOWED, interval=INTERVAL)
    if taken.wait:
        raise Refused(Code.LOGINS_THROTTLED, retry_after=taken.wait)
