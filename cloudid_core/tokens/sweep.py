"""Remove dead tokens from the store, a page at a time. (A dead token is refused wherever it is read.)

Tokens with children or leases are left to their due entries: their dependants are removed first.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ..api.response import Answer
from ..api.routing import Call
from ..background import queue
from ..background.queue import Due, Job
from ..effects import Instant, ListKeys, Now, Record, Sleep
from ..errors import Conflict, EntryDamaged, RecordFailed
from ..events import JobFailed, Problem
from ..foundation.caches import Bounded
from ..foundation.context import Context
from ..mounts.table import TOKEN
from ..store import keys
from ..store.changes import Changes
from .record import Token

PAGE: Final = 500
QUIET_PAGES: Final = 20
"""How many pages in a row without a dead token end a round; the next round goes on from there."""
SECONDS: Final = 20.0
ACCEPTED: Final = 202
MOST_REPORTED: Final = 1000
"""How many damaged tokens are remembered, so that each is reported once."""


class Sweep:
    """A walk over all tokens, which starts again at its end."""

    def __init__(self) -> None:
        self._after = ""
        self._reported: Bounded[str, int] = Bounded(MOST_REPORTED)
        """The damaged tokens that an event has named, by their keys: the versions of their entries."""

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

    async def run_job(self, job: Job) -> None:
        """A round that a request asked for."""
        await job.context.records.commit(Changes(job.fence, deletes=(job.key,)))
        await self.run(job.context, job.fence, job.now)

    async def _sweep_page(self, context: Context, fence: Mapping[str, int], now: Instant) -> int:
        page = await ListKeys(keys.TOKENS, self._after, PAGE)
        self._after = page[-1] if len(page) == PAGE else ""
        dead: dict[str, int] = {}
        deletes: list[str] = []
        tokens, damages = await context.records.find_all_fresh(page, Token)
        for damaged in damages:
            await self._report(damaged)
        for found in tokens:
            if not found.record.is_alive(now) and not found.record.has_dependants:
                dead[found.key] = found.version
                deletes.extend(found.record.own_keys)
        if dead:
            try:
                await context.records.commit(Changes({**fence, **dead}, deletes=tuple(deletes)))
            except Conflict:
                return 0
        return len(dead)

    async def _report(self, damaged: EntryDamaged) -> None:
        """Record one event for a damaged token, which cannot be used and which `revoke-accessor` removes."""
        if self._reported.get(damaged.key) == damaged.version:
            return
        self._reported.put(damaged.key, damaged.version)
        token_id = damaged.key.removeprefix(keys.TOKENS)
        with suppress(RecordFailed):
            await Record(JobFailed(job="token sweep", ref=token_id, problem=Problem.of(damaged)))


async def tidy(call: Call) -> Answer:
    """Ask for a round of removing dead tokens, at whichever node leads; the background does it from time to time."""
    due_key = keys.due(0.0, queue.TIDY, TOKEN.id, "")  # one, however many requests ask
    await call.context.records.commit(Changes(puts={due_key: Due()}))
    return Answer(
        status=ACCEPTED,
        warnings=("dead tokens are removed in the background; another round has been asked for",),
        wake_at=call.now,
    )
