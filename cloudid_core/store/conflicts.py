"""Retry on conflict: the only way to repeat a program whose commit conflicted with a concurrent one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from ..backoff import Backoff
from ..deadline import Deadline
from ..effects import Now, Program, Sleep
from ..errors import Code, Conflict, Refused

P = ParamSpec("P")
T = TypeVar("T")

PAUSES: Final = Backoff(first=0.004, longest=0.25, spread=(0.0, 1.0))

PATIENCE: Final = 30.0
"""Seconds for which a program without its own deadline is retried."""


def retry_on_conflict(program: Callable[P, Program[T]]) -> Callable[P, Program[T]]:
    """Run a program again each time it raises `Conflict`, after a random pause.

    The retries stop at the deadline of the program's first argument (a `Call` or a `Job`), or after `PATIENCE`, with
    `STORE_CONTENDED`. The program must read everything again that its commit expects.
    """

    @wraps(program)
    async def retrying(*args: P.args, **kwargs: P.kwargs) -> T:
        retries = Retries(getattr(args[0], "deadline", None) if args else None)
        while True:
            try:
                return await program(*args, **kwargs)
            except Conflict:
                pass
            await retries.pause()

    return retrying


class Retries:
    """The pauses between the attempts of one program, each longer than the one before."""

    def __init__(self, deadline: object) -> None:
        self._until = deadline.at if isinstance(deadline, Deadline) else 0.0
        self._number = 0

    async def pause(self) -> None:
        """Wait until the next attempt; `STORE_CONTENDED` if the deadline would have passed by then."""
        now = await Now()
        self._until = self._until or now + PATIENCE
        self._number += 1
        pause = await PAUSES.draw(self._number)
        if now + pause >= self._until:
            raise Refused(Code.STORE_CONTENDED)
        await Sleep(pause)
