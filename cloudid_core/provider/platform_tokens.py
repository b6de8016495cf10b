"""Tokens of the host's own platform (managed identity): which refusals are retried, and when.

Source: Microsoft's page about tokens of managed identities on virtual machines, section on retry guidance.
"""

from __future__ import annotations

from typing import Final

from ..deadline import Deadline
from ..effects import Now, PlatformToken, ReadPlatformToken, Sleep
from ..errors import PlatformTokenUnavailable
from .retry import SHORTEST_TRY

PAUSES: Final = (1.0, 2.0, 4.0)
"""Seconds before each retry after no response, 404, 429 or 5xx: the platform's service is starting or busy."""

GONE: Final = 410
"""The platform's service is being updated."""
GONE_PAUSE: Final = 10.0
GONE_SECONDS: Final = 70.0
"""Maximum duration of an update, for which the client waits."""


async def platform_token(resource: str, client_id: str, deadline: Deadline, *, retries: bool = True) -> PlatformToken:
    """Return a token for `resource`, within the deadline.

    Raise `PlatformTokenUnavailable`, or refuse with `DEADLINE_PASSED`.
    """
    started_at = await Now()
    retry = 0
    while True:
        await deadline.remaining()
        try:
            return await ReadPlatformToken(resource, client_id)
        except PlatformTokenUnavailable as refusal:
            now = await Now()
            pause = _pause(refusal.status, retry, now - started_at) if retries else None
            if pause is None or now + pause + SHORTEST_TRY > deadline.at:
                raise
            if refusal.status != GONE:
                retry += 1
            await Sleep(pause)


def _pause(status: int | None, retry: int, waited: float) -> float | None:
    """Return the seconds before the next attempt. `None`: there is none."""
    if status == GONE:
        return GONE_PAUSE if waited + GONE_PAUSE <= GONE_SECONDS else None
    is_temporary = status in (PlatformTokenUnavailable.NO_ANSWER, 404, 429) or (status is not None and status >= 500)
    return PAUSES[retry] if is_temporary and retry < len(PAUSES) else None
