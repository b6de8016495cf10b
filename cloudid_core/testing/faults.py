"""Faults: what can go wrong at an effect, and every way in which a scenario can go wrong once (or more often)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, Final, TypeVar

from attrs import frozen

from ..effects import (
    CallProvider,
    Commit,
    CompareClocks,
    Effect,
    GenerateKey,
    ListKeys,
    Now,
    RandomBytes,
    ReadDocument,
    ReadEntries,
    ReadEntry,
    ReadFederatedToken,
    ReadPlatformToken,
    Record,
    Sleep,
    WriteDocument,
)
from ..errors import (
    Conflict,
    HostFailure,
    OutcomeUnknown,
    PlatformTokenUnavailable,
    ProviderUnreachable,
    PublicationFailed,
    RecordFailed,
    StoreFailed,
)

T = TypeVar("T")


class Crashed(BaseException):
    """The world's host was killed: all its programs are closed; store, provider and clock remain.

    Not an `Exception`: no program and no host may survive it.
    """


class FaultKind(Enum):
    """What goes wrong at an effect."""

    FAIL = "it is not performed, and its host knows"
    CONFLICT = "another commit came first"
    LOST_ANSWER = "it is performed, but its answer is lost"
    UNKNOWN_NOT_WRITTEN = "it is not performed, and its answer is lost"
    CRASH_BEFORE = "the host is killed, and it is not performed"
    CRASH_AFTER = "it is performed, and the host is killed"


class Stall(Enum):
    """An effect that is never answered; a call to the provider fails when its time is over."""

    BEFORE = "it is not performed"
    AFTER = "it is performed"
    LATER = "it is a commit, and is performed before the next one of its host"


@frozen
class Fault:
    """Something goes wrong at the n-th effect of a world, counted from 0: `at` is its place in `World.trace`."""

    at: int
    kind: FaultKind


@frozen
class Trouble:
    """What a fault does at one type of effect: whether the effect is performed, and what is raised then."""

    is_performed: bool
    error: Callable[[], BaseException]


_WHY: Final = "an injected fault"
_CRASH_BEFORE: Final = {FaultKind.CRASH_BEFORE: Trouble(False, lambda: Crashed(_WHY))}
_CRASH_AFTER: Final = {FaultKind.CRASH_AFTER: Trouble(True, lambda: Crashed(_WHY))}
_PLATFORM_FAILS: Final = {FaultKind.FAIL: Trouble(False, lambda: PlatformTokenUnavailable(_WHY)), **_CRASH_BEFORE}
_PUBLICATION_FAILS: Final = {FaultKind.FAIL: Trouble(False, lambda: PublicationFailed(_WHY))}
_STORE_FAILS: Final = {FaultKind.FAIL: Trouble(False, lambda: StoreFailed(_WHY))}

TROUBLES: Final[Mapping[type[Effect[Any]], Mapping[FaultKind, Trouble]]] = {
    Now: _CRASH_BEFORE,
    CompareClocks: _CRASH_BEFORE,
    RandomBytes: _CRASH_BEFORE,
    Sleep: _CRASH_BEFORE,
    GenerateKey: _CRASH_BEFORE,
    ReadEntry: {**_STORE_FAILS, **_CRASH_BEFORE},
    ReadEntries: {**_STORE_FAILS, **_CRASH_BEFORE},
    ListKeys: {**_STORE_FAILS, **_CRASH_BEFORE},
    ReadPlatformToken: _PLATFORM_FAILS,
    ReadFederatedToken: _PLATFORM_FAILS,
    Record: {FaultKind.FAIL: Trouble(False, lambda: RecordFailed(_WHY)), **_CRASH_BEFORE, **_CRASH_AFTER},
    Commit: {
        **_STORE_FAILS,
        FaultKind.CONFLICT: Trouble(False, lambda: Conflict(_WHY)),
        FaultKind.LOST_ANSWER: Trouble(True, lambda: OutcomeUnknown(_WHY)),
        FaultKind.UNKNOWN_NOT_WRITTEN: Trouble(False, lambda: OutcomeUnknown(_WHY)),
        **_CRASH_BEFORE,
        **_CRASH_AFTER,
    },
    ReadDocument: {**_PUBLICATION_FAILS, **_CRASH_BEFORE},
    WriteDocument: {
        **_PUBLICATION_FAILS,
        FaultKind.LOST_ANSWER: Trouble(True, lambda: PublicationFailed(_WHY)),
        **_CRASH_BEFORE,
        **_CRASH_AFTER,
    },
    CallProvider: {
        FaultKind.FAIL: Trouble(False, lambda: ProviderUnreachable(_WHY, sent=False)),
        FaultKind.LOST_ANSWER: Trouble(True, lambda: ProviderUnreachable(_WHY, sent=True)),
        FaultKind.UNKNOWN_NOT_WRITTEN: Trouble(False, lambda: ProviderUnreachable(_WHY, sent=True)),
        **_CRASH_BEFORE,
        **_CRASH_AFTER,
    },
}
"""What can go wrong where. An effect that only reads crashes in one way, and those that carry programs in none: a crash
after the former, or around the latter, is a crash before the next effect."""


def troubles_of(effect: Effect[Any]) -> Mapping[FaultKind, Trouble]:
    """What can go wrong at this effect."""
    return TROUBLES.get(type(effect), {})


def inflict(kind: FaultKind, effect: Effect[Any], perform: Callable[[], T]) -> T:
    """Perform the effect, or not, and raise what the fault makes of it."""
    trouble = troubles_of(effect).get(kind)
    if trouble is None:
        raise ValueError(f"{type(effect).__name__} knows no fault {kind.name}")
    if trouble.is_performed:
        with suppress(HostFailure):  # its answer is lost
            perform()
    raise trouble.error()
