"""Failed logins: a source that sends many without a valid signature is told to come later.

A login with a valid signature is never slowed, so that machines at the address of an attacker can still log in.
"""

from __future__ import annotations

from typing import Final

from ..context import Context
from ..effects import Instant
from ..errors import Code, Refused
from ..values import network
from .bucket import take

ALLOWED: Final = 20.0
INTERVAL: Final = 60.0
"""So many logins of a source may fail in so many seconds."""


def count_failed_login(context: Context, remote_address: str, now: Instant) -> None:
    """Note a login without a valid signature; `LOGINS_THROTTLED` when its source has sent too many."""
    taken = take(context.caches.failed_logins, network.source(remote_address), now, size=ALLOWED, interval=INTERVAL)
    if taken.wait:
        raise Refused(Code.LOGINS_THROTTLED, retry_after=taken.wait)
