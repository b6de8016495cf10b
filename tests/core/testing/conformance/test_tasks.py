"""The checks of programs in programs: the world passes, and each notices a host that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.effects import Program, Sleep
from cloudid_core.errors import TimeIsUp
from cloudid_core.run import run
from cloudid_core.testing import NotConforming, World
from cloudid_core.testing.conformance.check import Check
from cloudid_core.testing.conformance.tasks import TASK_CHECKS


@pytest.mark.parametrize("check", TASK_CHECKS, ids=lambda check: check.name)
def test_the_world_passes(check: Check) -> None:
    held_to(check, World)


class OneByOne(World):
    """Runs programs one after the other."""

    async def together(self, programs: tuple[Program[Any], ...]) -> tuple[Any, ...]:
        return tuple([await run(program, self) for program in programs])


class Shuffled(World):
    """Answers in another order."""

    async def together(self, programs: tuple[Program[Any], ...]) -> tuple[Any, ...]:
        return (await super().together(programs))[::-1]


class LastFailure(World):
    """Tells the last failure in order."""

    async def together(self, programs: tuple[Program[Any], ...]) -> tuple[Any, ...]:
        return (await super().together(programs[::-1]))[::-1]


class Grouped(World):
    """Raises failures in a group."""

    async def together(self, programs: tuple[Program[Any], ...]) -> tuple[Any, ...]:
        try:
            return await super().together(programs)
        except Exception as error:  # noqa: BLE001  # whichever it is
            raise ExceptionGroup("failures", [error]) from None


class Patient(World):
    """Lets programs go on when one has failed, or their time is up."""

    async def together(self, programs: tuple[Program[Any], ...]) -> tuple[Any, ...]:
        failures: list[Exception] = []

        async def kept(program: Program[Any]) -> Any:
            try:
                return await program
            except Exception as error:  # noqa: BLE001  # raised below
                failures.append(error)

        answers = await super().together(tuple([kept(program) for program in programs]))
        for failure in failures:
            raise failure
        return answers

    async def within(self, seconds: float, program: Program[Any]) -> Any:
        before = self.clock
        answer = await run(program, self)
        if self.clock - before > seconds:
            raise TimeIsUp
        return answer


class Limitless(World):
    """Knows no limits."""

    async def within(self, seconds: float, program: Program[Any]) -> Any:
        return await run(program, self)


class OutOfTime(World):
    """Its time is always up."""

    async def within(self, seconds: float, program: Program[Any]) -> Any:
        program.close()
        raise TimeIsUp


class Unshared(World):
    """Runs a program for each who asks."""

    async def shared(self, key: str, program: Program[Any]) -> Any:
        return await run(program, self)


class Wasteful(World):
    """Also runs what is not needed."""

    async def shared(self, key: str, program: Program[Any]) -> Any:
        task = self.spawn(program)
        return await super().shared(key, _waiting_for(task))


async def _waiting_for(task: Any) -> Any:
    while not task.is_done:
        await Sleep(0.001)
    return task.result()


class OneKey(World):
    """Takes all keys for the same."""

    async def shared(self, key: str, program: Program[Any]) -> Any:
        return await super().shared("", program)


class Owned(World):
    """A shared program ends with the first who asked."""

    async def shared(self, key: str, program: Program[Any]) -> Any:
        is_first = key not in self._shared or self._shared[key].is_done
        try:
            return await super().shared(key, program)
        except GeneratorExit:
            if is_first and key in self._shared:
                self._shared[key].close()
            raise


NOTICED: list[tuple[type[World], str]] = [
    (Shuffled, "together_answers_in_order"),
    (OneByOne, "together_runs_side_by_side"),
    (LastFailure, "together_raises_the_first_failure_in_order"),
    (Grouped, "together_raises_the_first_failure_in_order"),
    (Patient, "together_closes_the_others_when_one_fails"),
    (Shuffled, "together_nests"),
    (Grouped, "a_failure_of_programs_in_parallel_can_be_handled"),
    (OutOfTime, "within_answers_what_is_done_in_time"),
    (Patient, "within_closes_what_takes_too_long"),
    (Limitless, "within_closes_what_takes_too_long"),
    (Limitless, "within_nests"),
    (OutOfTime, "within_nests"),
    (Patient, "within_closes_programs_in_parallel"),
    (Unshared, "shared_runs_once_for_all_who_ask"),
    (OneKey, "shared_runs_once_for_all_who_ask"),
    (Unshared, "shared_raises_its_failure_for_all_who_ask"),
    (Unshared, "shared_goes_on_when_an_asker_is_cut_off"),
    (Owned, "shared_goes_on_when_an_asker_is_cut_off"),
    (Unshared, "shared_closes_what_is_not_needed"),
    (Wasteful, "shared_closes_what_is_not_needed"),
    (OneKey, "shared_programs_can_ask_for_others"),
]


def held_to(check: Check, host: type[World]) -> None:
    for seed in range(20):
        host(seed).perform(check())


@pytest.mark.parametrize("wrong, name", NOTICED, ids=lambda value: getattr(value, "__name__", value))
def test_a_wrong_host_is_noticed(wrong: type[World], name: str) -> None:
    (check,) = (check for check in TASK_CHECKS if check.name == name)
    with pytest.raises((NotConforming, ExceptionGroup, TimeIsUp, RuntimeError)):
        held_to(check, wrong)


def test_every_check_notices_something() -> None:
    assert {name for _, name in NOTICED} == {check.name for check in TASK_CHECKS}
