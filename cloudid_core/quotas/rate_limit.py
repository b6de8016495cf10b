"""Rate limits: each node counts the requests of each source, by the most specific quota for them."""

from __future__ import annotations

from typing import Final

import msgspec

from ..context import Context
from ..effects import Instant
from ..errors import HostFailure
from ..store import keys
from ..values import network
from .bucket import Taken, take
from .record import Quotas, RateLimit

READ_AGAIN: Final = 5.0
"""Seconds for which a node goes by the quotas that it has read. Those that it wrote itself count at once."""


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
        block=limit.block_interval,
    )


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
