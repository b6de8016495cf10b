"""The route that asks for dead tokens to be removed soon."""

from __future__ import annotations

from typing import Final

from ..context import Due, queue
from ..messages import Answer
from ..mounts import TOKEN
from ..routing import Call
from ..store import Changes, keys

ACCEPTED: Final = 202


async def tidy(call: Call) -> Answer:
    """Ask for a round of removing dead tokens, at whichever node leads; the background does it from time to time."""
    due_key = keys.due(0.0, queue.TIDY, TOKEN.id, "")  # one, however many requests ask
    await call.context.records.commit(Changes(puts={due_key: Due()}))
    return Answer(
        status=ACCEPTED,
        warnings=("dead tokens are removed in the background; another round has been asked for",),
        wake_at=call.now,
    )
