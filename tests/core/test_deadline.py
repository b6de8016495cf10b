"""Deadlines of requests and jobs."""

from __future__ import annotations

import pytest

from cloudid_core.deadline import Deadline
from cloudid_core.effects import Sleep
from cloudid_core.errors import Code, Refused
from cloudid_core.testing import World


def test_a_deadline_knows_what_is_left() -> None:
    world = World(start=100.0)
    assert world.perform(Deadline(130.0).remaining()) == 30.0


@pytest.mark.parametrize("slept", [30.0, 31.0])
def test_a_deadline_that_has_passed_is_refused(slept: float) -> None:
    async def program() -> float:
        await Sleep(slept)
        return await Deadline(130.0).remaining()

    with pytest.raises(Refused) as refusal:
        World(start=100.0).perform(program())
    assert refusal.value.code is Code.DEADLINE_PASSED
