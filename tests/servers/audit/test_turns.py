"""Entries that come in one turn of the event loop are written together, on both runtimes."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from cloudid_core.audit.device import Device, Entries
from cloudid_core.effects import Record, Sleep, gather, within
from cloudid_core.errors import RecordFailed, TimeIsUp
from cloudid_core.events import DeviceChanged
from cloudid_core.run import run
from cloudid_servers.audit.files import File
from cloudid_servers.audit.verify import verify
from cloudid_servers.host.host import Host
from tests.hosts.opened import RUNTIMES, on

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)


def device(path: Path, **options: str) -> Device:
    return Device(name=path.name, type="file", key="5a" * 32, options={"file_path": str(path), **options})


async def record(devices: tuple[Device, ...], number: int, size: int = 0) -> str:
    text = b'{"type":"request","entry":%d,"padding":"%s"}' % (number, b"x" * size)
    try:
        await Record(DeviceChanged(device="x", state="y", audit=Entries(devices, (text,) * len(devices))))
    except RecordFailed:
        return "refused"
    return "recorded"


def entries_in(path: Path) -> list[int]:
    assert verify([(str(path), path.read_bytes().splitlines(keepends=True))], accepts_open_end=False).problems == []
    return [line["entry"] for line in map(json.loads, path.read_text().splitlines()) if line["type"] == "request"]


@pytest.mark.parametrize("fsync", ["false", "true"])
def test_entries_of_one_turn_are_written_with_one_call(
    runtime: str, fsync: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices, written, write = (device(tmp_path / "a", fsync=fsync),), [], File.write

    def count(file: File, content: bytes) -> None:
        written.append(content.count(b'"type":"request"'))
        write(file, content)

    monkeypatch.setattr(File, "write", count)

    async def scenario(host: Host) -> None:
        for _ in range(2):
            assert await run(gather([record(devices, number) for number in range(20)]), host) == ["recorded"] * 20

    on(runtime, scenario)
    assert [count for count in written if count] == [20, 20]
    assert sorted(entries_in(tmp_path / "a")) == sorted([*range(20), *range(20)])


def test_a_turn_that_no_device_takes_is_refused_as_a_whole(runtime: str, tmp_path: Path) -> None:
    """And the next one is tried again."""
    path = tmp_path / "a"
    path.symlink_to("/dev/full")
    devices = (device(path),)

    async def scenario(host: Host) -> None:
        assert await run(gather([record(devices, number) for number in range(20)]), host) == ["refused"] * 20
        path.unlink()
        assert await run(gather([record(devices, number) for number in range(20)]), host) == ["recorded"] * 20

    on(runtime, scenario)
    assert sorted(entries_in(path)) == list(range(20))


def test_one_device_that_works_is_enough_for_all_entries_of_a_turn(runtime: str, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/dev/full")
    devices = (device(tmp_path / "a"), device(tmp_path / "b"))

    async def scenario(host: Host) -> None:
        assert await run(gather([record(devices, number) for number in range(5)]), host) == ["recorded"] * 5

    on(runtime, scenario)
    assert sorted(entries_in(tmp_path / "b")) == list(range(5))


def test_a_device_that_is_enabled_within_a_turn_gets_the_entries_that_come_after_it(
    runtime: str, tmp_path: Path
) -> None:
    one = (device(tmp_path / "a"),)
    two = (*one, device(tmp_path / "b"))

    async def scenario(host: Host) -> None:
        await run(gather([record(one, 0)]), host)
        asked = [record(devices, number) for number, devices in enumerate((one, two, two, one), 1)]
        assert await run(gather(asked), host) == ["recorded"] * 4

    on(runtime, scenario)
    assert sorted(entries_in(tmp_path / "a")) == [0, 1, 2, 3, 4]
    assert sorted(entries_in(tmp_path / "b")) == [2, 3]


def test_an_asker_that_is_cut_off_takes_no_other_entry_with_it(runtime: str, tmp_path: Path) -> None:
    devices = (device(tmp_path / "a"),)

    async def cut_off() -> str:
        try:
            return await within(0.0, record(devices, 0))
        except TimeIsUp:
            return "cut off"

    async def scenario(host: Host) -> None:
        _, *others = await run(gather([cut_off(), *(record(devices, number) for number in range(1, 5))]), host)
        assert others == ["recorded"] * 4

    on(runtime, scenario)
    assert set(entries_in(tmp_path / "a")) >= {1, 2, 3, 4}


def test_closing_devices_writes_what_waits_for_the_end_of_the_turn(runtime: str, tmp_path: Path) -> None:
    """As SIGHUP does in the middle of requests."""
    devices = (device(tmp_path / "a"),)

    async def scenario(host: Host) -> None:
        async def close() -> str:
            host.audit.close()
            return "closed"

        asked = [record(devices, 0), close(), record(devices, 1)]
        assert await run(gather(asked), host) == ["recorded", "closed", "recorded"]

    on(runtime, scenario)
    assert sorted(entries_in(tmp_path / "a")) == [0, 1]


LONG: Final = 2**23
"""Bytes that no socket takes before its reader reads."""


class Hanging:
    """A reader that reads one byte of its first connection, and everything of the next one."""

    def __init__(self, listener: socket.socket) -> None:
        self.hangs = threading.Event()
        self.taken = b""
        self.thread = threading.Thread(target=self._read, args=(listener,), daemon=True)
        self.thread.start()

    def _read(self, listener: socket.socket) -> None:
        with suppress(OSError):
            first, _ = listener.accept()
            with first:
                first.recv(1)
                self.hangs.set()
                second, _ = listener.accept()
            with second:
                while data := second.recv(2**20):
                    self.taken += data


@contextmanager
def hanging(path: Path) -> Iterator[tuple[Hanging, tuple[Device, ...]]]:
    options = {"address": str(path), "socket_type": "unix", "write_timeout": "60s"}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        reader = Hanging(listener)
        yield reader, (Device(name="siem", type="socket", key="5a" * 32, options=options),)
        listener.shutdown(socket.SHUT_RDWR)
        reader.thread.join()


def test_an_entry_that_is_being_sent_when_devices_are_closed_goes_to_the_next_connection(
    runtime: str, tmp_path: Path
) -> None:
    """As by SIGHUP: the request was refused, and so was every other within a second."""

    async def scenario(host: Host) -> None:
        async def close() -> str:
            while not reader.hangs.is_set():
                await Sleep(0.01)
            host.audit.close()
            return "closed"

        asked = [record(devices, 1, LONG), close()]
        assert await run(gather(asked), host) == ["recorded", "closed"]
        assert await run(gather([record(devices, 2)]), host) == ["recorded"]
        host.audit.close()

    with hanging(tmp_path / "socket") as (reader, devices):
        on(runtime, scenario)
    lines = [json.loads(line) for line in reader.taken.splitlines()]
    assert [line["entry"] for line in lines if line["type"] == "request"] == [1, 2]
    assert verify([("socket", reader.taken.splitlines(keepends=True))], accepts_open_end=False).problems == []


def test_an_entry_that_is_being_sent_when_its_device_is_disabled_is_refused(runtime: str, tmp_path: Path) -> None:
    """The request had no other device, and a disabled one gets nothing more."""

    async def scenario(host: Host) -> None:
        async def replace() -> str:
            while not reader.hangs.is_set():
                await Sleep(0.01)
            return await record((device(tmp_path / "a"),), 2)

        assert await run(gather([record(devices, 1, LONG), replace()]), host) == ["refused", "recorded"]

    with hanging(tmp_path / "socket") as (reader, devices):
        on(runtime, scenario)
    assert entries_in(tmp_path / "a") == [2]


def test_one_task_signs_however_often_devices_are_declared(runtime: str, tmp_path: Path) -> None:
    started: list[str] = []

    async def scenario(host: Host) -> None:
        start = host.start

        def count(work: Any) -> None:
            started.append(work.__name__)
            start(work)

        host.start = count  # type: ignore[method-assign]
        for number in range(5):
            assert await run(record((device(tmp_path / f"audit-{number}"),), number), host) == "recorded"

    on(runtime, scenario)
    assert started.count("_sign_now_and_then") == 1
