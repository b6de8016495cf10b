"""Remove dead tokens from the store as fast as they die. (A dead token is refused wherever it is read.)

What a round reads depends on how many tokens were made and how many died, not on how many live:

1. It reads one in `SAMPLE` of the tokens that were made since the last round. Ids sort by time, so these stand next to
   each other. Each page of them is remembered as a stretch, with the instant at which more than one in `ONE_DEAD_IN` of
   its tokens will be dead, according to the sample.
2. It reads a stretch when enough of its tokens are dead, and remembers when that will be so again.
3. It reads a few pages more, where the last round stopped. This walk passes all tokens at a steady pace, a million in
   half an hour. Pages with enough dead tokens do not count, so many dead tokens make it faster.

The walk removes what the other two miss: the last few dead tokens of a stretch; what a sample has not shown; tokens
that were made before this node began to lead; tokens that were stored among older ones, because their text was chosen,
their request took long or their node's clock is behind; and tokens that died before the time in their entry, by a last
use or a renewal for a shorter time. A renewal for a longer time costs one useless read of its stretch. So every dead
token is removed even if all that is remembered is lost, as it is when another node begins to lead.

Tokens with children or leases are left to their due entries: their dependants are removed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import define

from ..caches import Bounded
from ..context import Context
from ..effects import Instant, ListKeys, Now, Program, Sleep, gather, record_if_possible
from ..errors import Conflict, EntryDamaged
from ..events import JobFailed, Problem
from ..health import MOST_SKEW
from ..store import Changes, Found, keys
from .encoding import id_time
from .record import Token
from .stretches import Stretches

PAGE: Final = 500
AT_ONCE: Final = 25
"""How many tokens one commit removes.

