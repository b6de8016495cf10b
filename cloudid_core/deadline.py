"""The deadline of a request or a job."""

from __future__ import annotations

import msgspec

from .effects import Instant, Now
from .errors import Code, Refused


class Deadline(msgspec.Struct, frozen=True):
    """The instant after which the caller no longer needs a response."""

    at: Instant

    async def remaining(self) -> float:
        """Return the seconds left, more than zero. Refuse with `DEADLINE_PASSED` if there are none."""
        left = self.at - await Now()
        if left <= 0:
            raise Refused(Code.DEADLINE_PASSED)
        return left
