"""Faults: what each kind does where, and every way in which a scenario can go wrong."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from cloudid_core.effects import (
    CallProvider,
    Commit,
    Effect,
    HttpRequest,
    HttpResponse,
    ListKeys,
    Now,
    PlatformToken,
    RandomBytes,
    ReadEntry,
    ReadPlatformToken,
    Record,
    Shared,
    Sleep,
    Together,
    Within,
    gather,
    together,
)
from cloudid_core.errors import (
    CloudidError,
    Conflict,
    HostFailure,
    OutcomeUnknown,
    PlatformTokenUnavailable,
    ProviderUnreachable,
    RecordFailed,
    StoreFailed,
)
from cloudid_core.testing import Crashed, Fault, FaultKind, World, count_effects, every_fault
from cloudid_core.testing.faults import TROUBLES, inflict, troubles_of
from cloudid_core.values.secret import Secret

FAIL, CONFLICT, LOST, NOT_WRITTEN, BEFORE, AFTER = (
    FaultKind.FAIL,
    FaultKind.CONFLICT,
    FaultKind.LOST_ANSWER,
    FaultKind.UNKNOWN_NOT_WRITTEN,
    FaultKind.CRASH_BEFORE,
    FaultKind.CRASH_AFTER,
)
COMMIT = Commit({}, {"a": b"1"})
CALL = CallProvider(HttpRequest("POST", "https://cloud.test/a"), 30.0)
RECORD = Record({"type": "test"})

TABLE: list[tuple[Effect[Any], FaultKind, type[BaseException], bool]] = [
    (COMMIT, FAIL, StoreFailed, False),
    (COMMIT, CONFLICT, Conflict, False),
    (COMMIT, LOST, OutcomeUnknown, True),
    (COMMIT, NOT_WRITTEN, OutcomeUnknown, False),
    (COMMIT, BEFORE, Crashed, False),
    (COMMIT, AFTER, Crashed, True),
    (CALL, FAIL, ProviderUnreachable, False),
    (CALL, LOST, ProviderUnreachable, True),
    (CALL, NOT_WRITTEN, ProviderUnreachable, False),
    (CALL, BEFORE, Crashed, False),
    (CALL, AFTER, Crashed, True),
    (RECORD, FAIL, RecordFailed, False),
    (RECORD, BEFORE, Crashed, False),
    (RECORD, AFTER, Crashed, True),
    (ReadEntry("a"), FAIL, StoreFailed, False),
    (ReadEntry("a"), BEFORE, Crashed, False),
    (ListKeys("a"), FAIL, StoreFailed, False),
    (ListKeys("a"), BEFORE, Crashed, False),
    (ReadPlatformToken("r"), FAIL, PlatformTokenUnavailable, False),
    (ReadPlatformToken("r"), BEFORE, Crashed, False),
    (Now(), BEFORE, Crashed, False),
    (RandomBytes(1), BEFORE, Crashed, False),
    (Sleep(1), BEFORE, Crashed, False),
]


class Busy(World):
    """A world that counts what its provider was asked."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(provider=self.answer, faults=faults, platform=lambda *_: PlatformToken(Secret(), 0.0))
        self.calls = 0

    def answer(self, request: HttpRequest) -> HttpResponse:
        self.calls += 1
        return HttpResponse(201)

    @property
    def traces_left(self) -> int:
        return self.store.revision + len(self.events) + self.calls


async def asking(effect: Effect[Any]) -> object:
    return await effect


@pytest.mark.parametrize("effect, kind, failure, is_performed", TABLE, ids=lambda value: repr(value)[:30])
def test_a_fault_does_what_its_kind_says(
    effect: Effect[Any], kind: FaultKind, failure: type[BaseException], is_performed: bool
) -> None:
    world = Busy(Fault(0, kind))
    with pytest.raises(failure) as raised:
        world.perform(asking(effect))
    assert world.traces_left == is_performed
    assert [repr(told) for _, told in world.trace] == [repr(effect)]
    if isinstance(raised.value, ProviderUnreachable):
        assert raised.value.sent == (kind is not FAIL)


def test_the_table_is_complete() -> None:
    """Every effect but those that carry programs, and every kind somewhere."""
    assert {(type(effect), kind) for effect, kind, *_ in TABLE} == {
        (effect, kind) for effect, kinds in TROUBLES.items() for kind in kinds
    }
    assert set(Effect.__subclasses__()) - set(TROUBLES) == {Together, Within, Shared}
    assert {kind for _, kind, *_ in TABLE} == set(FaultKind)


def test_an_effect_fails_only_as_it_can() -> None:
    with pytest.raises(ValueError, match="Now knows no fault CONFLICT"):
        inflict(CONFLICT, Now(), lambda: None)
    assert troubles_of(Together(())) == {}


