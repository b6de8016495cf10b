"""The limit of a body: a good token raises it, and none of its uses is spent by the question."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.dispatch.body_limit import PUBLIC, UNASKED, WITHOUT_TOKEN
from cloudid_core.effects import Effect, Entry, ReadEntry
from cloudid_core.errors import Refused
from cloudid_core.messages.response import Request
from cloudid_core.testing import FaultKind
from tests.installation import HOME, ROOT, Installation
from tests.tokens import new_token

LIMIT = 2**20
ELSEWHERE = "198.51.100.7"
LOGIN = "auth/cloud/login"
ROLE = "auth/cloud/role/web"


def limit_of(world: Installation, path: str, token: str, address: str = HOME) -> int:
    return world.perform(world.service.body_limit(world.request("POST", path, None, token, address)))


def statuses(world: Installation, path: str, token: str, *sizes: int) -> list[int]:
    """Of requests with bodies of these sizes."""
    headers = {"x-service-token": token}
    requests = (Request("POST", f"/v1/{path}", headers, b" " * size, HOME) for size in sizes)
    return [world.perform(world.service.handle(each)).status for each in requests]


@pytest.mark.parametrize("path", [ROLE, LOGIN, "nowhere", "sys/health"])
def test_a_good_token_raises_the_limit(path: str) -> None:
    assert limit_of(Installation(), path, ROOT) == LIMIT


@pytest.mark.parametrize("path, limit", [(ROLE, WITHOUT_TOKEN), ("nowhere", WITHOUT_TOKEN), (LOGIN, PUBLIC)])
def test_without_a_good_token_bodies_are_short(path: str, limit: int) -> None:
    world = Installation()
    dead = new_token(world, ttl="1m")
    world.must("POST", "auth/token/roles/near", {"token_bound_cidrs": [ELSEWHERE]})
    elsewhere = world.must("POST", "auth/token/create/near", {}).auth["client_token"]
    wrapping = world.must("POST", "sys/wrapping/wrap", {"a": 1}, x_service_wrap_ttl="60").body["wrap_info"]["token"]
    world.advance(60)
    for token in ("", "guess", dead, elsewhere, wrapping):
        assert limit_of(world, path, token) == limit
        assert statuses(world, path, token, limit + 1) == [413]
    assert limit_of(world, path, elsewhere, ELSEWHERE) == LIMIT


def test_a_body_within_the_limit_is_judged_by_what_it_says() -> None:
    world = Installation()
    assert statuses(world, ROLE, "", WITHOUT_TOKEN, WITHOUT_TOKEN + 1) == [403, 413]
    assert statuses(world, LOGIN, "", PUBLIC, PUBLIC + 1) == [400, 413]
    assert statuses(world, "sys/policies/acl/a", ROOT, LIMIT, LIMIT + 1) == [400, 413]


def test_the_limit_of_the_settings_holds_for_everybody() -> None:
    world = Installation(body_limit=2000)
    for token in ("", ROOT):
        assert (limit_of(world, ROLE, token), limit_of(world, LOGIN, token)) == (2000, 2000)
        assert statuses(world, LOGIN, token, 2000, 2001) == [400, 413]


def test_the_question_spends_no_use_of_a_token_and_commits_nothing() -> None:
    world = Installation()
    token = new_token(world, num_uses=1, policies=["root"])
    before = world.store.copy()
    assert limit_of(world, ROLE, token) == LIMIT
    assert world.keys("") == list(before.list("", "", 1000))
    assert world.ask("GET", "sys/mounts", token=token).status == 200
    assert limit_of(world, ROLE, token) == WITHOUT_TOKEN


def test_a_body_that_was_cut_off_is_never_taken_for_a_whole_one() -> None:
    world = Installation()
    request = Request("POST", f"/v1/{ROLE}", {"x-service-token": ROOT}, b"{}", HOME, body_is_cut=True)
    assert world.perform(world.service.handle(request)).codes == ("body_too_large",)
    assert world.ask("GET", ROLE).status == 404


@pytest.mark.parametrize("target", ["/v1/a//b", "/nowhere", "/v1/a%ff", "/v1/sys/mounts?scan=true"])
def test_a_head_that_cannot_be_understood_asks_for_nothing(target: str) -> None:
    world = Installation()
    head = Request("POST", target, {"x-service-token": ROOT})
    assert world.perform(world.service.body_limit(head)) == UNASKED


class Lost(Installation):
    """Nothing can be read once its store is lost."""

    is_lost = False

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        return FaultKind.FAIL if self.is_lost and isinstance(effect, ReadEntry) else super().fault_for(effect)


class Hanging(Installation):
    """Nothing is answered by its store once it hangs."""

    hangs = False

    async def read_entry(self, key: str) -> Entry | None:
        if self.hangs:
            await self.sleep(1000)
        return await super().read_entry(key)


def test_without_a_store_no_long_body_is_read() -> None:
    world = Lost()
    world.restart()
    world.is_lost = True
    assert limit_of(world, ROLE, ROOT) == UNASKED


def test_the_limit_is_found_in_time_even_if_the_store_hangs() -> None:
    """It never raises. `limit_in_time` is for a host that answers without `handle` then."""
    world = Hanging()
    world.restart()
    world.hangs = True
    head = world.request("POST", ROLE, None, ROOT, x_service_deadline="5")
    started_at = world.clock
    assert world.perform(world.service.body_limit(head)) == UNASKED
    assert world.clock - started_at == 5
    with pytest.raises(Refused, match="deadline"):
        world.perform(world.service.limit_in_time(head))
