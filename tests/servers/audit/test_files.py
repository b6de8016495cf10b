"""Files that wait for the disk, on both runtimes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cloudid_core.audit.chain import OPENED, Chain
from cloudid_core.audit.device import Device
from cloudid_servers.audit.files import File
from cloudid_servers.host.host import Host
from cloudid_servers.runtime.runtime import Runtime
from tests.hosts.opened import RUNTIMES, on

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)


class TimedFile(File):
    """A file whose disk takes a while; it notes which waits the event loop had to make, and can fail."""

    def __init__(self, path: Path, runtime: Runtime, seconds: float) -> None:
        super().__init__(
            Device(name="file", type="file", key="5a" * 32, options={"file_path": str(path), "fsync": "true"}), runtime
        )
        self.seconds = seconds
        self.on_loop: list[bool] = []
        self.failure: Exception | None = None
        self._loop = threading.get_ident()

    def wait_for_disk(self, fd: int) -> tuple[None, float]:
        self.on_loop.append(threading.get_ident() == self._loop)
        if self.failure is not None:
            raise self.failure
        return None, self.seconds


async def write_together(host: Host, file: File, count: int) -> list[str]:
    """So many writers in one turn of the loop; what became of what each has written."""
    outcomes: list[str] = []
    all_done = host.new_event()

    async def write() -> None:
        try:
            file.open()
            file.write(b"{}\n")
            sync = file.sync()
            if sync is not None:
                await sync.written()
            outcomes.append("written")
        except OSError:
            outcomes.append("failed")
        if len(outcomes) == count:
            all_done.set()

    for _ in range(count):
        host.start(write)
    await all_done.wait()
    return outcomes


def test_the_loop_waits_for_the_quick_disk_of_an_audit_file(runtime: str, tmp_path: Path) -> None:
    async def scenario(host: Host) -> None:
        file = TimedFile(tmp_path / "audit.log", host, 0.0)
        for _ in range(10):
            await write_together(host, file, 1)
        assert file.on_loop == [True] * 10
        file.close()

    on(runtime, scenario)


def test_writers_share_the_wait_for_a_slow_disk(runtime: str, tmp_path: Path) -> None:
    async def scenario(host: Host) -> None:
        file = TimedFile(tmp_path / "audit.log", host, 0.005)
        await write_together(host, file, 1)
        await write_together(host, file, 1)
        file.on_loop.clear()
        assert await write_together(host, file, 20) == ["written"] * 20
        assert file.on_loop == [False]
        file.close()

    on(runtime, scenario)


def test_a_slow_disk_of_an_audit_file_is_left_to_a_thread(runtime: str, tmp_path: Path) -> None:
    async def scenario(host: Host) -> None:
        file = TimedFile(tmp_path / "audit.log", host, 0.005)
        for _ in range(10):
            await write_together(host, file, 2)
        assert file.on_loop[-5:] == [False] * 5
        file.close()

    on(runtime, scenario)


@pytest.mark.parametrize(
    "seconds, failure",
    [
        (0.0, OSError("the disk is gone")),
        (0.005, OSError("the disk is gone")),
        (0.005, RuntimeError("can't start new thread")),
    ],
)
def test_an_fsync_that_fails_fails_for_all_entries_that_wait_for_it(
    runtime: str, seconds: float, failure: Exception, tmp_path: Path
) -> None:
    """And the next ones are tried again."""

    async def scenario(host: Host) -> None:
        file = TimedFile(tmp_path / "audit.log", host, seconds)
        for _ in range(5):
            await write_together(host, file, 1)
        file.failure = failure
        assert await write_together(host, file, 5) == ["failed"] * 5
        file.failure = None
        assert await write_together(host, file, 5) == ["written"] * 5
        file.close()

    on(runtime, scenario)


def device(path: Path, *, key: str = "5a", installation: str = "6b", folder: str = "") -> Device:
    options = {"file_path": str(path), "mode": "0666"}
    return Device(
        name="file", type="file", key=key * 32, options=options, installation_key=installation * 32, folder=folder
    )


def first_line(began: Device) -> bytes:
    chain = Chain(began, "c", "host:1")
    return chain.checkpoint(1_800_000_000.0, OPENED).content


UNSIGNED = b'{"type":"request","chain":{"id":"c","number":1,"previous":""}}\n'
MADE_ANEW = first_line(device(Path("a"), installation="7c", key="8d"))


@pytest.mark.parametrize(
    "content",
    [
        b"5a" * 32,
        b"{}\n",
        b'{"name": "package"}\n',
        UNSIGNED,
        MADE_ANEW,
        first_line(device(Path("a"))).replace(b"host:1", b"host:2"),
        first_line(device(Path("a")))[:-1],
        b'{"a":' * 5000 + b"\n",
        first_line(device(Path("a"))).replace(b'"id":"c"', b'"id":"\xff"'),
        b"\0" * 100_000,
    ],
)
def test_a_file_that_this_installation_did_not_begin_stays_as_it_is(
    runtime: str, content: bytes, tmp_path: Path
) -> None:
    """The path of a device may be that of a key file, or of another program's JSON."""
    path = tmp_path / "other"
    path.write_bytes(content)
    path.chmod(0o600)

    async def scenario(host: Host) -> None:
        for folder in ("", str(tmp_path)):
            with pytest.raises(OSError, match="not an audit log of this service"):
                File(device(path, folder=folder), host).open()

    on(runtime, scenario)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (content, 0o600)


