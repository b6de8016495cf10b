"""The deadline of a request or a job."""

from __future__ import annotations

import msgspec

from .effects import Instant, Now
from .errors import Code, Refused


class Deadline(msgspec.Struct, frozen=True):
    """The instant after which an answer is of no use to its caller."""

    at: Instant

    async def remaining(self) -> float:
        """Seconds left, more than zero. Refuses with `DEADLINE_PASSED` when there are none."""
        left = self.at - await Now()
        if left <= 0:
            raise Refused(Code.DEADLINE_PASSED)
        return left
