"""The read budget: how often the workers of one machine may read from the provider's resource manager, together.

The resource manager admits so many reads for each principal and subscription: a bucket of tokens, which fills up at a
steady rate. Each worker has caches of its own, so without this they would use up that bucket as many times as fast.
The buckets are in memory that the workers share. A worker that is killed while it holds the lock lets go of it.
"""

from __future__ import annotations

import fcntl
import mmap
import re
import struct
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final
from zlib import crc32

from cloudid_core.effects import HttpRequest

BURST_SECONDS: Final = 10.0
"""A full bucket holds what flows into it in this time."""

MOST_AHEAD: Final = 60.0
"""Seconds for which tokens are given out in advance at the most: many who ask then give up before their turn."""

BUCKETS: Final = 1024
"""Subscriptions that share one are slower together than they would have to be."""

_BUCKET: Final = struct.Struct("dd")
"""Tokens that are missing to a full bucket, and when that was so."""

_SUBSCRIPTION: Final = re.compile(r"/subscriptions/([^/?]+)", re.IGNORECASE)


class ReadBudget:
    """Made by the parent, before it forks the workers.

    `per_second`: reads for each subscription; 0: no limit. `origins`: addresses of resource managers.
    """

    def __init__(
        self, per_second: float, origins: Collection[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = per_second
        self._burst = per_second * BURST_SECONDS
        self._origins = tuple(origins)
        self._clock = clock
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # `close` closes it
        self._file.truncate(BUCKETS * _BUCKET.size)
        self._memory = mmap.mmap(self._file.fileno(), BUCKETS * _BUCKET.size)

    def take(self, request: HttpRequest) -> float:
        """Take a token for this request, if it needs one; seconds until it may be sent."""
        if not self._rate or request.method != "GET" or not request.url.startswith(self._origins):
            return 0.0
        found = _SUBSCRIPTION.search(request.url)
        at = crc32(found[1].lower().encode() if found else b"") % BUCKETS * _BUCKET.size
        with self._locked(at):
            now = self._clock()
            missing: float
            since: float
            missing, since = _BUCKET.unpack_from(self._memory, at)
            missing = max(0.0, missing - max(0.0, now - since) * self._rate) + 1.0
            missing = min(missing, self._burst + MOST_AHEAD * self._rate)
            _BUCKET.pack_into(self._memory, at, missing, now)
        return max(0.0, missing - self._burst) / self._rate

    def close(self) -> None:
        self._memory.close()
        self._file.close()

    @contextmanager
    def _locked(self, at: int) -> Iterator[None]:
        """The kernel's lock on a part of a file: held for microseconds, and gone with its process."""
        fcntl.lockf(self._file, fcntl.LOCK_EX, _BUCKET.size, at)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, _BUCKET.size, at)
