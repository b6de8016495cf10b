"""The world: turns by the seed, a clock that jumps, programs in programs, crashes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from attrs import frozen

from cloudid_core.effects import (
    CallProvider,
    Commit,
    GenerateKey,
    Host,
    HttpRequest,
    HttpResponse,
    Instant,
    Now,
    PlatformToken,
    RandomBytes,
    ReadEntry,
    ReadFederatedToken,
    ReadPlatformToken,
    Record,
    Sleep,
    shared,
    together,
    within,
)
from cloudid_core.errors import PlatformTokenUnavailable, ProviderUnreachable, StoreFailed, TimeIsUp
from cloudid_core.events import Event, MountChanged
from cloudid_core.run import run_now
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing import World
from cloudid_core.values.secret import Secret

REQUEST = HttpRequest("GET", "https://cloud.test/a")


async def sleeping(seconds: float) -> Instant:
    await Sleep(seconds)
    return await Now()


async def putting(key: str, value: bytes = b"1") -> int:
    return await Commit({}, {key: value})


async def failing(text: str = "broken") -> None:
    raise StoreFailed(text)


async def asking(timeout: float = 30.0) -> HttpResponse:
    return await CallProvider(REQUEST, timeout)


# A host


def test_a_world_is_a_host() -> None:
    host: Host = World()
    with pytest.raises(RuntimeError, match="a world runs its programs itself"):
        run_now(sleeping(1), host)


def test_store_clock_chance_and_audit_are_the_worlds_own() -> None:
    async def program() -> tuple[object, ...]:
        version = await Commit({}, {"a": b"1"})
        event: Event = MountChanged(mount_accessor="a", path="p", state="tuned")
        await Record(event)
        return version, await ReadEntry("a"), await Now(), len(await RandomBytes(40))

    world = World(start=50.0)
    assert world.perform(program()) == (1, world.store.read("a"), 50.0, 40)
    assert [type(event) for event in world.events] == [MountChanged]


def test_a_store_can_be_handed_in() -> None:
    store = MemoryStore()
    World(store=store).perform(putting("a"))
    assert store.list("", "", 10) == ("a",)


def test_chance_follows_from_the_seed_and_never_repeats() -> None:
    async def draw() -> list[bytes]:
        return [await RandomBytes(16) for _ in range(10)]

    one, again, other = (World(seed).perform(draw()) for seed in (1, 1, 2))
    assert one == again
    assert len({*one, *other}) == 20


def test_chance_does_not_repeat_after_a_crash() -> None:
    async def draw() -> bytes:
        return await RandomBytes(16)

    world = World()
    before = world.perform(draw())
    world.crash()
    assert world.perform(draw()) != before


def test_the_platform_is_a_function() -> None:
    async def ask() -> PlatformToken:
        return await ReadPlatformToken("resource", "client")

    token = PlatformToken(Secret("t"), 5.0)
    asked: list[tuple[str, str]] = []

    def platform(resource: str, client_id: str) -> PlatformToken:
        asked.append((resource, client_id))
        return token

    assert World(platform=platform).perform(ask()) is token
    assert asked == [("resource", "client")]
    with pytest.raises(PlatformTokenUnavailable):
        World().perform(ask())


# The provider


@frozen
class Troubled:
    """An answer with trouble on its way back."""

    response: HttpResponse
    delay: float = 0.0
    drop: bool = False


def test_the_provider_is_a_function() -> None:
    world = World(provider=lambda request: HttpResponse(200, {}, request.url.encode()))
    assert world.perform(asking()).body == b"https://cloud.test/a"


def test_a_world_without_provider_reaches_nobody() -> None:
    with pytest.raises(ProviderUnreachable) as failure:
        World().perform(asking())
    assert not failure.value.sent


def test_a_provider_can_read_the_clock() -> None:
    world = World(start=7.0)
    world.provider = lambda request: HttpResponse(200, {}, b"%d" % world.clock)
    world.advance(3.0)
    assert world.perform(asking()).body == b"10"


def test_an_answer_can_take_its_time() -> None:
    world = World(provider=lambda request: Troubled(HttpResponse(200), delay=5.0), start=0.0)
    assert world.perform(asking(timeout=5.0)).status == 200
    assert world.clock == 5.0


def test_an_answer_that_comes_too_late_is_none() -> None:
    """The work was done all the same."""
    done: list[HttpRequest] = []

    def provider(request: HttpRequest) -> Troubled:
        done.append(request)
        return Troubled(HttpResponse(200), delay=60.0)

    world = World(provider=provider, start=0.0)
    with pytest.raises(ProviderUnreachable) as failure:
        world.perform(asking(timeout=5.0))
    assert failure.value.sent
    assert (world.clock, done) == (5.0, [REQUEST])


def test_a_connection_can_break() -> None:
    world = World(provider=lambda request: Troubled(HttpResponse(200), delay=2.0, drop=True), start=0.0)
    with pytest.raises(ProviderUnreachable) as failure:
        world.perform(asking())
    assert failure.value.sent
    assert world.clock == 2.0


# A story


def story(seed: int) -> World:
    world = World(seed)
    for key in "abc":
        world.spawn(together(putting(key), putting(key + key)))
    world.settle()
    return world


def test_the_same_seed_tells_the_same_story() -> None:
    for seed in range(20):
        assert story(seed).transcript() == story(seed).transcript()


def test_other_seeds_tell_other_stories() -> None:
    assert len({tuple(story(seed).transcript()) for seed in range(50)}) > 40


def test_the_trace_tells_who_did_what() -> None:
    world = World()
    world.spawn(putting("a"), name="writer")
    world.settle()
    world.perform(together(sleeping(1), sleeping(2)))
    assert world.transcript() == [
        "writer: Commit(expects={}, puts=['a'], deletes=())",
        "together 2: Together(<2 programs>)",
        *world.transcript()[2:4],
        "together 2.0: Now()",
        "together 2.1: Now()",
    ]
    assert sorted(world.transcript()[2:4]) == ["together 2.0: Sleep(seconds=1)", "together 2.1: Sleep(seconds=2)"]


def test_a_limit_that_was_not_needed_does_not_move_the_clock() -> None:
    world = World(start=0.0)
    world.perform(within(60.0, sleeping(1)))
    world.settle()
    assert world.clock == 1.0


def test_a_failure_is_the_result_of_its_task() -> None:
    world = World()
    task = world.spawn(failing())
    world.settle()
    with pytest.raises(StoreFailed):
        task.result()
    with pytest.raises(StoreFailed):
        world.perform(failing())


# Programs in programs


def test_programs_run_together_in_every_order() -> None:
    orders = set()
    for seed in range(50):
        world = World(seed)
        first, second = world.perform(together(putting("a"), putting("b")))
        orders.add(first < second)
    assert orders == {True, False}


def test_of_programs_that_fail_at_once_the_first_is_told() -> None:
    for seed in range(20):
        with pytest.raises(StoreFailed, match="first"):
            World(seed).perform(together(failing("first"), failing("second")))


def test_the_others_are_closed_when_one_fails() -> None:
    world = World(start=0.0)
    with pytest.raises(StoreFailed):
        world.perform(together(sleeping(60), failing()))
    world.settle()
    assert world.clock == 0.0


def test_time_is_up_on_the_second() -> None:
    world = World(start=0.0)
    with pytest.raises(TimeIsUp):
        world.perform(within(5.0, sleeping(60)))
    assert world.clock == 5.0


def test_a_shared_program_runs_once_and_is_nobodys() -> None:
    """The first asker is cancelled, the second still gets the answer."""
    world = World(start=0.0)
    first = world.spawn(shared("key", sleeping(5)))
    second = world.spawn(shared("key", sleeping(50)))
    world.advance(1)
    first.close()
    world.settle()
    assert second.result() in (5.0, 50.0)
    assert [name for name, effect in world.trace if isinstance(effect, Sleep)] == ["shared key"]


def test_an_asker_that_is_closed_before_its_turn_closes_its_program() -> None:
    """Else it would warn that nobody awaited it."""
    world = World()
    world.spawn(shared("key", sleeping(5))).close()
    assert world.trace == []


# The end


def test_a_crash_closes_everything_and_keeps_store_clock_and_audit() -> None:
    async def working(key: str) -> None:
        await Commit({}, {key: b"1"})
        await Record(MountChanged(mount_accessor=key, path="", state="tuned"))
        await Sleep(60)
        await Commit({}, {key: b"2"})

    world = World(start=0.0)
    tasks = [world.spawn(working("a")), world.spawn(shared("s", working("b")))]
    world.advance(1)
    world.crash()
    world.settle()
    assert [task.is_done for task in tasks] == [True, True]
    assert [entry and entry.value for entry in map(world.store.read, "ab")] == [b"1", b"1"]
    assert sorted(event.mount_accessor for event in world.events if isinstance(event, MountChanged)) == ["a", "b"]
    assert world.clock == 1.0
    assert world.perform(shared("s", putting("c"))) == 3


def test_versions_grow_in_the_order_of_the_trace() -> None:
    world = story(3)
    keys = [key for _, effect in world.trace if isinstance(effect, Commit) for key in effect.puts]
    versions = [entry.version for key in keys if (entry := world.store.read(key))]
    assert len(versions) == 6
    assert all(earlier < later for earlier, later in pairwise(versions))


# Keys and files


async def generating() -> Secret:
    return await GenerateKey()


async def reading(path: str) -> Secret:
    return await ReadFederatedToken(path)


def test_a_world_generates_the_same_keys_in_the_same_order() -> None:
    first, second = World(), World()
    keys = [first.perform(generating()) for _ in range(2)]
    assert keys == [second.perform(generating()) for _ in range(2)]
    assert keys[0] != keys[1]


def test_a_world_has_the_files_that_it_was_given() -> None:
    world = World()
    world.files["/token"] = "text"
    assert world.perform(reading("/token")) == Secret("text")
    with pytest.raises(PlatformTokenUnavailable):
        world.perform(reading("/other"))
