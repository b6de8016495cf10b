"""Dead tokens are refused when they are read; this removes them, a page of the store at a time.

Those that something hangs on are left to their due entries: their dependants go first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..api.response import Answer
from ..api.routing import Call
from ..effects import Instant, ListKeys
from ..errors import Conflict
from ..foundation.context import Context
from ..store import keys
from ..store.changes import Changes
from .record import Token

PAGE: Final = 500
ACCEPTED: Final = 202


class Sweep:
    """Goes round and round through all tokens."""

    def __init__(self) -> None:
        self._after = ""

    async def run(self, context: Context, fence: Mapping[str, int], now: Instant) -> int:
        """Look at one page; how many tokens were removed."""
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
    """Dead tokens are swept all the time: this only asks for the next round now."""
    return Answer(
        status=ACCEPTED,
        warnings=("dead tokens are removed in the background; another round has been asked for",),
        wake_at=call.now,
    )
