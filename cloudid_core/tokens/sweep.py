"""Remove dead tokens from the store, a page at a time. (A dead token is refused wherever it is read.)

Tokens with children or leases are left to their due entries: their dependants are removed first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..api.response import Answer
from ..api.routing import Call
from ..effects import Instant, ListKeys, Now, Sleep
from ..errors import Conflict
from ..foundation.context import Context
from ..store import keys
from ..store.changes import Changes
from .record import Token

PAGE: Final = 500
QUIET_PAGES: Final = 20
"""How many pages in a row without a dead token end a round; the next round goes on from there."""
SECONDS: Final = 20.0
ACCEPTED: Final = 202


class Sweep:
    """A walk over all tokens, which starts again at its end."""

    def __init__(self) -> None:
        self._after = ""

    async def run(self, context: Context, fence: Mapping[str, int], now: Instant) -> int:
        """Remove dead tokens until the end of the store, `QUIET_PAGES` without one, or `SECONDS`. Returns how many."""
        removed = quiet = 0
        while quiet < QUIET_PAGES:
            count = await self._sweep_page(context, fence, now)
            removed, quiet = removed + count, 0 if count else quiet + 1
            if not self._after or await Now() >= now + SECONDS:
                break
            await Sleep(0.0)  # requests run between two pages
        return removed

    async def _sweep_page(self, context: Context, fence: Mapping[str, int], now: Instant) -> int:
        page = await ListKeys(keys.TOKENS, self._after, PAGE)
        self._after = page[-1] if len(page) == PAGE else ""
        dead: dict[str, int] = {}
        deletes: list[str] = []
        for key in page:
            found = await context.records.find_fresh(key, Token)
            if found is not None and not found.record.is_alive(now) and not found.record.has_dependants:
                dead[key] = found.version
                deletes.extend(found.record.own_keys)
        if dead:
            try:
                await context.records.commit(Changes({**fence, **dead}, deletes=tuple(deletes)))
            except Conflict:
                return 0
        return len(dead)


async def tidy(call: Call) -> Answer:
    """Start the next round of removing dead tokens now; without a request the background does it from time to time."""
    return Answer(
        status=ACCEPTED,
        warnings=("dead tokens are removed in the background; another round has been asked for",),
        wake_at=call.now,
    )
