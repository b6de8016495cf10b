"""Leadership: only one node does the background work.

`duty/term` changes when another node takes over, and every background commit expects it. So a node that is no longer
the leader cannot write, a node can take over when it starts, and no one has to wait until the term of a dead node
expires. The leader renews `duty/until` without changing the term, and removes both when it stops.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..context import Context
from ..effects import Instant
from ..errors import Conflict
from ..store import Changes, expected, keys, retry_on_conflict

LENGTH: Final = 60.0
"""Seconds for which a node leads without renewing its leadership."""


@frozen
class Term:
    holder: str


@frozen
class Until:
    at: Instant


async def hold_leadership(
    context: Context, node: str, now: Instant, *, take_over: bool = False
) -> dict[str, int] | None:
    """Take, keep or renew the leadership.

    Return what background commits must expect, or `None` while another node leads.
    """
    term = await context.records.find_fresh(keys.LEADER_TERM, Term)
    until = await context.records.find_fresh(keys.LEADER_UNTIL, Until)
    left = until.record.at - now if until else 0.0
    ours = term is not None and term.record.holder == node
    if not ours and not take_over and 0 < left <= 2 * LENGTH:  # more than that is left only if a clock was set back
        context.node.leader = term.record.holder if term else ""
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


async def is_leader(context: Context, node: str) -> bool:
    """Return whether the node leads, according to the store."""
    term = await context.records.find_fresh(keys.LEADER_TERM, Term)
    return term is not None and term.record.holder == node


@retry_on_conflict
async def release_leadership(context: Context, node: str) -> None:
    """Let the next node that checks take over. Do nothing while another node leads.

    From then on, the background commits of this node are refused.
    """
    term = await context.records.find_fresh(keys.LEADER_TERM, Term)
    if term is not None and term.record.holder == node:
        await context.records.commit(Changes(term.expected, deletes=(keys.LEADER_TERM, keys.LEADER_UNTIL)))
