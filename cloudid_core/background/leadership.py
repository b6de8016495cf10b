"""Leadership: only one node does background work.

`duty/term` changes when another node takes over, and every background commit expects it: a node that is no longer the
leader cannot write. So a node takes over when it starts, and nothing waits until the term of a dead node has run out.
The leader renews `duty/until` without touching the term.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..effects import Instant
from ..errors import Conflict
from ..foundation.context import Context
from ..store import keys
from ..store.changes import Changes
from ..store.records import expected

LENGTH: Final = 60.0
"""Seconds for which a node leads without renewing it."""


@frozen
class Term:
    holder: str


@frozen
class Until:
    at: Instant


async def hold_leadership(
    context: Context, node: str, now: Instant, *, take_over: bool = False
) -> dict[str, int] | None:
    """Take, keep or renew the leadership: what background commits must expect, or `None` while another node leads."""
    term = await context.records.find_fresh(keys.LEADER_TERM, Term)
    until = await context.records.find_fresh(keys.LEADER_UNTIL, Until)
    left = until.record.at - now if until else 0.0
    ours = term is not None and term.record.holder == node
    if not ours and not take_over and 0 < left <= 2 * LENGTH:  # more than that is left only if a clock was set back
        return None
    if term is not None and ours and LENGTH / 2 < left <= LENGTH:
        return term.expected
    expects = {**expected(term, keys.LEADER_TERM), **expected(until, keys.LEADER_UNTIL)}
    renewal: dict[str, object] = {keys.LEADER_UNTIL: Until(now + LENGTH)}
    try:
        if term is not None and ours:
            await context.records.commit(Changes(expects, renewal))
            return term.expected
        version = await context.records.commit(Changes(expects, {keys.LEADER_TERM: Term(node), **renewal}))
    except Conflict:
        return None
    return {keys.LEADER_TERM: version}


async def leader_until(context: Context, now: Instant) -> Instant:
    """Until when another node leads if it does not renew that."""
    until = await context.records.find_fresh(keys.LEADER_UNTIL, Until)
    return max(now + 1.0, until.record.at) if until else now + 1.0
