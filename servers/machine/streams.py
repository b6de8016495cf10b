"""Standard streams: stdout and stderr can be closed, full or broken, and none of that ends a server.

Python's own streams keep what they could not write and fail again when the process ends, so these functions write to
the file descriptors.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from io import TextIOWrapper
from typing import Final

STDOUT: Final = 1
STDERR: Final = 2

APPENDING: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags to open a log with: a symbolic link is refused, and a pipe without a reader does not block."""

LOOK_EVERY: Final = 0.5
"""Seconds between two looks at the path of a stream."""


def open_missing() -> None:
    """Open /dev/null for standard streams that are closed: the next file or socket would take their numbers.

    Python's own streams are then there too, and show a letter that their encoding has not as an escape.
    """
    for descriptor in (0, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(STDOUT, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(STDERR, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def forget_unwritten() -> None:
    """Have Python's stdout forget what it could not write.

    When the process ends, it would try again, show a traceback, and change the exit code.
    """
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, STDOUT)
        os.close(nowhere)


def write(descriptor: int, text: str) -> bool:
    """Write all of the text; false when that is not possible, and then a part may have been written."""
    return write_bytes(descriptor, text.encode("utf-8", "backslashreplace"))


def write_bytes(descriptor: int, data: bytes, *, patience: float | None = None) -> bool:
    """As `write`. `patience`: seconds to wait for a reader that is behind, for each 4 KiB; `None`: without limit."""
    try:
        while data:
            if patience is not None and not is_writable(descriptor, patience):
                return False
            data = data[os.write(descriptor, data[: select.PIPE_BUF]) :]
    except OSError:
        return False
    return True


def can_be_full(descriptor: int) -> bool:
    """Whether writing may have to wait for a reader: for every kind of file but a regular one."""
    try:
        return not stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return True


def is_writable(descriptor: int, patience: float = 0.0) -> bool:
    """Whether `PIPE_BUF` bytes can be written without waiting, as soon as that is so; errors count as yes."""
    return _shows(descriptor, select.POLLOUT, patience)


def has_unread(socket: int) -> bool:
    """Whether a socket (its file number) has something that was not read yet: bytes, or the end of them."""
    return _shows(socket, select.POLLIN)


def has_hung_up(descriptor: int) -> bool:
    """Whether who reads a socket or pipe has already closed it, as far as that is known here."""
    return _shows(descriptor, getattr(select, "POLLRDHUP", 0))


def _shows(descriptor: int, event: int, patience: float = 0.0) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(patience * 1000))


class FollowedPath:
    """Reopen the file of a stream when its path no longer leads to it, because it was moved, replaced or removed.

    That is how logs are rotated. It does nothing for a stream that is no regular file, and where there is no `/proc`.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._path = _path_of(descriptor)
        self._look_at = 0.0

    def is_there(self) -> bool:
        """Whether what is written to the stream stays on a disk; checks now and then, and reopens the file."""
        if self._path is None or time.monotonic() < self._look_at:
            return True
        try:
            status = os.fstat(self._descriptor)
            is_lost = stat.S_ISREG(status.st_mode) and not leads_to(self._path, self._descriptor)
            if is_lost and not self._reopen(self._path, stat.S_IMODE(status.st_mode)):
                return status.st_nlink > 0
        except OSError:
            return False
        self._look_at = time.monotonic() + LOOK_EVERY
        return True

    def _reopen(self, path: str, mode: int) -> bool:
        """Put the file at the path in place of the old one, unless it is something else than a regular file."""
        try:
            opened = os.open(path, APPENDING, mode)
        except OSError:
            return False
        try:
            is_file = stat.S_ISREG(os.fstat(opened).st_mode)
            if is_file:
                os.dup2(opened, self._descriptor)
        finally:
            os.close(opened)
        return is_file


def leads_to(path: str, descriptor: int) -> bool:
    """Whether a path names the file of a descriptor."""
    try:
        return identity_of(os.stat(path)) == identity_of(os.fstat(descriptor))
    except OSError:
        return False


def identity_of(status: os.stat_result) -> tuple[int, int]:
    """The identity of a file, whatever its name."""
    return status.st_dev, status.st_ino


def _path_of(descriptor: int) -> str | None:
    """Where a regular file is; `None` for everything else."""
    try:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
    return path if not can_be_full(descriptor) and leads_to(path, descriptor) else None
