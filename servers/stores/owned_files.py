"""Owned files: one process at a time has a store's files, and notices when they are removed or replaced.

The lock is on the file itself, not on its name: a link to it, or another name, is the same store. A store whose file
was removed or replaced would go on answering from a file that has no name any more, and forget everything at its end.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from cloudid_core.errors import StoreFailed

from ..machine import identity_of

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
        self._checked_at = time.monotonic()
        self._loss = ""
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._identity = identity_of(os.fstat(self._file))
        except BlockingIOError:
            os.close(self._file)
            raise StoreFailed(f"{name or path} is in use by another process") from None
        except BaseException:
            os.close(self._file)
            raise

    def note_log(self) -> None:
        """The write-ahead log is there by now, and stays the same file while it is open."""
        self._log_identity = identity_of(os.stat(self._log))

    def check(self) -> None:
        """Raises `StoreFailed`, from then on at every call, once the files are not those that were opened.

        Looks twice a second.
        """
        if self._loss:
            raise StoreFailed(self._loss)
        now = time.monotonic()
        if now - self._checked_at < CHECK_SECONDS:
            return
        try:
            is_ours = identity_of(os.stat(self.path)) == self._identity
            is_ours = is_ours and self._log_identity in (None, identity_of(os.stat(self._log)))
        except OSError:
            is_ours = False
        self._checked_at = now
        if not is_ours:
            self._loss = (
                f"{self._name} was removed or replaced while it was in use; restart when the right file is there"
            )
            raise StoreFailed(self._loss)

    def close(self) -> None:
        """Call after the last connection to the database is closed: SQLite's own locks end with this descriptor."""
        os.close(self._file)
