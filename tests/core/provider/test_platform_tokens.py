"""Tokens of the host's own platform: what is tried again, when, and for how long.

Source: "How to use managed identities for Azure resources on a virtual machine to acquire an access token", sections
on error handling and retry guidance: 404, 429 and 5xx are tried again, 410 is an update of at most 70 seconds, and any
other 4xx is final. The vendor's libraries wait for 70 seconds at 410 as well (Azure/azure-sdk-for-python pull request
42330).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cloudid_core.deadline import Deadline
from cloudid_core.effects import PlatformToken, Sleep
from cloudid_core.errors import Code, PlatformTokenUnavailable, Refused
from cloudid_core.provider.platform_tokens import platform_token
from cloudid_core.testing import World
from cloudid_core.values.secret import Secret

START = 1_700_000_000.0
FAR = Deadline(START + 1000)
TOKEN = PlatformToken(Secret("t"), START + 3600)
NO_ANSWER = PlatformTokenUnavailable.NO_ANSWER


def answering(*statuses: int | None) -> Callable[[str, str], PlatformToken]:
    """A platform that gives these answers, the last one again and again; 200 is a token."""
    left = list(statuses)

    def answer(resource: str, client_id: str) -> PlatformToken:
        status = left.pop(0) if left[1:] else left[0]
        if status == 200:
            return TOKEN
        raise PlatformTokenUnavailable("no token", status=status)

    return answer


def pauses(world: World) -> list[float]:
    return [effect.seconds for _, effect in world.trace if isinstance(effect, Sleep)]


@pytest.mark.parametrize("status", [NO_ANSWER, 404, 429, 500, 503, 599])
def test_a_platform_in_trouble_is_asked_again_after_1_2_and_4_seconds(status: int) -> None:
    world = World(platform=answering(status, status, status, 200), start=START)
    assert world.perform(platform_token("r", "", FAR)) == TOKEN
    assert pauses(world) == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("status", [NO_ANSWER, 404, 429, 500])
def test_a_platform_that_stays_in_trouble_has_no_token(status: int) -> None:
    world = World(platform=answering(status), start=START)
    with pytest.raises(PlatformTokenUnavailable):
        world.perform(platform_token("r", "", FAR))
    assert pauses(world) == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("status", [None, 400, 401, 403, 405])
def test_a_refusal_and_a_missing_platform_are_final(status: int | None) -> None:
    world = World(platform=answering(status), start=START)
    with pytest.raises(PlatformTokenUnavailable):
        world.perform(platform_token("r", "", FAR))
    assert pauses(world) == []


def test_an_update_of_the_platform_is_waited_for() -> None:
    world = World(platform=answering(410, 500, 410, 200), start=START)
    assert world.perform(platform_token("r", "", FAR)) == TOKEN
    assert pauses(world) == [10.0, 1.0, 10.0]


def test_an_update_that_takes_longer_than_70_seconds_is_not_waited_for() -> None:
    world = World(platform=answering(410), start=START)
    with pytest.raises(PlatformTokenUnavailable):
        world.perform(platform_token("r", "", FAR))
    assert pauses(world) == [10.0] * 7


@pytest.mark.parametrize("status, seconds, expected", [(410, 25.0, [10.0, 10.0]), (429, 4.0, [1.0, 2.0])])
def test_no_pause_goes_beyond_the_deadline(status: int, seconds: float, expected: list[float]) -> None:
    world = World(platform=answering(status), start=START)
    with pytest.raises(PlatformTokenUnavailable):
        world.perform(platform_token("r", "", Deadline(START + seconds)))
    assert pauses(world) == expected
    assert world.clock <= START + seconds


def test_a_deadline_that_has_passed_is_refused() -> None:
    world = World(platform=answering(200), start=START)
    with pytest.raises(Refused) as refused:
        world.perform(platform_token("r", "", Deadline(START)))
    assert refused.value.code is Code.DEADLINE_PASSED


def test_who_has_a_token_that_is_still_good_asks_once() -> None:
    world = World(platform=answering(429), start=START)
    with pytest.raises(PlatformTokenUnavailable):
        world.perform(platform_token("r", "", FAR, retries=False))
    assert pauses(world) == []
