"""Checks of the effects that carry programs: in parallel, in time, and once for all who ask."""

from __future__ import annotations

from inspect import CORO_CLOSED, getcoroutinestate
from typing import Any, Final

from ...effects import Commit, Program, ReadEntry, Sleep, gather, shared, together, within
from ...errors import TimeIsUp
from .check import Check, NotConforming, checks_of, expect, fresh_prefix

MOMENT: Final = 0.02
LONG: Final = 30.0
PATIENCE: Final = 1000
"""Moments after which what has not happened does not happen."""

LATER: Final = 25
"""Moments after which everybody else has had a turn, on a machine that is busy."""


NAPS: Final = 100
"""Moments in which everybody else has had a turn, even where that takes as long as it can."""


class Trouble(Exception):
    """What fails here."""


async def after(moments: int, answer: str) -> str:
    await Sleep(moments * MOMENT)
    return answer


async def failing(name: str, moments: int | None = None) -> str:
    """Fail, after some time or without any effect at all."""
    if moments is not None:
        await Sleep(moments * MOMENT)
    raise Trouble(name)


async def endless(closed: list[str], name: str = "endless") -> str:
    """Sleep, and note when that is cut short."""
    is_awake = False
    try:
        await Sleep(LONG)
        is_awake = True
    finally:
        if not is_awake:
            closed.append(name)
    return name


async def appearing(key: str) -> None:
    """Wait until an entry is there."""
    for _ in range(PATIENCE):
        if await ReadEntry(key) is not None:
            return
        await Sleep(MOMENT)
    raise NotConforming("programs do not run side by side")


async def failure_of(program: Program[Any]) -> tuple[type[Exception], str]:
    """Type and text of what a program raises."""
    try:
        answer = await program
    except NotConforming:
        raise
    except Exception as error:  # noqa: BLE001  # which one it is, is the question
        return type(error), str(error)
    raise NotConforming(f"{answer!r} where a failure is right")


# What all others rest on


async def flaw_in_time() -> str:
    """Why a host cannot be held to checks that need time, found in seconds whatever the host does; empty: it can."""
    try:
        await within(MOMENT, napping())
    except TimeIsUp:
        pass
    except Exception as error:  # noqa: BLE001  # the check of `within` finds out which one it is
        return f"not run: within fails with {type(error).__name__}"
    else:
        return "not run: within does not end a program whose time is up"
    try:
        is_met = await within(LONG, meeting())
    except Exception as error:  # noqa: BLE001  # which one it is, the checks of `together` tell
        return f"not run: together fails with {type(error).__name__}"
    return "" if is_met else "not run: together does not run programs side by side"


async def napping() -> None:
    for _ in range(NAPS):
        await Sleep(MOMENT)


async def meeting() -> bool:
    """Whether a program continues while another one sleeps."""
    arrived: list[str] = []

    async def wait() -> bool:
        for _ in range(NAPS):
            if arrived:
                return True
            await Sleep(MOMENT)
        return False

    async def arrive() -> None:
        arrived.append("here")

    is_met, _ = await together(wait(), arrive())
    return is_met


# Together


async def together_answers_in_order() -> None:
    expect("the answers of programs in parallel", await together(after(2, "a"), after(0, "b")), ("a", "b"))
    no_programs: list[Program[str]] = []
    expect("the answers of no programs", await gather(no_programs), [])
    expect("the answer of one program", await gather([after(0, "a")]), ["a"])


async def together_runs_side_by_side() -> None:
    """Each of two waits for the other."""
    prefix = await fresh_prefix()

    async def meet(mine: str, other: str) -> None:
        await Commit({}, {prefix + mine: b""})
        await appearing(prefix + other)

    await together(meet("a", "b"), meet("b", "a"))


async def together_raises_the_first_failure_in_order() -> None:
    """Of programs that fail at the same time; bare, in no group."""
    programs = [after(1, "fine"), failing("first"), failing("second")]
    expect("the failure of several", await failure_of(gather(programs)), (Trouble, "first"))
    expect("the failure of one", await failure_of(together(after(0, "a"), failing("b", 1))), (Trouble, "b"))


async def together_closes_the_others_when_one_fails() -> None:
    """Before the failure is raised."""
    closed: list[str] = []
    programs = [endless(closed, "a"), failing("fast", 1), endless(closed, "c"), failing("slow", 1000)]
    expect("the failure of the fastest", await failure_of(gather(programs)), (Trouble, "fast"))
    expect("the programs that were closed", sorted(closed), ["a", "c"])


async def together_nests() -> None:
    closed: list[str] = []
    answers = await together(together(after(1, "a"), after(0, "b")), after(0, "c"))
    expect("the answers of nested programs", answers, (("a", "b"), "c"))
    nested = together(endless(closed, "outer"), together(endless(closed, "inner"), failing("deep", 1)))
    expect("the failure of a nested program", await failure_of(nested), (Trouble, "deep"))
    expect("the programs around it that were closed", sorted(closed), ["inner", "outer"])


