"""Files to which lines are appended."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final

from attrs import define

from cloudid_core.audit.chain import CLOSED, Head, is_ours
from cloudid_core.audit.device import STDOUT, Device

from ..machine import APPENDING, Disk, identity_of, streams
from ..runtime import Event, Runtime
from .verify import TAIL, read_line

LOGGING: Final = APPENDING & ~os.O_WRONLY | os.O_RDWR
"""Flags to open an audit log, which is also read."""

_sync: Final[Callable[[int], None]] = getattr(os, "fdatasync", os.fsync)
"""macOS has only `fsync`."""

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FIRST_LINE: Final = 2**16
"""Maximum bytes of the first line of an audit log."""

MOST_HEADS: Final = 64
"""Maximum chains without an end that the beginning of another chain names."""


@define(eq=False)
class Ticket:
    """Entries that are not written yet, and the reason if they cannot be written."""

    done: Event
    failure: OSError | None

    async def written(self) -> None:
        """Return when the entries are written. Raises `OSError`."""
        await self.done.wait()
        if self.failure is not None:
            raise self.failure


@define(eq=False)
class Sync(Ticket):
    """One fsync in a thread, for everything that was written before it began."""

    fd: int


class Torn(OSError):
    """A file accepted only this many bytes of a write."""

    def __init__(self, written: int) -> None:
        super().__init__("only a part of the entry was written: is the disk full?")
        self.written = written


class File:
    """A file, opened when it is needed. Raises only `OSError`."""

    def __init__(
        self, device: Device, runtime: Runtime, holder_of: Callable[[os.stat_result], str] = lambda status: ""
    ) -> None:
        """`holder_of` returns the other device that a file already belongs to, if any."""
        self._device = device
        self._holder_of = holder_of
        self._path = device.options.get("file_path", STDOUT)
        self._mode = int(device.options.get("mode", "0600"), 8)
        self._needs_sync = device.options.get("fsync") == "true"
        self._runtime = runtime
        self._fd = -1
        self._is_torn = False
        self.is_empty = False
        """Whether the open file has been empty until now."""
        self.other_heads: Sequence[Head] | None = None
        """The newest lines of the other unfinished chains in the tail of the file, or `None` if there are too many."""
        self._disk = Disk(runtime)
        self._next: Sync | None = None
        self._is_syncing = False

    def open(self) -> Head | None:
        """Open the file if it is closed. Return its newest line."""
        if self._fd >= 0:
            return None
        if self._path == STDOUT:
            self._check_holder(os.fstat(1))
            self._fd = os.dup(1)
            return None
        try:
            self._fd = open_below(self._device.folder, self._path, self._mode or 0o600)
        except ValueError:  # it has a NUL, for example
            raise OSError("the path is not valid for a file") from None
        try:
            return self._check(self._fd)
        except OSError:
            self.close()
            raise

    def is_replaced(self) -> bool:
        """Return whether the path no longer leads to the open file: log rotation has moved or removed it."""
        return self._fd >= 0 and self._path != STDOUT and not streams.leads_to(self._path, self._fd)

    def write(self, content: bytes) -> None:
        """Append lines. If this fails, the next write begins on a new line."""
        prefix = b"\n" if self._is_torn else b""
        content = prefix + content
        written = os.write(self._fd, content)
        torn = 0
        if written < len(content):
            torn = self._take_back(written - content.rfind(b"\n", 0, written) - 1)
        self._is_torn = torn > 0
        self.is_empty = self.is_empty and written == torn
        if written < len(content):
            raise Torn(max(0, written - len(prefix)))

    def _take_back(self, torn: int) -> int:
        """Cut off an incomplete line, so that no other process continues it. Return the bytes that had to stay.

        They stay if another process has written after them.
        """
        end = os.lseek(self._fd, 0, os.SEEK_CUR)
        if not torn or os.fstat(self._fd).st_size != end:
            return torn
        os.ftruncate(self._fd, end - torn)
        return 0

    def sync(self) -> Sync | None:
        """Start to write earlier lines to disk, if this is required. `None` means that there is nothing to wait for."""
        if not self._needs_sync:
            return None
        if not self._is_syncing and self._disk.is_for_loop:
            self._disk.wait_on_loop(self.wait_for_disk, self._fd)
            return None
        sync = self._next
        if sync is None:
            failure = OSError("the entry was not written to disk (fsync)")
            sync = Sync(self._runtime.new_event(), failure, os.dup(self._fd))  # the file may be closed meanwhile
            self._next = sync
            if not self._is_syncing:
                self._is_syncing = True
                self._runtime.start(self._sync_all)
        return sync

    def wait_for_disk(self, fd: int) -> tuple[None, float]:
        """Wait until everything that was written to an open file is on disk. Return how many seconds this took."""
        started = time.perf_counter()
        _sync(fd)
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
                    sync.failure = OSError(f"the entry could not be written to disk (fsync): {type(error).__name__}")
                finally:
                    os.close(sync.fd)
                    sync.done.set()
        finally:
            self._is_syncing = False

    def _check(self, fd: int) -> Head | None:
        """Refuse files that cannot be an audit log. Find the last line of an audit log."""
        status = os.fstat(fd)
        self.is_empty = False
        if stat.S_ISCHR(status.st_mode):
            return None
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{self._path} is not a file")
        self._check_holder(status)
        if stat.S_IMODE(status.st_mode) & 0o111:
            raise OSError(f"{self._path} is executable")
        self.is_empty = not status.st_size
        first, newline, _ = os.pread(fd, FIRST_LINE, 0).partition(b"\n")
        is_known = self.is_empty or (bool(newline) and is_ours(self._device, first))
        # a device of an earlier version continues its file, which may begin with an unsigned line
        if not is_known and (self._device.installation_key or not first.startswith(b"{")):
            raise OSError(f"{self._path} is not an audit log of this service: move it away")
        head = None if self.is_empty else self._find_heads(fd, status.st_size)
        if is_known and self._mode and stat.S_IMODE(status.st_mode) != self._mode:
            os.fchmod(fd, self._mode)
        return head

    def _check_holder(self, status: os.stat_result) -> None:
        """Two devices never share a file, because their modes, keys and chains differ."""
        if stat.S_ISREG(status.st_mode) and (holder := self._holder_of(status)):
            raise OSError(f"{self._path} is already the file of the audit device {holder}")

    def identities(self) -> set[tuple[int, int]]:
        """Return the identities of the open file and of the file at the path."""
        found = set()
        with suppress(OSError):
            found.add(identity_of(os.fstat(1 if self._path == STDOUT else self._fd)))
        with suppress(OSError, ValueError):
            if self._path != STDOUT:
                found.add(identity_of(os.stat(self._path)))
        return found

    def _find_heads(self, fd: int, size: int) -> Head | None:
        """Return the last readable line of a file. Also record the last lines of the other chains in its tail."""
        *lines, torn = os.pread(fd, TAIL, max(0, size - TAIL)).split(b"\n")
        self._is_torn = bool(torn)
        last: Head | None = None
        others: dict[str, Head | None] = {}
        for line in reversed(lines):
            try:
                newest = read_line(line)
            except (ValueError, RecursionError):
                continue
            place = newest.chain
            if place.id in others:
                continue
            head = Head(place.id, place.number, sha256(line).hexdigest())
            last = last or head
            others[place.id] = None if head is last or newest.state == CLOSED else head
        heads = [head for head in others.values() if head is not None]
        self.other_heads = heads if len(heads) <= MOST_HEADS else None
        return last


def open_below(folder: str, path: str, mode: int) -> int:
    """Open an audit log, and create it if it does not exist. Below a folder, no segment of the path may be a link.

    The folder is the operator's, and is created if it does not exist. Without a folder, `path` itself must not be a
    link. Raises `OSError` and `ValueError`.
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
    """Create a folder for audit logs that only its owner can access, unless it exists. Raises `OSError`."""
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
