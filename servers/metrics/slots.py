"""Slots: where the workers of one machine leave their numbers for each other, so that any of them can answer for all.

Each worker writes its own slot of a file that has no name, every second. A worker that takes the place of one that died
continues its counters, so the combined values never decrease.
"""

from __future__ import annotations

import fcntl
import mmap
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from cloudid_core.metrics import BY_NAME, Kind, Numbers, merged

SLOT_SIZE: Final = 4 * 2**20
"""Bytes of each slot. The file has no more of them than are written."""

WRITE_PAUSE: Final = 1.0
"""Seconds between two writes."""

FRESH_SECONDS: Final = 10.0
"""The gauges of a worker that has not written for so long do not count: it is gone."""

_HEAD: Final = struct.Struct("dI")
"""When the slot was written, and the length of what follows."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[tuple[str, list[tuple[tuple[str, ...], list[float]]]]]).decode


class Slots:
    """Made by the parent, before it forks `count` workers. They are numbered from 1 on."""

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._count = count
        self._clock = clock
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # `close` closes it
        self._file.truncate(count * SLOT_SIZE)
        self._memory = mmap.mmap(self._file.fileno(), count * SLOT_SIZE)

    def write(self, number: int, numbers: Numbers) -> None:
        """Replace a worker's numbers. If they do not fit, the slot is not changed."""
        content = _encode([(name, list(series.items())) for name, series in numbers.items()])
        if len(content) <= SLOT_SIZE - _HEAD.size:
            with self._locked(number) as at:
                self._memory[at : at + _HEAD.size] = _HEAD.pack(self._clock(), len(content))
                self._memory[at + _HEAD.size : at + _HEAD.size + len(content)] = content

    def inherited(self, number: int) -> Numbers:
        """The counters of the worker whose place this one takes."""
        return _counters(self._read(number)[1])

    def of_others(self, number: int) -> Iterator[Numbers]:
        """Return the numbers of the other workers, and only the counters of those that have ended."""
        for other in range(1, self._count + 1):
            if other != number:
                written_at, numbers = self._read(other)
                yield numbers if self._clock() - written_at < FRESH_SECONDS else _counters(numbers)

    def close(self) -> None:
        self._memory.close()
        self._file.close()

    def _read(self, number: int) -> tuple[float, Numbers]:
        with self._locked(number) as at:
            written_at, length = _HEAD.unpack_from(self._memory, at)
            content = self._memory[at + _HEAD.size : at + _HEAD.size + length]
        return written_at, {name: dict(rows) for name, rows in _decode(content)} if content else {}

    @contextmanager
    def _locked(self, number: int) -> Iterator[int]:
        """The kernel's lock on a part of a file: it is gone with its process. Where the slot begins."""
        at = (number - 1) * SLOT_SIZE
        fcntl.lockf(self._file, fcntl.LOCK_EX, SLOT_SIZE, at)
        try:
            yield at
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, SLOT_SIZE, at)


class WorkerSlot:
    """The slot of this worker."""

    def __init__(self, slots: Slots, number: int) -> None:
        self._slots = slots
        self._number = number
        self._inherited = slots.inherited(number)

    @property
    def others(self) -> Iterator[Numbers]:
        """The numbers of everybody else on this machine, those that died included."""
        yield self._inherited
        yield from self._slots.of_others(self._number)

    def write(self, numbers: Numbers) -> None:
        """Tell the others the numbers of this process."""
        self._slots.write(self._number, merged([self._inherited, numbers]))


def _counters(numbers: Numbers) -> Numbers:
    return {name: series for name, series in numbers.items() if BY_NAME[name].kind is not Kind.GAUGE}