Every store supports commits with all their entries; see `cloudid_core.testing`.
"""

SAMPLE: Final = 10
"""One in this many new tokens is read. Reading all of them would take a twentieth of the time of their logins."""
ONE_DEAD_IN: Final = 10
"""A page is worth reading if more than one in this many of its tokens has expired."""
PAGES_WITHOUT_DEAD: Final = 10
"""How many useless pages end the walk of a round. The next round continues there."""
SECONDS: Final = 2.0
"""Seconds after which a round starts no other page, because expired leases wait for it."""
NEW_SHARE: Final = 0.5
"""The share of that time for new tokens, so that expired ones are removed however fast others are created."""
NEW_SECONDS: Final = 120.0
"""Maximum age of new tokens. A node that has become the leader leaves older ones to the walk."""
MOST_REPORTED: Final = 1000
"""How many damaged tokens are remembered, so that each is reported once."""
LAST: Final = f"{keys.TOKENS}~"
"""Sorts after all tokens."""


@define
class Round:
    context: Context
    fence: Mapping[str, int]
    started_at: Instant
    now: Instant
    """The time, by the store's clock if this machine's is ahead.

    Other nodes still accept tokens that have expired only here.
    """
    quiet: int = 0
    """How many pages of the walk were useless."""

    async def has_time(self, seconds: float = SECONDS) -> bool:
        """Return whether the round started less than this many seconds ago."""
        return await Now() < self.started_at + seconds


class Sweep:
    """The state between rounds: how far the last one came, and the remembered stretches."""

    def __init__(self) -> None:
        self._known = ""
        """Tokens up to this key are no longer new."""
        self._walked = ""
        """The walk has passed the tokens up to this key."""
        self.stretches = Stretches()
        self._reported: Bounded[str, int] = Bounded(MOST_REPORTED)
        """The reported damaged tokens by their keys, with the versions of their entries."""

    async def run(self, context: Context, fence: Mapping[str, int], now: Instant) -> bool:
        """Remove expired tokens for some `SECONDS`. Return whether the next round must continue."""
        round_ = Round(context, fence, now, now - context.node.seconds_ahead)
        has_seen_new = await self._look_at_new(round_)
        await self._sweep_due(round_)
        await self._walk_on(round_)
        return not (has_seen_new and await round_.has_time())

    async def _look_at_new(self, round_: Round) -> bool:
        """Read new tokens, and the newest also in the next round, because pending requests may store others there.

        Return whether there was time for all but the newest.
        """
        oldest, settled, newest = [
            keys.token(id_time(round_.now + age)) for age in (-NEW_SECONDS, -MOST_SKEW, MOST_SKEW)
        ]
        start = self._known if oldest < self._known <= settled else oldest  # a clock may have been set back
        self._known = await _page_by_page(round_, start, settled, self._look_at_page, NEW_SHARE * SECONDS)
        await _page_by_page(round_, settled, newest, self._look_at_page, NEW_SHARE * SECONDS)
        return self._known >= settled

    async def _look_at_page(self, round_: Round, after: str, until: str) -> str:
        """Read a sample of a page of these tokens, and remember the page. Return its last key."""
        page, end = await _list_page(after, until)
        sample = await round_.context.records.find_undamaged(page[::SAMPLE], Token)
        left = [found for found in sample if not found.record.has_dependants]
        self.stretches.remember(after, end, _due_at(left, len(sample) // ONE_DEAD_IN))
        await Sleep(0.0)  # requests run between two pages
        return end

    async def _sweep_due(self, round_: Round) -> None:
        for stretch in self.stretches.due(round_.now):
            await _page_by_page(round_, stretch.after, stretch.until, self._sweep_page)
            if not await round_.has_time():
                break

    async def _walk_on(self, round_: Round) -> None:
        round_.quiet = 0
        while round_.quiet < PAGES_WITHOUT_DEAD:
            self._walked = await self._sweep_page(round_, self._walked, LAST)
            if self._walked == LAST:
                self._walked = ""
                break
            if not await round_.has_time():
                break

    async def _sweep_page(self, round_: Round, after: str, until: str) -> str:
        """Sweep a page of these tokens, and remember the rest of it. Return its last key."""
        page, end = await _list_page(after, until)
        tokens, damages = await round_.context.records.find_all_fresh(page, Token)
        for damaged in damages:
            await self._report(damaged)
        left = [found for found in tokens if not found.record.has_dependants]
        dead = [found for found in left if not found.record.is_alive(round_.now)]
        parts = [dead[start : start + AT_ONCE] for start in range(0, len(dead), AT_ONCE)]
        removed = sum(await gather([_remove_together(round_, part) for part in parts])) if parts else 0
        if removed:
            left = [found for found in left if found.record.is_alive(round_.now)]
        self.stretches.remember(after, end, _due_at(left, (len(page) - removed) // ONE_DEAD_IN))
        round_.quiet += removed <= len(page) // ONE_DEAD_IN
        await Sleep(0.0)  # requests run between two pages
        return end

    async def _report(self, damaged: EntryDamaged) -> None:
        """Record one event for a damaged token, which cannot be used and which `revoke-accessor` removes."""
        if self._reported.get(damaged.key) == damaged.version:
            return
        self._reported.put(damaged.key, damaged.version)
        token_id = damaged.key.removeprefix(keys.TOKENS)
        await record_if_possible(JobFailed(job="token sweep", ref=token_id, problem=Problem.of(damaged)))


async def _page_by_page(
    round_: Round, after: str, until: str, visit: Callable[[Round, str, str], Program[str]], seconds: float = SECONDS
) -> str:
    """Visit the tokens after one key, up to another one, page by page, for some seconds of the round.

    At least one page is visited, so that a busy node makes progress with every kind of pages.

    Return the last key.
    """
    while after < until:
        after = await visit(round_, after, until)
        if not await round_.has_time(seconds):
            break
    return after


async def _list_page(after: str, until: str) -> tuple[Sequence[str], str]:
    """Return the keys of the next tokens after a key, up to another one, and the last of these keys."""
    listed = await ListKeys(keys.TOKENS, after, PAGE)
    end = min(until, listed[-1]) if len(listed) == PAGE else until
    return [key for key in listed if key <= end], end


def _due_at(left: Sequence[Found[Token]], most: int) -> Instant | None:
    """Return when more than this many of the tokens have expired. `None`: never."""
    ends = sorted(found.record.expires_at for found in left if found.record.expires_at is not None)
    return ends[most] if most < len(ends) else None


async def _remove_together(round_: Round, dead: Sequence[Found[Token]]) -> int:
    """Remove expired tokens, or none of them if one has changed. Return how many."""
    expects = {found.key: found.version for found in dead}
    deletes = tuple(key for found in dead for key in found.record.own_keys)
    try:
        await round_.context.records.commit(Changes({**round_.fence, **expects}, deletes=deletes))
    except Conflict:
        return 0
    return len(dead)
