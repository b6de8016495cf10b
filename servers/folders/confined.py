"""Reads regular files below a folder, and nothing that links lead to outside it.

Each segment of a path is opened by itself, relative to the folder before it, so that no one can replace a segment by a
link between a check and the opening. Links are followed while they stay below the folder: Kubernetes mounts each key of
a secret as a link to `..data/KEY`, and `..data` as a link to a folder beside it.
"""

from __future__ import annotations

import os
from collections import deque
from errno import EACCES, EINVAL, ELOOP
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Final

MOST_LINKS: Final = 40
KERNEL: Final = ("/proc", "/sys")
"""Files below these show the process and the machine: its variables, for example."""
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class NotRegular(OSError):
    """It is not a regular file. Reading a pipe may never end."""

    def __init__(self) -> None:
        super().__init__(EINVAL, "it is not a regular file")


class Outside(OSError):
    """The path leads out of the folder."""

    def __init__(self, folder: str) -> None:
        super().__init__(EACCES, f"it is not in {folder}")


def read_below(folder: Path, path: str, most: int) -> bytes:
    """At most so many bytes of a file. An absolute path must begin with that of the folder. Raises `OSError`."""
    with open(_open(str(folder), path), "rb") as file:
        return file.read(most)


def read_anywhere(path: Path, most: int) -> bytes:
    """As `read_below`, without a folder that the file has to be in. Raises `OSError`."""
    with open(_check(os.open(path, FILE & ~os.O_NOFOLLOW)), "rb") as file:
        return file.read(most)


def _open(folder: str, path: str) -> int:
    root = os.path.realpath(folder)
    for above in dict.fromkeys((folder, root)):
        if path.startswith(f"{above.rstrip('/')}/"):
            path = path.removeprefix(above).lstrip("/")
    opened = [os.open(root, FOLDER)]
    try:
        return _walk(opened, deque(_segments(root, path)), folder)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _walk(opened: list[int], segments: deque[str], folder: str) -> int:
    """`opened`: the folders on the way, the first of which is never left."""
    links = 0
    while segments:
        segment = segments.popleft()
        if segment == "..":
            if len(opened) == 1:
                raise Outside(folder)
            os.close(opened.pop())
            continue
        mode = os.stat(segment, dir_fd=opened[-1], follow_symlinks=False).st_mode
        if S_ISLNK(mode):
            links += 1
            if links > MOST_LINKS:
                raise OSError(ELOOP, os.strerror(ELOOP))
            target = os.readlink(segment, dir_fd=opened[-1])
            if target.startswith("/"):
                raise Outside(folder)
            segments.extendleft(reversed(_segments("", target)))
        elif S_ISDIR(mode) and segments:
            opened.append(os.open(segment, FOLDER | os.O_NOFOLLOW, dir_fd=opened[-1]))
        elif S_ISREG(mode) and not segments:
            return _check(os.open(segment, FILE, dir_fd=opened[-1]))
        else:
            raise NotRegular
    raise NotRegular


def _segments(root: str, path: str) -> list[str]:
    """The segments of a relative path."""
    if path.startswith("/"):
        raise Outside(root)
    return [segment for segment in path.split("/") if segment not in ("", ".")]


def _check(descriptor: int) -> int:
    """The descriptor of a regular file that the kernel does not make up. Raises `OSError`, and closes it."""
    status = os.fstat(descriptor)
    kernel = {os.stat(path).st_dev for path in KERNEL if os.path.ismount(path)}
    if S_ISREG(status.st_mode) and status.st_dev not in kernel:
        return descriptor
    os.close(descriptor)
    raise NotRegular
