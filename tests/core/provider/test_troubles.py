"""Which failures at the provider are trouble, and for how long."""

from __future__ import annotations

from tests.core.system.test_provider_health import engine, problems, upkeep
from tests.engines import CREDS


def test_one_failure_is_no_problem_and_a_failed_minute_is_one() -> None:
    world = engine()
    world.fail("graph", drop=True)
    world.refused("GET", CREDS, x_service_deadline="2")
    assert problems(world) == {}
    world.advance(61)
    world.refused("GET", CREDS, x_service_deadline="2")
    assert "Microsoft Graph has not worked for cloud since" in problems(world)["provider_failing"]


def test_a_family_that_nothing_calls_any_more_is_not_in_trouble_for_long() -> None:
    world = engine()
    world.fail("graph", drop=True)
    for _ in range(2):
        world.refused("GET", CREDS, x_service_deadline="2")
        world.advance(61)
    assert list(problems(world)) == ["provider_failing"]
    world.heal()
    upkeep(world, 960)
    assert problems(world) == {}
