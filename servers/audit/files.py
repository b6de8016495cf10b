"""Files that lines are appended to."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from hashlib import sha256
from typing import Final

from attrs import define

from cloudid_core.audit.chain import Head, is_ours
from cloudid_core.audit.device import STDOUT, Device

from ..machine import APPENDING, Disk, streams
from ..runtime import Event, Runtime
from .verify import read_line

LOGGING: Final = APPENDING & ~os.O_WRONLY | os.O_RDWR
"""Flags to open an audit log with, which is also read."""

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FIRST_LINE: Final = 2**16
"""Longest first line that can be an audit log's."""

TAIL: Final = 2**20
"""How much of a file's end is read to find its last line."""


@define(eq=False)
class Ticket:
    """Entries that are not written yet, and why they are not if they never will be."""

    done: Event
    failure: OSError | None

    async def written(self) -> None:
        """Return when they are. Raises `OSError`."""
        await self.done.wait()
        if self.failure is not None:
            raise self.failure


@define(eq=False)
class Sync(Ticket):
    """One fsync in a thread, for everything that was written before it began."""

    fd: int


class File:
    """One file, opened when it is needed. Raises `OSError` only."""

    def __init__(self, device: Device, runtime: Runtime) -> None:
        self._device = device
        self._path = device.options.get("file_path", STDOUT)
        self._mode = int(device.options.get("mode", "0600"), 8)
        self._needs_sync = device.options.get("fsync") == "true"
        self._runtime = runtime
        self._fd = -1
        self._is_torn = False
        self.is_empty = False
        """Whether nothing has been in the open file yet."""
        self._disk = Disk(runtime)
        self._next: Sync | None = None
        self._is_syncing = False

    def open(self) -> Head | None:
        """Open the file if it is not; the newest line that is in it then."""
        if self._fd >= 0:
            return None
        if self._path == STDOUT:
            self._fd = os.dup(1)
            return None
        try:
            self._fd = open_below(self._device.folder, self._path, self._mode or 0o600)
        except ValueError:  # it has a NUL, for example
            raise OSError("the path cannot be one of a file") from None
        try:
            return self._check(self._fd)
        except OSError:
            self.close()
            raise

    def is_replaced(self) -> bool:
        """Whether the path no longer leads to the open file: it was moved or removed, as rotation of logs does."""
        return self._fd >= 0 and self._path != STDOUT and not streams.leads_to(self._path, self._fd)

    def write(self, content: bytes) -> None:
        """Append lines. When that fails, the next write begins a line of its own."""
        if self._is_torn:
            content = b"\n" + content
        written = os.write(self._fd, content)
        self._is_torn = written < len(content)
        if self._is_torn:
            if self.is_empty and os.fstat(self._fd).st_size == written:  # begun so, it would be no audit log any more
                os.ftruncate(self._fd, 0)
                self._is_torn = False
            raise OSError("the file took only a part of an entry: is the disk full?")
        self.is_empty = False

    def sync(self) -> Sync | None:
        """Let the disk have what was written so far, if that is wanted. `None`: it has, or it need not."""
        if not self._needs_sync:
            return None
        if not self._is_syncing and self._disk.is_for_loop:
            self._disk.wait_on_loop(self.wait_for_disk, self._fd)
            return None
        sync = self._next
        if sync is None:
            failure = OSError("the disk was not waited for")
            sync = Sync(self._runtime.new_event(), failure, os.dup(self._fd))  # the file may be closed meanwhile
            self._next = sync
            if not self._is_syncing:
                self._is_syncing = True
                self._runtime.start(self._sync_all)
        return sync

    def wait_for_disk(self, fd: int) -> tuple[None, float]:
        """Return when the disk has what was written to an open file, and say how many seconds that took."""
        started = time.perf_counter()
        os.fdatasync(fd)
        return None, time.perf_counter() - started

    def close(self) -> None:
        """Close the file. The next write opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    async def _sync_all(self) -> None:
        try:
            while (sync := self._next) is not None:
                self._next = None
                try:
                    await self._disk.wait(self.wait_for_disk, sync.fd)
                    sync.failure = None
                except OSError as failure:
                    sync.failure = failure
                except Exception as error:  # noqa: BLE001  # as when no thread can be started
                    sync.failure = OSError(f"the disk could not be waited for: {type(error).__name__}")
                finally:
                    os.close(sync.fd)
                    sync.done.set()
        finally:
            self._is_syncing = False

    def _check(self, fd: int) -> Head | None:
        """Refuse what is no place for an audit log, and find the last line of what is."""
        status = os.fstat(fd)
        self.is_empty = False
        if stat.S_ISCHR(status.st_mode):
            return None
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{self._path} is no file")
        if stat.S_IMODE(status.st_mode) & 0o111:
            raise OSError(f"{self._path} is executable")
        self.is_empty = not status.st_size
        first, newline, _ = os.pread(fd, FIRST_LINE, 0).partition(b"\n")
        is_known = self.is_empty or (bool(newline) and is_ours(self._device, first))
        # a device of an earlier version goes on with its file, which may begin with a line that nobody has signed
        if not is_known and (self._device.installation_key or not first.startswith(b"{")):
            raise OSError(f"{self._path} is no audit log that this installation began: move it away")
        head = None if self.is_empty else self._last_line(fd, status.st_size)
        if is_known and self._mode and stat.S_IMODE(status.st_mode) != self._mode:
            os.fchmod(fd, self._mode)
        return head

    def _last_line(self, fd: int, size: int) -> Head | None:
        *lines, torn = os.pread(fd, TAIL, max(0, size - TAIL)).split(b"\n")
        self._is_torn = bool(torn)
        for line in reversed(lines):
            try:
                place = read_line(line).chain
            except (ValueError, RecursionError):
                continue
            return Head(place.id, place.number, sha256(line).hexdigest())
        return None


def open_below(folder: str, path: str, mode: int) -> int:
    """Open an audit log, and make it if there is none. Below a folder, no segment of its path may be a link.

    The folder is the operator's, and made when it is not there. No folder: `path` itself must not be a link. Raises
    `OSError` and `ValueError`.
    """
    if not folder:
        return os.open(path, LOGGING, mode)
    *segments, name = path.removeprefix(folder).strip("/").split("/")
    make_folder(folder)
    opened = os.open(folder, FOLDER)
    try:
        for segment in segments:
            below = os.open(segment, FOLDER | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = below
        return os.open(name, LOGGING, mode, dir_fd=opened)
    finally:
        os.close(opened)


def make_folder(path: str) -> None:
    """Make a folder for audit logs, for its owner only, unless it is there. Raises `OSError`."""
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
