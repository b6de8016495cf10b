"""Standard streams: stdout and stderr can be closed, full or broken, and none of that ends a server.

Python's own streams keep what they could not write and fail again when the process ends, so these functions write to
the file descriptors.
"""

from __future__ import annotations

import os
import select
import stat
from typing import Final

STDOUT: Final = 1
STDERR: Final = 2


def open_missing() -> None:
    """Open /dev/null for standard streams that are closed: the next file or socket would take their numbers."""
    for descriptor in (0, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def write(descriptor: int, text: str) -> bool:
    """Write all of the text; false when that is not possible, and then a part may have been written."""
    return write_bytes(descriptor, text.encode("utf-8", "backslashreplace"))


def write_bytes(descriptor: int, data: bytes, *, patience: float | None = None) -> bool:
    """As `write`. `patience`: seconds to wait for a reader that is behind, for each 4 KiB; `None`: without limit."""
    try:
        while data:
            if patience is not None and not _is_writable(descriptor, patience):
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


def _is_writable(descriptor: int, patience: float) -> bool:
    """Whether `PIPE_BUF` bytes can be written without waiting, as soon as that is so; errors count as yes."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(patience * 1000))