async def a_failure_of_programs_in_parallel_can_be_handled() -> None:
    """And what follows runs as ever."""
    kind, _ = await failure_of(together(failing("a", 0), after(1000, "b")))
    expect("the failure of one of two programs", kind, Trouble)
    expect("the answers after a failure", await together(after(0, "a"), after(0, "b")), ("a", "b"))


# Within


async def within_answers_what_is_done_in_time() -> None:
    expect("an answer in time", await within(LONG, after(1, "done")), "done")
    expect("a failure in time", await failure_of(within(LONG, failing("broken", 1))), (Trouble, "broken"))


async def within_closes_what_takes_too_long() -> None:
    """Before `TimeIsUp` is raised."""
    closed: list[str] = []
    kind, _ = await failure_of(within(MOMENT, endless(closed)))
    expect("the failure when time is up", kind, TimeIsUp)
    expect("the programs that were closed", closed, ["endless"])


async def within_nests() -> None:
    """The shorter time counts, and `TimeIsUp` is raised where it was set."""
    closed: list[str] = []

    async def inner_is_shorter() -> str:
        kind, _ = await failure_of(within(MOMENT, endless(closed, "inner")))
        return kind.__name__

    expect("the failure at the inner limit", await within(LONG, inner_is_shorter()), "TimeIsUp")
    kind, _ = await failure_of(within(MOMENT, within(LONG, endless(closed, "outer"))))
    expect("the failure at the outer limit", kind, TimeIsUp)
    expect("the programs that were closed", closed, ["inner", "outer"])


async def within_closes_programs_in_parallel() -> None:
    closed: list[str] = []
    kind, _ = await failure_of(within(MOMENT, together(endless(closed, "a"), endless(closed, "b"))))
    expect("the failure when time is up", kind, TimeIsUp)
    expect("the programs that were closed", sorted(closed), ["a", "b"])


# Shared


async def shared_runs_once_for_all_who_ask() -> None:
    """And again for later callers."""
    key = await fresh_prefix()
    runs: list[int] = []

    async def count() -> int:
        runs.append(1)
        await Sleep(MOMENT)
        return len(runs)

    answers = await gather([shared(key, count()) for _ in range(5)])
    expect("the answers of a shared program", answers, [1] * 5)
    expect("the answer of the next one", await shared(key, count()), 2)
    both = await together(shared(key, after(1, "a")), shared(key + "other", after(1, "b")))
    expect("the answers of programs under two keys", both, ("a", "b"))


async def shared_raises_its_failure_for_all_who_ask() -> None:
    key = await fresh_prefix()
    failures = await gather([failure_of(shared(key, failing(str(number), 1))) for number in range(3)])
    expect("how many failures three askers see", len(set(failures)), 1)
    expect("their type", failures[0][0], Trouble)


async def shared_goes_on_when_an_asker_is_cut_off() -> None:
    """Even the first one, in whose name it was started."""
    key = await fresh_prefix()

    async def impatient() -> str:
        kind, _ = await failure_of(within(MOMENT, shared(key, after(LATER, "first"))))
        return kind.__name__

    async def patient() -> str:
        await Sleep(MOMENT / 2)
        return await shared(key, after(LATER, "second"))

    answers = await together(impatient(), patient())
    expect("the answers of an impatient and a patient asker", answers, ("TimeIsUp", "first"))


async def shared_closes_what_is_not_needed() -> None:
    """A program that is not needed, because one is under way, is closed before its first step."""
    key = await fresh_prefix()
    started: list[str] = []

    async def note(name: str) -> str:
        started.append(name)
        await Sleep(LATER * MOMENT)
        return name

    async def late(program: Program[str]) -> str:
        await Sleep(MOMENT)
        return await shared(key, program)

    unneeded = note("late")
    answers = await together(shared(key, note("early")), late(unneeded))
    expect("the answers", answers, ("early", "early"))
    expect("the programs that were started", started, ["early"])
    expect("the state of the one that was not needed", getcoroutinestate(unneeded), CORO_CLOSED)


async def shared_programs_can_ask_for_others() -> None:
    key = await fresh_prefix()

    async def outer() -> str:
        return await shared(key + "inner", after(1, "inner"))

    answers = await together(shared(key + "outer", outer()), shared(key + "inner", after(1, "inner")))
    expect("the answers of nested shared programs", answers, ("inner", "inner"))


TASK_CHECKS: Final[tuple[Check, ...]] = checks_of(
    together_answers_in_order,
    together_runs_side_by_side,
    together_raises_the_first_failure_in_order,
    together_closes_the_others_when_one_fails,
    together_nests,
    a_failure_of_programs_in_parallel_can_be_handled,
    within_answers_what_is_done_in_time,
    within_closes_what_takes_too_long,
    within_nests,
    within_closes_programs_in_parallel,
    shared_runs_once_for_all_who_ask,
    shared_raises_its_failure_for_all_who_ask,
    shared_goes_on_when_an_asker_is_cut_off,
    shared_closes_what_is_not_needed,
    shared_programs_can_ask_for_others,
    waits=True,
)
