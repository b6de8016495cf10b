"""Owned files: one process at a time has a store's files, and notices when they are removed, replaced or cut short.

The lock is on the file itself, not on its name: a link to it, or another name, is the same store. A store whose file
was removed or replaced would keep answering from a file that has no name any more, and forget everything at its end.

A log that is cut short is a valid log: SQLite reads it up to its end, and says nothing. So the number of the last
acknowledged commit is also written to a small file beside it, after the commit and without waiting for the disk: it is
never ahead of what is durable. The next start compares.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final, NoReturn

from cloudid_core.errors import StoreFailed

from ..machine import identity_of

REPLACED: Final = "removed or replaced"
CUT: Final = "cut short"
NUMBER_LENGTH: Final = 20
CHECK_SECONDS: Final = 0.5
"""How long a look at the files counts."""


class OwnedFiles:
    """The database at `path`, made for its owner only when it is not there, and its write-ahead log.

    Raises `StoreFailed` when another process has them, and `OSError`.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        """`name` is what messages call the store; its path, if there is none."""
        self.path = path.resolve()
        """Where the file really is, whatever links lead there."""
        self._name = name or str(self.path)

        self._log = Path(f"{self.path}-wal")
        self._log_identity: tuple[int, int] | None = None
        self._opened_log = -1
        self._size = 0
        self._log_size = 0
        self._checked_at = time.monotonic()
        self._loss = ""
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._identity = identity_of(os.fstat(self._file))
            self._end = os.open(f"{self.path}-end", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except BlockingIOError:
            os.close(self._file)
            raise StoreFailed(f"{name or path} is in use by another process") from None
        except BaseException:
            os.close(self._file)
            raise

    @property
    def acknowledged(self) -> int:
        """The number of the last commit that this or an earlier process has acknowledged; 0: unknown."""
        text = os.pread(self._end, NUMBER_LENGTH, 0)
        return int(text) if len(text) == NUMBER_LENGTH and text.isdigit() else 0

    def note_log(self) -> None:
        """The write-ahead log is there by now, and stays the same file while it is open."""
        self._opened_log = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        self._log_identity = identity_of(os.fstat(self._opened_log))

    def note_commit(self, number: int) -> None:
        """A commit is durable. Neither file becomes shorter while it is open."""
        self._log_size = os.fstat(self._opened_log).st_size
        os.pwrite(self._end, b"%0*d" % (NUMBER_LENGTH, number), 0)

    def check_log(self) -> None:
        """Before a commit, which would hide that the log was cut short. Raises `StoreFailed`."""
        if os.fstat(self._opened_log).st_size < self._log_size:
            self._lose(CUT)

    def check(self) -> None:
        """Raises `StoreFailed`, from then on at every call, once the files are not those that were opened.

        Looks twice a second.
        """
        if self._loss:
            raise StoreFailed(self._loss)
        now = time.monotonic()
        if now - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = now
        try:
            file, log = os.stat(self.path), os.stat(self._log)
        except OSError:
            self._lose(REPLACED)
        if identity_of(file) != self._identity or self._log_identity not in (None, identity_of(log)):
            self._lose(REPLACED)
        if file.st_size < self._size or log.st_size < self._log_size:
            self._lose(CUT)
        self._size = file.st_size

    def _lose(self, how: str) -> NoReturn:
        self._loss = f"{self._name} was {how} while it was in use: restore the file, then restart"
        raise StoreFailed(self._loss)

    def close(self) -> None:
        """Call after the last connection to the database is closed: SQLite's own locks end with this descriptor."""
        for descriptor in (self._opened_log, self._end, self._file):
            if descriptor >= 0:
                os.close(descriptor)
