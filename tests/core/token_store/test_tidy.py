"""A round of removing dead tokens can be asked for."""

from __future__ import annotations

from tests.installation import Installation


def test_tidying_asks_for_the_next_round_now_however_often_it_is_asked_for() -> None:
    world = Installation()
    for _ in range(3):
        reply = world.ask("POST", "auth/token/tidy")
        assert (reply.status, len(reply.body["warnings"]), reply.response.wake_at) == (202, 1, world.clock)
    assert len(world.due("tidy")) == 1
    world.tick()
    assert world.due("tidy") == []
