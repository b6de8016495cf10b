"""Dead tokens are removed."""

from __future__ import annotations

import pytest

from cloudid_core.effects import ListKeys, ReadEntries, Sleep
from cloudid_core.tokens import sweep
from tests.installation import Installation
from tests.tokens import is_valid, new_token


def test_dead_tokens_are_swept_with_all_their_entries_and_living_ones_stay() -> None:
    world = Installation()
    parent = new_token(world)
    dead, alive = new_token(world, parent, ttl=60), new_token(world, parent, ttl=600)
    world.advance(60)
    world.tick()
    assert len(world.keys("token/")) == 3
    assert len(world.keys("child/")) == 2
    assert is_valid(world, alive)
    assert not is_valid(world, dead)


def test_a_dead_token_is_not_swept_before_its_dependants() -> None:
    """Its due entry removes it, children first."""
    world = Installation()
    parent = new_token(world, ttl=60)
    new_token(world, parent, ttl=10**5)
    context = world.context
    world.advance(60)
    assert world.perform(sweep.Sweep().run(context, {}, world.clock)) == 0
    assert len(world.keys("token/")) == 3
    world.pass_time(3)
    assert len(world.keys("token/")) == 1


def test_the_sweep_reads_page_by_page_and_starts_again_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PAGE", 2)
    world = Installation()
    for _ in range(5):
        new_token(world, ttl=60, no_parent=True)
    world.advance(60)
    broom = sweep.Sweep()
    assert [world.perform(broom.run(world.context, {}, world.clock)) for _ in range(2)] == [5, 0]


@pytest.mark.parametrize("dead", range(6))
def test_a_dead_token_is_removed_wherever_in_a_page_it_is(dead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first, the last and the last one of all, in one round that looks at each token once."""
    monkeypatch.setattr(sweep, "PAGE", 3)
    world = Installation()
    world.advance(1)
    for number in range(6):
        new_token(world, ttl=60 if number == dead else 600, no_parent=True)
        world.advance(1)
    world.advance(60)
    before = len(world.trace)
    assert world.perform(sweep.Sweep().run(world.context, {}, world.clock)) == 1
    assert len(world.keys("token/")) == 6
    read = [key for _, effect in world.trace[before:] if isinstance(effect, ReadEntries) for key in effect.keys]
    assert len(read) == len(set(read)) == 7


def test_a_round_removes_all_that_is_dead_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the store grows without bound once logins are faster than the sweep."""
    monkeypatch.setattr(sweep, "PAGE", 10)
    world = Installation()
    for _ in range(150):
        new_token(world, ttl=60, no_parent=True)
    world.advance(60)
    world.tick()
    assert len(world.keys("token/")) == 1


def test_pages_without_dead_tokens_end_a_round_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PAGE", 1)
    monkeypatch.setattr(sweep, "QUIET_PAGES", 2)
    world = Installation()
    for ttl in (600, 600, 60):
        new_token(world, ttl=ttl, no_parent=True)
        world.advance(1)
    world.advance(60)
    broom = sweep.Sweep()
    assert [world.perform(broom.run(world.context, {}, world.clock)) for _ in range(2)] == [0, 1]


def test_requests_run_between_two_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even on a host that never waits for its store."""
    monkeypatch.setattr(sweep, "PAGE", 2)
    world = Installation()
    for _ in range(4):
        new_token(world, ttl=60, no_parent=True)
    world.advance(60)
    before = len(world.trace)
    world.perform(sweep.Sweep().run(world.context, {}, world.clock))
    made = [type(effect) for _, effect in world.trace[before:] if isinstance(effect, ListKeys | Sleep)]
    assert made == [ListKeys, Sleep, ListKeys, Sleep, ListKeys]


def test_a_token_that_changes_meanwhile_stops_only_its_page() -> None:
    world = Installation()
    new_token(world, ttl=60)
    world.advance(60)
    assert world.perform(sweep.Sweep().run(world.context, {"duty/term": 99}, world.clock)) == 0
    assert len(world.keys("token/")) == 2


def test_tidying_asks_for_the_next_round_now_however_often_it_is_asked_for() -> None:
    world = Installation()
    for _ in range(3):
        reply = world.ask("POST", "auth/token/tidy")
        assert (reply.status, len(reply.body["warnings"]), reply.response.wake_at) == (202, 1, world.clock)
    assert len(world.due("tidy")) == 1
    world.tick()
    assert world.due("tidy") == []
