"""The route that asks for dead tokens to be removed soon."""

from __future__ import annotations

from typing import Final

from ..context import Due, queue
from ..forms import schemas
from ..messages import WRITE, Answer
from ..mounts import TOKEN
from ..routing import Answers, Call, route
from ..store import Changes, keys

ACCEPTED: Final = 202


@route("tidy", WRITE, Answers(accepted=schemas.NULL))
async def tidy(call: Call) -> Answer:
    """Asks for dead tokens to be removed soon."""
    due_key = keys.due(0.0, queue.TIDY, TOKEN.id, "")  # one, however many requests ask
    await call.context.records.commit(Changes(puts={due_key: Due()}))
    return Answer(
        status=ACCEPTED,
        warnings=("dead tokens are removed in the background; another round has been asked for",),
        wake_at=call.now,
    )
