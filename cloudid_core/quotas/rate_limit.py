"""Rate limits: each node counts the requests of each source, by the most specific quota for them; and failed logins.

A login with a valid token is never slowed, so that machines at the address of an attacker can still log in.
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
"""Seconds for which a node goes by the quotas that it has read. Those that it wrote itself count at once."""
ROUNDING: Final = 1e-9
"""What arithmetic may lose of a whole one."""
ALLOWED: Final = 20.0
OPERATORS: Final = 10.0
"""How many tokens of a source are checked in a second at the own paths of quotas that refuse."""
INTERVAL: Final = 60.0
"""So many logins of a source may fail in so many seconds."""


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
    """Take a request out of what a quota lets its source make."""
    return take(
        context.caches.requests,
        (limit, network.source(remote_address)),
        now,
        size=limit.rate,
        interval=limit.interval,
        block=limit.block,
    )


def may_look_at_operator(context: Context, remote_address: str, now: Instant) -> bool:
    """Return whether a request that a quota refuses, at the quota's own path, may still have its token checked.

    Each source has a bucket: without one, requests with invented tokens would be work that no quota limits; with one
    bucket for all, a single source could empty it and keep the operators out.
    """
    source = network.source(remote_address)
    return not take(context.caches.operators, source, now, size=OPERATORS, interval=1.0).wait


def known_quotas(context: Context, now: Instant) -> Quotas | None:
    """The quotas as they were a short time ago; `None` when they have to be read."""
    read: _Read | None = context.caches.quotas.peek(keys.QUOTAS)
    return read.quotas if read is not None and 0 <= now - read.at < READ_AGAIN else None


async def read_quotas(context: Context, now: Instant) -> Quotas:
    """The quotas as they are, or as they were while the store is lost.

    A record that is damaged counts as none, so that it can be replaced.
    """
    try:
        found, _ = await context.records.find_for_writing(keys.QUOTAS, Quotas)
    except HostFailure:
        return last_quotas(context)
    quotas = found.record if found else Quotas()
    context.caches.quotas.put(keys.QUOTAS, _Read(quotas, now))
    return quotas


def last_quotas(context: Context) -> Quotas:
    """The quotas as they were when they were read last."""
    last: _Read | None = context.caches.quotas.peek(keys.QUOTAS)
    return last.quotas if last else Quotas()


def forget_quotas(context: Context) -> None:
    """Have the quotas read again by the next request: they were changed."""
    context.caches.quotas.clear()


def count_failed_login(context: Context, remote_address: str, now: Instant) -> None:
    """Note a login without a valid token; `LOGINS_THROTTLED` when its source has sent too many."""
    taken = take(context.caches.failed_logins, network.source(remote_address), now, size=ALLOWED, interval=INTERVAL)
    if taken.wait:
        raise Refused(Code.LOGINS_THROTTLED, retry_after=taken.wait)
