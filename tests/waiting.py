"""Waiting: what hangs fails a test, what is slow does not."""

from __future__ import annotations

import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

PATIENCE: Final = 300.0
"""Seconds after which what has not come hangs: no machine is so busy. Tests have no shorter limit of their own."""

PATIENT: Final[dict[str, Any]] = {
    "trust_env": False,
    "timeout": PATIENCE,
    "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
}
"""Options of clients of httpx, which else wait for five seconds, and read a file of authorities for each request."""

STEP: Final = 0.02


def wait_until(condition: Callable[[], T]) -> T:
    """What the condition says once that is true."""
    limit = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < limit, "it hangs"
        time.sleep(STEP)
    return found


async def until(sleep: Callable[[float], Awaitable[object]], condition: Callable[[], T]) -> T:
    """As `wait_until`, on the event loop that `sleep` belongs to."""
    limit = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < limit, "it hangs"
        await sleep(STEP)
    return found
