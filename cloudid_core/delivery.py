"""Delivery: what a request creates lives only if its caller receives it.

A lease, a token or a wrapped answer is noted in `Held` before the commit that creates it. A request whose deadline has
passed, that was cancelled, or whose answer could not be recorded or delivered, gives back what it held: all of them by
`give_back`. The commit itself may land later. That of a lease conflicts once the intent that it rests on has been
withdrawn. That of a token rests on nothing that could be changed, so it would cost every login one more expectation:
instead the deletion relies on the order of commits, which `Commit` guarantees.
"""

from __future__ import annotations

from math import inf
from typing import Final

from .background import withdraw
from .backoff import Backoff
from .context import Context
from .effects import Instant, Now, Sleep, within
from .errors import CloudidError, Conflict, EntryDamaged, StoreFailed
from .leases import end_lease
from .routing import Held
from .store import Changes
from .tokens import find_token, revoke

TRIES: Final = 4
"""How often the store is called while a caller waits."""

ATTEMPT_SECONDS: Final = 10.0
"""A store that takes longer is called again."""

PAUSES: Final = Backoff(first=0.2, longest=10.0)


async def give_back(context: Context, held: Held, *, tries: float = inf) -> None:
    """End what a request held. A store that fails is called again, `tries` times in all.

    Repeating it is harmless.
    """
    failures = 0
    while held:
        now = await Now()
        if await _end_all(context, held, now):
            held.clear()
            return
        failures += 1
        if failures >= tries:
            raise StoreFailed("what a request held is not given back yet")
        await Sleep(await PAUSES.draw(failures))


async def _end_all(context: Context, held: Held, now: Instant) -> bool:
    """Return whether all of it is ended. One part that fails does not keep the others from being tried."""
    is_ended = True
    for end in (_end_tokens, _end_unwrapped, _withdraw_intent, _end_lease):
        try:
            await within(ATTEMPT_SECONDS, end(context, held, now))
        except CloudidError:
            is_ended = False
    return is_ended


async def _end_tokens(context: Context, held: Held, now: Instant) -> None:
    """The tokens go without a look at what is stored: a commit that is under way may store them after the look."""
    changes = Changes()
    if held.token is not None and not held.token.is_batch:
        changes |= held.token.ending(now)
    if held.wrapping is not None:
        changes |= held.wrapping.ending(now)
    if not changes.is_empty:
        await context.records.commit(changes)


async def _withdraw_intent(context: Context, held: Held, now: Instant) -> None:
    if held.intent_id:
        await withdraw(context, held.mount_id, held.intent_id)


async def _end_lease(context: Context, held: Held, now: Instant) -> None:
    if held.lease_id:
        await end_lease(context, held.lease_id, now)


async def _end_unwrapped(context: Context, held: Held, now: Instant) -> None:
    """End what a request has unwrapped. The wrapped answer waits for another request if this one has not taken it yet.

    The commit that takes the answer conflicts from then on.
    """
    unwrapping = held.unwrapping
    if unwrapping is None:
        return
    token = unwrapping.token
    try:
        await context.records.commit(Changes(token.expected, {token.key: token.record}))
    except Conflict:
        try:
            found = await find_token(context, token.record.id)
        except EntryDamaged:
            return  # no request can take it, and nothing shows that this one has
        if found is None or found.record != unwrapping.spent:
            return  # another request has it
        if unwrapping.lease_id:
            await end_lease(context, unwrapping.lease_id, now)
        if unwrapping.token_id:
            await revoke(context, unwrapping.token_id, now)
