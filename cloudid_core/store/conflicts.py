"""Retry on conflict: the one way to repeat a program whose commit lost against a concurrent one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from ..deadline import Deadline
from ..effects import Now, Program, RandomBytes, Sleep
from ..errors import Code, Conflict, Refused

P = ParamSpec("P")
T = TypeVar("T")

FIRST_PAUSE: Final = 0.004
LONGEST_PAUSE: Final = 0.25
"""Bounds in seconds of the pause before a retry. It doubles each time, and a random part of it is waited."""

PATIENCE: Final = 30.0
"""Seconds for which a program without a deadline of its own is retried."""


def retry_on_conflict(program: Callable[P, Program[T]]) -> Callable[P, Program[T]]:
    """Let a program run anew each time it raises `Conflict`, after a jittered pause.

    The retries stop at the deadline of the program's first argument (a `Call` or a `Job`), or after `PATIENCE`.
    `STORE_CONTENDED` is refused then. The program must read everything anew that its commit rests on.
    """

    @wraps(program)
    async def retrying(*args: P.args, **kwargs: P.kwargs) -> T:
        pause, until = FIRST_PAUSE, 0.0
        while True:
            try:
                return await program(*args, **kwargs)
            except Conflict:
                pass
            now = await Now()
            until = until or _deadline_in(args, now)
            jitter = int.from_bytes(await RandomBytes(2)) / 2**16
            if now + pause * jitter >= until:
                raise Refused(Code.STORE_CONTENDED)
            await Sleep(pause * jitter)
            pause = min(2 * pause, LONGEST_PAUSE)

    return retrying


def _deadline_in(args: tuple[Any, ...], now: float) -> float:
    deadline = getattr(args[0], "deadline", None) if args else None
    return deadline.at if isinstance(deadline, Deadline) else now + PATIENCE
