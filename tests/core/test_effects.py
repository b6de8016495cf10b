"""Effects: what each asks of its host, and how answers and failures come back."""

from __future__ import annotations

from inspect import CORO_CLOSED, getcoroutinestate
from typing import Any, cast

import pytest

from cloudid_core import effects
from cloudid_core.effects import (
    CallProvider,
    Commit,
    Effect,
    Entry,
    Failure,
    Host,
    HttpRequest,
    ListKeys,
    Now,
    ReadEntry,
    Sleep,
    Together,
    gather,
    in_turns,
    shared,
    together,
    within,
)
from cloudid_core.errors import StoreFailed
from cloudid_core.events import MountChanged
from cloudid_core.testing import World

from .never_waits import NeverWaits


class Notebook:
    """A host that notes what it is asked."""

    def __getattr__(self, method: str) -> Any:
        return lambda *arguments: (method, *arguments)


EVENT = MountChanged(mount_accessor="a", path="p", state="tuned")
REQUEST = HttpRequest("GET", "https://cloud.test/")
ASKED = [
    (ReadEntry("a"), ("read_entry", "a")),
    (effects.ReadEntries(("a", "b")), ("read_entries", ("a", "b"))),
    (ListKeys("a/", "a/1", 5), ("list_keys", "a/", "a/1", 5)),
    (ListKeys("a/"), ("list_keys", "a/", "", 1000)),
    (Commit({"a": 1}, {"b": b"2"}, ("c",)), ("commit", {"a": 1}, {"b": b"2"}, ("c",))),
    (Commit({}), ("commit", {}, {}, ())),
    (CallProvider(REQUEST, 3.0), ("call_provider", REQUEST, 3.0)),
    (effects.ReadPlatformToken("r", "c"), ("read_platform_token", "r", "c")),
    (Sleep(2.0), ("sleep", 2.0)),
    (Now(), ("now",)),
    (effects.RandomBytes(16), ("random_bytes", 16)),
    (effects.GenerateKey(), ("generate_key",)),
    (effects.ReadFederatedToken("/token"), ("read_federated_token", "/token")),
    (effects.ReadDocument("a"), ("read_document", "a")),
    (effects.WriteDocument("a", b"1", None), ("write_document", "a", b"1", None)),
    (effects.Record(EVENT), ("record", EVENT)),
    (Together(()), ("together", ())),
]


@pytest.mark.parametrize("effect, asked", ASKED, ids=lambda value: type(value).__name__)
def test_an_effect_asks_its_host_for_what_it_says(effect: Effect[Any], asked: tuple[Any, ...]) -> None:
    assert cast("Any", effect.perform_on(cast("Host", Notebook()))) == asked


@pytest.mark.parametrize("kind", [effects.Within, effects.Shared])
def test_an_effect_hands_its_program_to_the_host(kind: Any) -> None:
    program = read("a")
    method, argument, handed = cast("Any", kind(5, program).perform_on(cast("Host", Notebook())))
    assert (method, argument, handed) == (kind.__name__.lower(), 5, program)
    program.close()


async def read(key: str) -> bytes | None:
    entry = await ReadEntry(key)
    return entry.value if entry else None


def test_a_program_hands_out_its_effect_and_goes_on_with_the_answer() -> None:
    program = read("a")
    assert program.send(None) == ReadEntry("a")
    with pytest.raises(StopIteration) as finished:
        program.send(Entry(b"1", 7))
    assert finished.value.value == b"1"


def test_a_failure_is_raised_where_the_effect_was_awaited() -> None:
    async def careful() -> str:
        try:
            await ReadEntry("a")
        except StoreFailed as failure:
            return str(failure)
        return "fine"

    program = careful()
    program.send(None)
    with pytest.raises(StopIteration) as finished:
        program.send(Failure(StoreFailed("down")))
    assert finished.value.value == "down"


def test_an_exception_that_is_an_answer_is_not_raised() -> None:
    """Only `Failure` is: an effect may answer anything."""

    async def program() -> object:
        return await Now()

    running = program()
    running.send(None)
    error = ValueError()
    with pytest.raises(StopIteration) as finished:
        running.send(error)
    assert finished.value.value is error


def test_together_and_gather_answer_in_order() -> None:
    world = World()
    world.store.commit({}, {"a": b"1", "b": b"2"}, ())
    assert world.perform(together(read("a"), read("b"))) == (b"1", b"2")
    assert world.perform(gather([read("b"), read("a"), read("c")])) == [b"2", b"1", None]


@pytest.mark.parametrize("count, at_once, pauses", [(0, 3, 0), (3, 3, 0), (4, 3, 1), (7, 3, 2)])
def test_work_in_turns_keeps_its_order_and_lets_other_programs_go_on(count: int, at_once: int, pauses: int) -> None:
    program = in_turns(range(count), lambda number: [number, -number], at_once)
    asked: list[Any] = []
    with pytest.raises(StopIteration) as finished:  # noqa: PT012
        while True:
            asked.append(program.send(None))
    assert finished.value.value == [signed for number in range(count) for signed in (number, -number)]
    assert asked == [Sleep(0.0)] * pauses


def test_programs_that_were_refused_are_closed() -> None:
    """Else they would warn that nobody awaited them."""
    programs = [read(key) for key in "abcde"]
    for carrier in (together(programs[0], programs[1]), gather(programs[2:4]), within(1.0, programs[4])):
        carrier.send(None)
        with pytest.raises(StoreFailed):
            carrier.send(Failure(StoreFailed("no programs today")))
    assert {getcoroutinestate(program) for program in programs} == {CORO_CLOSED}


def test_shared_leaves_its_program_to_the_host() -> None:
    """It outlives an asker that is closed."""
    program = read("a")
    asker = shared("key", program)
    asker.send(None)
    asker.close()
    assert getcoroutinestate(program) != CORO_CLOSED
    program.close()


def test_a_request_prints_neither_query_nor_headers_nor_body() -> None:
    printed = repr(HttpRequest("POST", "https://cloud.test/a?b=c", {"d": "e"}, b"f"))
    assert printed == "HttpRequest(method='POST', url='https://cloud.test/a')"


def test_a_commit_prints_its_keys_but_not_their_values() -> None:
    assert repr(Commit({"a": 1}, {"c": b"d", "b": b"e"}, ("f",))) == (
        "Commit(expects={'a': 1}, puts=['b', 'c'], deletes=('f',))"
    )


def test_a_host_that_lacks_a_method_cannot_be_made() -> None:
    class Sleepless(NeverWaits):
        sleep = Host.sleep  # type: ignore[assignment]

    assert len(Host.__abstractmethods__) == 16
    with pytest.raises(TypeError, match=r"abstract method.? '?sleep"):
        Sleepless()
