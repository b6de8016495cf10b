"""What the background does for leases, intents and tokens that are due."""

from __future__ import annotations

from typing import Final

from .. import due
from ..due import Due, Work
from ..effects import ListKeys, Now
from ..journal import find_intent, undo
from ..store import keys
from ..store.records import Found
from ..tokens.authenticate import find_token
from ..tokens.family import settle_children
from ..tokens.record import Token
from .record import find_lease
from .revocation import end_leases, revoke

PAGE: Final = 100
"""How many leases are ended in one commit."""


async def end_lease_when_due(work: Work) -> None:
    """Revoke a lease that has expired or was told to end."""
    found = await find_lease(work.context, work.ref)
    if found is None or found.record.due_key != work.key:
        await due.drop(work, keys.lease(work.ref), found)
    else:
        await revoke(work, found)


async def end_intent(work: Work) -> None:
    """Undo an intent whose request can no longer live."""
    found = await find_intent(work.context, work.mount_id, work.ref)
    if found is None or found.record.due_key != work.key:
        await due.drop(work, keys.intent(work.mount_id, work.ref), found)
    else:
        await undo(work, found)


async def end_token(work: Work) -> None:
    """End what hangs on a dead token: its leases, its children, and theirs; wait on if it lives.

    Its entry goes first: nothing can be hung on it from then on. The due entry goes last, so that this is done again
    until nothing is left.
    """
    records = work.context.records
    found = await find_token(work.context, work.ref)
    if found is not None and found.record.is_alive(work.now):
        await _wait_on(work, found)
        return
    released = found is not None and found.record.released
    if found is not None and not released:
        await records.commit({**work.fence, **found.expected}, deletes=found.record.own_keys)
    if await _end_leases(work) and await settle_children(work, released=released):
        entry = (found.key,) if found is not None and released else ()
        await records.commit(work.fence, deletes=(work.key, *entry))


async def _wait_on(work: Work, found: Found[Token]) -> None:
    """Look again when the token ends, as far as is known now."""
    ends_at = found.record.expires_at
    again = {} if ends_at is None else {found.record.due_key(ends_at): Due()}
    await work.context.records.commit({**work.fence, **found.expected}, again, () if work.key in again else (work.key,))


async def _end_leases(work: Work) -> bool:
    """End the leases that hang on a token, a page at a time; false when there is no time for all of them."""
    prefix = keys.token_leases(work.ref)
    while page := await ListKeys(prefix, "", PAGE):
        if await Now() >= work.deadline.at:
            return False
        await end_leases(work.context, [key.removeprefix(prefix) for key in page], work.now, fence=work.fence)
        # One that was ending already, or is gone, does not hang on the token either.
        await work.context.records.commit(work.fence, deletes=page)
    return True