def test_an_answer_that_gets_lost_may_have_been_a_failure() -> None:
    def conflict() -> None:
        raise Conflict("a")

    with pytest.raises(OutcomeUnknown):
        inflict(LOST, COMMIT, conflict)


def test_a_crash_is_no_exception_that_a_program_could_survive() -> None:
    async def stubborn() -> str:
        try:
            await Now()
        except Exception:  # noqa: BLE001  # what must not happen
            return "survived"
        return "fine"

    world = World(faults=(Fault(0, BEFORE),))
    with pytest.raises(Crashed):
        world.perform(stubborn())


def test_a_crash_takes_all_programs_with_it_even_from_within() -> None:
    async def sleeping() -> None:
        await Sleep(60)
        await Now()

    world = World(start=0.0)
    other = world.spawn(sleeping())
    world.settle()
    assert world.trace[-1] == ("sleeping 1", Now())
    other = world.spawn(sleeping())
    world.advance(1)
    world.inject(Fault(len(world.trace) + 2, BEFORE))
    with pytest.raises(Crashed):
        world.perform(together(asking(Now()), asking(Now())))
    assert other.is_done
    world.settle()
    assert world.clock == 61.0


def test_several_faults_strike_one_after_the_other() -> None:
    async def patient() -> int:
        for _ in range(5):
            with suppress(HostFailure):
                return await COMMIT
        return 0

    world = World(faults=(Fault(0, CONFLICT), Fault(1, FAIL)))
    assert world.perform(patient()) == 1
    assert len(world.trace) == 3


def test_a_world_says_what_goes_wrong_in_it() -> None:
    """So that a failing proof tells how to repeat it."""
    world = World(seed=7, faults=(Fault(3, CONFLICT), Fault(1, BEFORE)))
    assert repr(world) == "<World seed=7, CRASH_BEFORE at 1, CONFLICT at 3>"


# Every way to go wrong


async def transfer() -> None:
    """Read, write, tell."""
    await ReadEntry("a")
    await Commit({}, {"a": b"1"})
    await Record({"type": "transfer"})


def scenario(world: World) -> None:
    world.perform(transfer())


def prepared() -> World:
    world = World()
    world.perform(asking(COMMIT))
    return world


def faults_of(world: World) -> list[str]:
    return repr(world).removesuffix(">").split(", ")[1:]


def test_the_effects_of_a_scenario_are_counted_without_those_of_its_preparation() -> None:
    assert count_effects(scenario, prepared) == 3


def test_a_scenario_goes_wrong_at_each_effect_in_each_way() -> None:
    plans = [faults_of(world) for world in every_fault(scenario, prepared)]
    effects: list[tuple[int, type[Effect[Any]]]] = [(1, ReadEntry), (2, Commit), (3, Record)]
    wanted = [[f"{kind.name} at {at}"] for at, effect in effects for kind in TROUBLES[effect]]
    assert plans == wanted
    assert len(plans) == 11


def test_only_some_kinds_can_be_asked_for() -> None:
    plans = [faults_of(world) for world in every_fault(scenario, prepared, kinds=frozenset({AFTER}))]
    assert plans == [["CRASH_AFTER at 2"], ["CRASH_AFTER at 3"]]


def test_every_world_is_fresh_and_its_fault_strikes() -> None:
    for world in every_fault(scenario, prepared):
        assert world.store.revision == 1
        with pytest.raises((Crashed, CloudidError)):
            scenario(world)


def test_a_scenario_that_recovers_goes_wrong_again_while_it_does() -> None:
    def resumed(world: World) -> None:
        try:
            scenario(world)
        except (Crashed, CloudidError):
            scenario(world)

    plans = [faults_of(world) for world in every_fault(resumed, prepared, depth=2)]
    assert ["CRASH_BEFORE at 1", "CRASH_AFTER at 3"] in plans
    assert ["CRASH_AFTER at 3", "FAIL at 4"] in plans
    assert len({tuple(plan) for plan in plans}) == len(plans) == 11 * 11
    assert all(int(first.split()[-1]) < int(second.split()[-1]) for first, second in plans)


def test_what_a_scenario_raises_in_peace_is_a_bug_of_the_proof() -> None:
    def broken(world: World) -> None:
        raise StoreFailed("in peace")

    with pytest.raises(StoreFailed, match="in peace"):
        list(every_fault(broken, World))


def test_programs_side_by_side_are_struck_too() -> None:
    def pair(world: World) -> None:
        world.perform(gather([transfer(), transfer()]))

    worlds = list(every_fault(pair, World))
    assert len(worlds) == 2 * 11
    for world in worlds:
        with suppress(Crashed, CloudidError):
            pair(world)
        world.settle()
        assert faults_of(world)