@pytest.mark.parametrize("began", [device(Path("a")), device(Path("b"), key="8d"), device(Path("a"), installation="")])
def test_a_file_is_gone_on_with_that_any_device_of_this_installation_began(
    runtime: str, began: Device, tmp_path: Path
) -> None:
    """Or the same device, before its installation marked files."""
    path = tmp_path / "audit.log"
    path.write_bytes(first_line(began))

    async def scenario(host: Host) -> None:
        file = File(device(path), host)
        head = file.open()
        assert head is not None
        assert (head.id, head.number) == ("c", 1)
        file.close()

    on(runtime, scenario)
    assert path.stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize("damaged", [b'{"chain":{"id":"\xff"}}\n', b'{"a":' * 5000 + b"\n"])
def test_a_file_whose_last_line_cannot_be_read_is_gone_on_with(runtime: str, damaged: bytes, tmp_path: Path) -> None:
    """The line before it is the head that the next chain follows."""
    path = tmp_path / "audit.log"
    path.write_bytes(first_line(device(Path("a"))) + damaged)

    async def scenario(host: Host) -> None:
        file = File(device(path), host)
        head = file.open()
        assert head is not None
        assert (head.id, head.number) == ("c", 1)
        file.close()

    on(runtime, scenario)


def test_a_device_of_an_earlier_version_goes_on_with_its_file(runtime: str, tmp_path: Path) -> None:
    """Whoever began it; its mode stays as it is then."""
    path = tmp_path / "audit.log"
    path.write_bytes(UNSIGNED)
    path.chmod(0o600)

    async def scenario(host: Host) -> None:
        file = File(device(path, installation=""), host)
        file.open()
        file.write(b"{}\n")
        file.close()

    on(runtime, scenario)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (UNSIGNED + b"{}\n", 0o600)


def test_no_segment_of_a_path_below_the_folder_may_be_a_link(runtime: str, tmp_path: Path) -> None:
    folder, outside = tmp_path / "audit", tmp_path / "outside"
    outside.mkdir()

    async def scenario(host: Host) -> None:
        file = File(device(folder / "audit.log", folder=str(folder)), host)
        file.open()
        file.close()
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "link").symlink_to(outside)
        (folder / "audit.link").symlink_to(outside / "audit.log")
        for name in ("link/audit.log", "audit.link"):
            with pytest.raises(OSError):  # ELOOP or ENOTDIR
                File(device(folder / name, folder=str(folder)), host).open()

    on(runtime, scenario)
    assert list(outside.iterdir()) == []
