"""Audit logs as servers write them: some processes at one file that is rotated, killed and short of space at random.

The devices are the real ones. Only their clock, and how much of a write a disk takes, are those of the test.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast
from unittest.mock import patch

from attrs import Factory, define, field

from cloudid_core.audit import chain as chains
from cloudid_core.audit.chain import Chain
from cloudid_core.audit.device import Device
from cloudid_servers.audit import devices
from cloudid_servers.audit.devices import FileDevice
from cloudid_servers.runtime import Runtime

KEY: Final = "5a" * 32
START: Final = 1_795_000_000.0
FILES: Final = 3
NO_RUNTIME: Final = cast("Runtime", None)
"""A file without `fsync` waits for nothing."""


class EarlierChain(Chain):
    """A chain as earlier versions wrote it: it promised nothing, and signed after all lines of a turn."""

    def facts(self, state: str, now: float) -> dict[str, object]:
        facts = super().facts(state, now)
        for later in ("every_lines", "saw", "unsure", "ends"):
            facts.pop(later, None)
        return facts

    def lines(self, texts: Any, now: float) -> chains.Lines:
        made = chains.Lines(self)
        if not self.number:
            made.sign(chains.OPENED, now)
        made.add(texts, now)
        if made.signed_number == self.signed_number and chains._is_due(
            made.number - self.signed_number, now, self.signed_at
        ):
            made.sign(chains.RUNNING, now)
        return made


@define
class Writer:
    """Some processes that write to one audit file in a folder."""

    folder: Path
    random: Random
    now: float = START
    room: int | None = None
    """How many bytes the disk takes yet."""
    checkpoints: list[bytes] = Factory(list)
    processes: list[FileDevice] = Factory(list)
    rotated: int = 0
    _count: int = 0
    _started: int = 0
    device: Device = field(init=False)

    def __attrs_post_init__(self) -> None:
        options = {"file_path": str(self.path), "mode": "0600"}
        self.device = Device(name="main", type="file", key=KEY, installation_key="6b" * 32, options=options)

    @property
    def path(self) -> Path:
        return self.folder / "audit.log"

    def start(self) -> FileDevice:
        self._started += 1
        process = FileDevice(self.device, f"host:{self._started}", self.checkpoints.extend, NO_RUNTIME)
        self.processes.append(process)
        self.write(process)
        return process

    def write(self, process: FileDevice, count: int = 1) -> None:
        """Entries of one turn, and some time that goes by."""
        try:
            process.begin([self._entry() for _ in range(count)])
        except OSError:
            assert self.room is not None

    def _entry(self) -> bytes:
        self._count += 1
        entry = {"type": "request", "auth": {}, "request": {"id": f"r{self._count}", "path": "sys/mounts"}}
        return json.dumps(entry).encode()

    def sign(self) -> None:
        """What a process does every ten seconds."""
        for process in self.processes:
            process.sign()

    def kill(self, process: FileDevice) -> None:
        self.processes.remove(process)
        process._file.close()

    def rotate(self) -> None:
        """Rename the file. Every process notices with its next entry."""
        self.rotated += 1
        self.path.rename(self.folder / f"audit.log.{self.rotated}")
        for process in self.processes:
            self.write(process)

    def stop(self) -> None:
        while self.processes:
            self.processes.pop().close()

    @contextmanager
    def on_full_disk(self) -> Iterator[None]:
        self.room = self.random.randrange(1500)
        try:
            yield
        finally:
            self.room = None

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Its clock and its disk are those of all devices for as long as a block lasts."""
        unbounded = os.write

        def write(fd: int, content: bytes) -> int:
            if self.room is None:
                return unbounded(fd, content)
            content = content[: self.room]
            self.room -= len(content)
            if not content:
                raise OSError("no space left on device")
            return unbounded(fd, content)

        clock = SimpleNamespace(time=lambda: self.now, monotonic=lambda: self.now)
        with patch.object(devices, "time", clock), patch.object(os, "write", write):
            yield

    def log(self) -> list[tuple[str, list[bytes]]]:
        """The files in the order in which they were written."""
        paths = [self.folder / f"audit.log.{number}" for number in range(1, self.rotated + 1)]
        return [(path.name, path.read_bytes().splitlines(keepends=True)) for path in (*paths, self.path)]


def write_at_random(folder: Path, random: Random, steps: int) -> Writer:
    """A log of two processes, in which everything happens that servers live through. All ended by themselves."""
    writer = Writer(folder, random)
    with writer.at_work():
        writer.start()
        for _ in range(steps):
            process = random.choice(writer.processes)
            match random.randrange(12):
                case 0:
                    writer.kill(process)
                    writer.start()
                case 1 if writer.rotated < FILES:
                    writer.rotate()
                case 2 if len(writer.processes) < 3:
                    writer.start()
                case 3:
                    process.close()
                    writer.write(process)
                case 4:
                    with writer.on_full_disk():
                        writer.write(process, 3)
                    writer.write(process)
                case 5:
                    writer.now += random.choice((3600.0, -3600.0, 61.0))
                case 6:
                    writer.now += 11.0
                    writer.sign()
                case _:
                    writer.write(process, random.randrange(1, 4))
                    writer.now += random.choice((0.0, 0.001, 1.0, 9.0))
        writer.stop()
    return writer
