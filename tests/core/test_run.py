"""The loop: answers, failures and their context, foreign awaitables, closing."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Generator
from typing import Any, cast

import pytest

from cloudid_core.effects import Commit, Entry, Instant, Now, ReadEntry, Ready, Sleep
from cloudid_core.errors import StoreFailed
from cloudid_core.run import run, run_now
from tests.core.never_waits import NeverWaits


class BrokenStore(NeverWaits):
    """A host whose store is down."""

    async def read_entry(self, key: str) -> Entry | None:
        raise StoreFailed(f"no {key}")


class AnswersInPlace:
    """A host without coroutines: an answer is ready, or a failure is raised, when the effect is asked for."""

    def now(self) -> Ready[Instant]:
        return Ready(7.0)

    def read_entry(self, key: str) -> Ready[Entry | None]:
        raise StoreFailed(f"no {key}")


class Waits(NeverWaits):
    """A host that has to wait for the time."""

    async def now(self) -> Instant:
        await Forever()
        return 0.0


class Forever:
    """Something that only an event loop could wait for."""

    def __await__(self) -> Generator[str, None, None]:
        yield "wait"


def test_effects_are_answered_one_by_one() -> None:
    async def program() -> list[object]:
        version = await Commit({}, {"a": b"1"})
        await Sleep(60)
        return [version, await ReadEntry("a"), await Now()]

    assert run_now(program(), NeverWaits()) == [1, Entry(b"1", 1), 1_700_000_000.0]


def test_an_answer_that_is_ready_needs_no_coroutine() -> None:
    async def program() -> tuple[Instant, str]:
        try:
            await ReadEntry("a")
        except StoreFailed as failure:
            return await Now(), str(failure)
        return 0.0, ""

    assert run_now(program(), cast("Any", AnswersInPlace())) == (7.0, "no a")


def test_an_answer_that_is_ready_can_be_awaited() -> None:
    async def ask() -> Instant:
        return await Ready(7.0)

    assert asyncio.run(ask()) == 7.0


def test_a_program_without_effects_just_returns() -> None:
    async def program() -> str:
        return "done"

    assert run_now(program(), NeverWaits()) == "done"


def test_a_failed_effect_is_raised_at_the_line_that_asked_for_it() -> None:
    async def inner() -> None:
        await ReadEntry("a")

    async def program() -> None:
        await inner()

    with pytest.raises(StoreFailed, match="no a") as failure:
        run_now(program(), BrokenStore())
    names = [frame.name for frame in traceback.extract_tb(failure.tb)]
    assert [name for name in names if name in ("program", "inner")] == ["program", "inner"]


def test_a_program_can_handle_a_failure_and_go_on() -> None:
    async def program() -> Instant:
        try:
            await ReadEntry("a")
        except StoreFailed:
            return await Now()
        return 0.0

    assert run_now(program(), BrokenStore()) == 1_700_000_000.0


def test_a_bug_of_the_host_reaches_the_program_too() -> None:
    """It is answered with status 500 there; the loop goes on."""

    class Buggy(NeverWaits):
        async def now(self) -> Instant:
            return 1 / 0

    async def program() -> str:
        try:
            await Now()
        except ZeroDivisionError:
            return "internal error"
        return "fine"

    assert run_now(program(), Buggy()) == "internal error"


def test_a_failure_keeps_the_context_of_what_was_being_handled() -> None:
    """With `coroutine.throw` the innermost of three would be lost."""

    async def program() -> None:
        try:
            raise ValueError("first")
        except ValueError:
            try:
                raise KeyError("second")
            except KeyError:
                await ReadEntry("third")

    with pytest.raises(StoreFailed) as failure:
        run_now(program(), BrokenStore())
    second = failure.value.__context__
    assert isinstance(second, KeyError)
    assert isinstance(second.__context__, ValueError)


@pytest.mark.parametrize("foreign", [Forever(), asyncio.sleep], ids=["own", "asyncio"])
def test_a_foreign_awaitable_is_refused_at_its_line(foreign: Any) -> None:
    async def guilty() -> None:
        await (foreign(0) if foreign is asyncio.sleep else foreign)

    with pytest.raises(TypeError, match="a program may only await effects, not ") as failure:
        run_now(guilty(), NeverWaits())
    assert "guilty" in [frame.name for frame in traceback.extract_tb(failure.tb)]


def test_a_program_that_hides_a_foreign_awaitable_goes_on_with_its_next_effect() -> None:
    async def program() -> object:
        for foreign in (Forever(), Forever()):
            try:
                await foreign
            except TypeError:
                continue
        return await Commit({}, {"a": b"1"})

    assert run_now(program(), NeverWaits()) == 1


def test_a_program_may_return_instead_of_awaiting_something_foreign() -> None:
    async def program() -> str:
        try:
            await Forever()
        except TypeError:
            return "sorry"
        return "fine"

    assert run_now(program(), NeverWaits()) == "sorry"


def test_a_forgotten_await_warns() -> None:
    """A program that nobody awaits did nothing, and Python says so."""

    async def write() -> None:
        await Commit({}, {"a": b"1"})

    async def program() -> None:
        write()  # type: ignore[unused-coroutine]

    host = NeverWaits()
    with pytest.warns(RuntimeWarning, match="write' was never awaited"):
        run_now(program(), host)
    assert host.store.read("a") is None


def test_a_host_that_waits_needs_an_event_loop() -> None:
    closed: list[str] = []

    async def program() -> None:
        try:
            await Now()
        finally:
            closed.append("program")

    with pytest.raises(RuntimeError, match="this host waited"):
        run_now(program(), Waits())
    assert closed == ["program"]


def test_cancellation_closes_the_program_on_the_spot() -> None:
    """Synchronous clean-up runs, effects do not, and no `except Exception` sees it."""
    host = Waits()
    seen: list[str] = []

    async def program() -> None:
        try:
            await Now()
        except Exception:  # noqa: BLE001  # what must not happen
            seen.append("failure")
        finally:
            seen.append("closed")
        await Commit({}, {"a": b"1"})

    running = run(program(), host)
    running.send(None)
    running.close()
    assert seen == ["closed"]
    assert host.store.read("a") is None


def test_clean_up_that_awaits_is_loud() -> None:
    async def program() -> None:
        try:
            await Now()
        finally:
            await Commit({}, {"a": b"1"})

    host = Waits()
    running = run(program(), host)
    running.send(None)
    with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
        running.close()
    assert host.store.read("a") is None


def test_what_is_no_failure_leaves_the_loop_and_closes_the_program() -> None:
    """The interrupt of a process, say: no program may handle it."""
    seen: list[str] = []

    class Interrupted(NeverWaits):
        async def now(self) -> Instant:
            raise KeyboardInterrupt

    async def program() -> None:
        try:
            await Now()
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    with pytest.raises(KeyboardInterrupt):
        run_now(program(), Interrupted())
    assert seen == ["GeneratorExit"]


def test_a_program_runs_once() -> None:
    async def program() -> None:
        await Now()

    running = program()
    run_now(running, NeverWaits())
    with pytest.raises(RuntimeError, match="cannot reuse"):
        run_now(running, NeverWaits())


def test_the_loop_runs_on_an_event_loop() -> None:
    class Asyncio(NeverWaits):
        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(0)

    async def program() -> Instant:
        await Sleep(1)
        return await Now()

    waiting: Awaitable[Instant] = run(program(), Asyncio())
    assert asyncio.run(_await(waiting)) == 1_700_000_000.0


async def _await(waiting: Awaitable[Instant]) -> Instant:
    return await waiting
