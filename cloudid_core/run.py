"""Run programs: answer their effects on a host, without depending on an async library.

Servers and your own hosts call `run`. `run_now` is for hosts that never wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from .effects import Failure, Host, Program, Ready

T = TypeVar("T")


async def run(program: Program[T], host: Host) -> T:
    """Answer the program's effects, one at a time, until it returns.

    A failed effect is raised in the program, where the effect was awaited. Cancellation is not raised in the program:
    it closes the program immediately, like a crash.
    """
    reply: Any = None
    effect: object
    perform_on: Callable[[Host], Awaitable[Any]] | None
    try:
        while True:
            try:
                effect = program.send(reply)
                while (perform_on := getattr(effect, "perform_on", None)) is None:
                    effect = program.throw(TypeError(f"a program may only await effects, not {effect!r}"))
            except StopIteration as finished:
                answer: T = finished.value
                return answer
            try:
                pending = perform_on(host)
                reply = pending.answer if type(pending) is Ready else await pending
            except Exception as error:  # noqa: BLE001  # every failure of an effect belongs to the program
                reply = Failure(error)
    finally:
        program.close()
        reply = None  # a failure refers to this frame, which must not refer back to it


def run_now(program: Program[T], host: Host) -> T:
    """Run a program on a host that never waits, for example in a test, a script or a benchmark."""
    running = run(program, host)
    try:
        running.send(None)
    except StopIteration as finished:
        answer: T = finished.value
        return answer
    finally:
        running.close()
    raise RuntimeError("this host waited: use `run` on an event loop")
