"""How much of what is many a run goes through: all if it is thorough, else a sample that differs from test to test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Protocol, TypeVar
from zlib import crc32

from hypothesis import settings

T = TypeVar("T")

ONE_OF: Final = 16


def examples(times: int) -> settings:
    """For a property that takes more examples than others: so many times as many."""
    return settings(max_examples=times * settings().max_examples)


class Sample(Protocol):
    """Those of some worlds, or ways to get there, that are tried."""

    def __call__(self, ways: Iterable[T], /) -> Iterator[T]: ...


def every(ways: Iterable[T], /) -> Iterator[T]:
    return iter(ways)


def sample_of(name: str) -> Sample:
    """Every sixteenth. The name decides which one is the first."""
    first = number_of(name, ONE_OF)

    def sample(ways: Iterable[T], /) -> Iterator[T]:
        return islice(ways, first, None, ONE_OF)

    return sample


def number_of(name: str, end: int) -> int:
    """A number below the end; the same for a name on every machine."""
    return crc32(name.encode()) % end
