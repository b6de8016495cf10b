"""Revoke what a request has created if its caller does not receive it.

A lease, a token or a wrapped response is noted in `Held` before the commit that creates it. If the request passes its
deadline, is cancelled, or cannot be recorded or delivered, `give_back` revokes everything that it held. The commit
itself may still land later. The commit of a lease then conflicts, because the intent that it expects was withdrawn. The
commit of a token has nothing to expect that could be changed, and one more expectation would cost every login. Instead,
the deletion relies on the order of commits, which `Commit` guarantees.
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
"""Seconds after which a call to the store is repeated."""

PAUSES: Final = Backoff(first=0.2, longest=10.0)


async def give_back(context: Context, held: Held, *, tries: float = inf) -> None:
    """Revoke what a request held. A failing store is called up to `tries` times.

    Calling it repeatedly is harmless.
    """
    failures = 0
    while held:
        now = await Now()
        if await _end_all(context, held, now):
            held.clear()
            return
        failures += 1
        if failures >= tries:
            raise StoreFailed("objects of a failed request are not released yet")
        await Sleep(await PAUSES.draw(failures))


async def _end_all(context: Context, held: Held, now: Instant) -> bool:
    """Return whether everything is revoked. If one part fails, the others are still tried."""
    is_ended = True
    for end in (_end_tokens, _end_unwrapped, _withdraw_intent, _end_lease):
        try:
            await within(ATTEMPT_SECONDS, end(context, held, now))
        except CloudidError:
            is_ended = False
    return is_ended


async def _end_tokens(context: Context, held: Held, now: Instant) -> None:
    """Delete the tokens without reading them first, because a pending commit may store them after the read."""
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
    """End what a request has unwrapped.

    If this request has not taken the wrapped response yet, it stays available to others.

    A later commit that takes the response conflicts.
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
