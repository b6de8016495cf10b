"""A request gives back what it held: a lease, a token, a wrapped answer. The simulation does so at each effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from cloudid_core.background.nodes import COMMIT_SECONDS
from cloudid_core.context import Context
from cloudid_core.delivery import TRIES, give_back
from cloudid_core.effects import Commit, Effect
from cloudid_core.errors import StoreFailed
from cloudid_core.health import HealthProblem
from cloudid_core.messages.response import Response
from cloudid_core.routing import Held, Route
from cloudid_core.testing import Stall
from cloudid_core.tokens import find_by_text
from tests.installation import Installation, Reply
from tests.logins import configure_logins, login_form
from tests.properties.work import METHODS, path_of, routes
from tests.tokens import is_valid, new_token

WRAPPED: Final = {"x_vault_wrap_ttl": "60"}


class Failing(Installation):
    """The next commits fail, as many as `failures`."""

    failures = 0

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        if self.failures:
            self.failures -= 1
            raise StoreFailed("the store is away")
        return await super().commit(expects, puts, deletes)


class Stalling(Installation):
    """Its next commit is made, but no one hears of it."""

    stalls = False

    def stall_for(self, effect: Effect[Any]) -> Stall | None:
        if not (self.stalls and isinstance(effect, Commit)):
            return None
        self.stalls = False
        return Stall.AFTER


def log_in(world: Installation) -> Response:
    form = login_form(world, configure_logins(world))
    return world.perform(world.service.handle(world.request("POST", "auth/cloud/login", form, token="")))


def create(world: Installation) -> Response:
    return world.perform(world.service.handle(world.request("POST", "auth/token/create", {"ttl": "1h"})))


@pytest.mark.parametrize("ask", [log_in, create])
def test_the_token_of_an_undelivered_answer_ends(ask: Callable[[Installation], Response]) -> None:
    world = Installation()
    response = ask(world)
    token = Reply.of(response).auth["client_token"]
    assert response.gives
    assert is_valid(world, token)
    world.perform(world.service.undelivered(response))
    assert not is_valid(world, token)


def test_a_wrapped_answer_that_was_not_delivered_cannot_be_unwrapped() -> None:
    world = Installation()
    response = world.perform(world.service.handle(world.request("GET", "sys/mounts", **WRAPPED)))
    token = Reply.of(response).body["wrap_info"]["token"]
    before = world.keys("wrapped")
    world.perform(world.service.undelivered(response))
    assert before
    assert world.keys("wrapped") == []
    assert world.refused("POST", "sys/wrapping/unwrap", {"token": token}, "") == (400, "wrapping_token_invalid")


def test_what_was_unwrapped_and_not_delivered_ends() -> None:
    world = Installation()
    wrapped = world.must("POST", "auth/token/create", {"ttl": "1h"}, **WRAPPED).body["wrap_info"]["token"]
    request = world.request("POST", "sys/wrapping/unwrap", {"token": wrapped}, token="")
    response = world.perform(world.service.handle(request))
    world.perform(world.service.undelivered(response))
    assert not is_valid(world, Reply.of(response).auth["client_token"])


def test_what_another_request_unwrapped_stays() -> None:
    """A request that loses the race for an answer, and is then closed, ends nothing."""
    world = Installation()
    wrapped = world.must("POST", "auth/token/create", {"ttl": "1h"}, **WRAPPED).body["wrap_info"]["token"]
    body = {"token": wrapped}
    late = world.service.begin(world.request("POST", "sys/wrapping/unwrap", body, token=""))
    received: list[str] = []
    original = world.commit

    async def commit(expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        world.commit = original  # type: ignore[method-assign]
        node = Installation.copy_of(world)
        node.store = world.store
        received.append(node.must("POST", "sys/wrapping/unwrap", body, token="").auth["client_token"])
        return await original(expects, puts, deletes)

    world.commit = commit  # type: ignore[method-assign]
    assert world.perform(world.service.work_on(late)).status == 400
    world.perform(world.service.give_back(late.held))
    assert is_valid(world, received[0])


def test_what_a_cancelled_request_held_is_given_back_by_the_next_upkeep() -> None:
    world = Stalling()
    before = set(world.keys("token/"))
    world.stalls = True
    task = world.spawn(world.service.handle(world.request("POST", "auth/token/create", {"ttl": "1h"})))
    world.advance(1.0)
    task.close()
    assert set(world.keys("token/")) - before
    world.perform(world.service.upkeep())
    assert set(world.keys("token/")) == before


def test_a_store_that_fails_is_called_again() -> None:
    world = Failing()
    token = new_token(world)
    found = world.perform(find_by_text(world.context, token))
    assert found is not None
    world.failures = 10
    world.perform(give_back(world.context, Held(token=found)))
    assert not is_valid(world, token)


def test_a_caller_that_waits_does_not_wait_forever() -> None:
    world = Failing()
    found = world.perform(find_by_text(world.context, new_token(world)))
    world.failures = 3
    with pytest.raises(StoreFailed):
        world.perform(give_back(world.context, Held(token=found), tries=3))


def test_nothing_is_given_back_twice() -> None:
    world = Installation()
    held = Held(token=world.perform(find_by_text(world.context, new_token(world))))
    world.perform(give_back(world.context, held))
    assert not held
    effects = len(world.trace)
    world.perform(give_back(world.context, held))
    assert len(world.trace) == effects


PUBLIC: Final = [(mount, route) for mount, route in routes() if route.public]
FORGED: Final = {"role": "r1", "jwt": "x.y.z", "token": "unknown"}


@pytest.mark.parametrize(("mount", "route"), PUBLIC, ids=lambda part: part if isinstance(part, str) else part.path)
def test_a_refused_request_without_a_token_commits_nothing(mount: str, route: Route) -> None:
    """Not even where it asks for its answer to be wrapped."""
    world = Installation()
    configure_logins(world)
    path = path_of(mount, route).removeprefix("/v1/")
    before = len(world.trace)
    world.ask(METHODS[route.operation], path, FORGED, token="", **WRAPPED)
    commits = [effect for _, effect in world.trace[before:] if isinstance(effect, Commit)]
    assert commits == []
    assert not world.service._owed


@pytest.mark.parametrize("path", ["auth/token/create", "sys/wrapping/wrap"])
def test_a_wrapping_that_the_store_refused_is_not_held(path: str) -> None:
    world = Failing()
    exchange = world.service.begin(world.request("POST", path, {"ttl": "1h"}, **WRAPPED))
    world.failures = 1
    assert world.perform(world.service.work_on(exchange)).status == 503
    assert world.failures == 0
    assert not exchange.held
    assert not world.service._owed


def test_what_is_given_back_is_no_longer_owed() -> None:
    world = Stalling()
    world.stalls = True
    world.ask("POST", "auth/token/create", {"ttl": "1h"}, x_service_deadline="5")
    world.advance(60.0)
    assert not world.service._owed


def held_token(world: Installation) -> tuple[str, Held]:
    token = new_token(world)
    return token, Held(token=world.perform(find_by_text(world.context, token)))


def not_given_back(world: Installation) -> float:
    """What the metric says."""
    [number] = world.service.numbers(world.clock)["cloudid_not_given_back"][()]
    return number


def test_what_a_failing_store_does_not_take_back_is_left_to_the_next_upkeep() -> None:
    """No program of a request waits for the store longer than some tries take, however long the store is away."""
    world = Failing()
    token, held = held_token(world)
    world.failures = TRIES
    with pytest.raises(StoreFailed):
        world.perform(world.service.give_back(held))
    assert world.failures == 0
    assert not_given_back(world) == 1
    world.perform(world.service.upkeep())
    assert not is_valid(world, token)
    assert not_given_back(world) == 0


def test_an_undelivered_answer_is_left_to_the_next_upkeep_as_well() -> None:
    world = Failing()
    response = create(world)
    world.failures = TRIES
    with pytest.raises(StoreFailed):
        world.perform(world.service.undelivered(response))
    assert response.held
    world.perform(world.service.upkeep())
    assert not response.held


def test_few_are_given_back_at_the_same_time_and_upkeep_does_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudid_core.service.MOST_GIVING_BACK", 1)
    world = Stalling()
    (_, first), (token, second) = held_token(world), held_token(world)
    world.stalls = True
    waiting = world.spawn(world.service.give_back(first), "first")
    world.advance(1.0)
    assert not waiting.is_done
    world.perform(world.service.give_back(second))
    assert is_valid(world, token)
    world.perform(world.service.upkeep())
    assert not is_valid(world, token)
    world.advance(60.0)
    assert waiting.is_done
    assert not world.service._owed


def test_the_number_of_closed_requests_that_are_owed_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudid_core.service.MOST_OWED", 2)
    world = Installation()
    token = world.perform(find_by_text(world.context, new_token(world)))
    closed = [world.service.begin(world.request("GET", "sys/mounts")) for _ in range(3)]
    for exchange in closed:
        exchange.held.token = token
        world.service._owe(exchange.held)
    assert list(world.service._owed.values()) == [exchange.held for exchange in closed[1:]]


def damage(world: Installation, prefix: str) -> None:
    """Overwrite all entries below a prefix by what nobody can open."""
    damaged = dict.fromkeys(world.keys(prefix), b"damaged")
    assert damaged

    async def write() -> int:
        return await Commit({}, damaged, ())

    world.perform(write())


def owed_unwrapping(world: Installation) -> None:
    """An unwrapping is owed whose wrapping token is damaged."""
    wrapped = world.must("POST", "auth/token/create", {"ttl": "1h"}, **WRAPPED).body["wrap_info"]["token"]
    request = world.request("POST", "sys/wrapping/unwrap", {"token": wrapped}, token="")
    exchange = world.service.begin(request)
    assert world.perform(world.service.work_on(exchange)).status == 200
    unwrapping = exchange.held.unwrapping
    assert unwrapping is not None
    world.service._owe(exchange.held)
    damage(world, unwrapping.token.key)


def test_an_unwrapping_whose_token_is_damaged_is_given_back() -> None:
    world = Installation()
    owed_unwrapping(world)
    world.perform(world.service.upkeep())
    assert not world.service._owed


def test_one_request_that_cannot_be_given_back_does_not_keep_the_others() -> None:
    """It is tried again after them."""
    world = Installation()
    token = new_token(world)
    stuck, free = (world.service.begin(world.request("GET", "sys/mounts")) for _ in range(2))
    stuck.held.lease_id = "stuck"
    free.held.token = world.perform(find_by_text(world.context, token))
    world.service._owe(stuck.held)
    world.service._owe(free.held)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloudid_core.delivery.end_lease", fail)
        world.perform(world.service.upkeep())
    assert not is_valid(world, token)
    assert list(world.service._owed.values()) == [stuck.held]


class Standing(Installation):
    """Its commits stand still, while reads go on."""

    is_standing = False

    def stall_for(self, effect: Effect[Any]) -> Stall | None:
        return Stall.BEFORE if self.is_standing and isinstance(effect, Commit) else None


def test_health_tells_of_commits_that_stand_still_before_what_is_owed_is_tried() -> None:
    world = Standing()
    for _ in range(3):
        world.service._owe(held_token(world)[1])
    world.is_standing = True
    world.context.node.written_at = 0.0  # as after a commit that failed
    world.spawn(world.service.upkeep(), "upkeep")
    world.advance(COMMIT_SECONDS + 1)
    assert world.context.node.problems[HealthProblem.STORE_UNAVAILABLE]


def test_one_part_that_cannot_be_ended_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Installation()
    ended: list[str] = []

    async def end_lease(context: Context, lease_id: str, now: float) -> None:
        ended.append(lease_id)

    monkeypatch.setattr("cloudid_core.delivery.withdraw", fail)
    monkeypatch.setattr("cloudid_core.delivery.end_lease", end_lease)
    held = Held(lease_id="lease", mount_id="mount", intent_id="intent")
    with pytest.raises(StoreFailed):
        world.perform(give_back(world.context, held, tries=1))
    assert ended == ["lease"]


async def fail(*_: object) -> None:
    raise StoreFailed("never")
