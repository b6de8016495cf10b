"""Faults: what each kind does where, and every way in which a scenario can go wrong."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from cloudid_core.effects import (
    CallProvider,
    Commit,
    CompareClocks,
    Effect,
    GenerateKey,
    HttpRequest,
    HttpResponse,
    ListKeys,
    Now,
    PlatformToken,
    RandomBytes,
    ReadDocument,
    ReadEntries,
    ReadEntry,
    ReadFederatedToken,
    ReadPlatformToken,
    Record,
    Shared,
    ShowMetrics,
    Sleep,
    Together,
    Within,
    WriteDocument,
    together,
)
from cloudid_core.errors import (
    Conflict,
    HostFailure,
    OutcomeUnknown,
    PlatformTokenUnavailable,
    ProviderUnreachable,
    PublicationFailed,
    RecordFailed,
    StoreFailed,
)
from cloudid_core.events import MountChanged
from cloudid_core.testing import Crashed, Fault, FaultKind, World
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
READ = ReadDocument("keys")
PUBLISH = WriteDocument("keys", b"{}", None)
RECORD = Record(MountChanged(mount_accessor="a", path="p", state="tuned"))

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
    (READ, FAIL, PublicationFailed, False),
    (READ, BEFORE, Crashed, False),
    (PUBLISH, FAIL, PublicationFailed, False),
    (PUBLISH, LOST, PublicationFailed, True),
    (PUBLISH, BEFORE, Crashed, False),
    (PUBLISH, AFTER, Crashed, True),
    (ReadEntry("a"), FAIL, StoreFailed, False),
    (ReadEntry("a"), BEFORE, Crashed, False),
    (ReadEntries(("a",)), FAIL, StoreFailed, False),
    (ReadEntries(("a",)), BEFORE, Crashed, False),
    (ListKeys("a"), FAIL, StoreFailed, False),
    (ListKeys("a"), BEFORE, Crashed, False),
    (ReadPlatformToken("r"), FAIL, PlatformTokenUnavailable, False),
    (ReadPlatformToken("r"), BEFORE, Crashed, False),
    (ReadFederatedToken("/t"), FAIL, PlatformTokenUnavailable, False),
    (ReadFederatedToken("/t"), BEFORE, Crashed, False),
    (GenerateKey(), BEFORE, Crashed, False),
    (Now(), BEFORE, Crashed, False),
    (CompareClocks(), BEFORE, Crashed, False),
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
        return self.store.revision + len(self.events) + self.calls + len(self.documents)


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
    """Every effect but those that carry programs and the showing of metrics, and every kind somewhere."""
    assert {(type(effect), kind) for effect, kind, *_ in TABLE} == {
        (effect, kind) for effect, kinds in TROUBLES.items() for kind in kinds
    }
    effects = {effect for effect in Effect.__subclasses__() if effect.__module__ == Effect.__module__}
    assert effects - set(TROUBLES) == {Together, Within, Shared, ShowMetrics}
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
